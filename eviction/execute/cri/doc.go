// Package cri removes what a container runtime can do without: containers that have ended, and
// images that no container uses. It speaks the Container Runtime Interface over the runtime's
// socket, as the kubelet does.
//
// It is off unless asked for. Whoever may write to that socket may start a privileged container,
// and is root on the node; an agent without it has only the rights of its service account.
// The kubelet collects the same by itself, at its own thresholds. Give the socket away
// only where weir must collect before the kubelet would.
//
// It takes what the kubelet takes under pressure, as far as the runtime and Options tell:
//
//   - Of containers, those that have exited. Of each container of a pod that goes on, the one that
//     ended last stays: from it the kubelet knows that an init container is done, and a
//     container with restartPolicy Never ran. Only of pods that Options.Ended names do all go,
//     unless a sandbox of the pod is ready: then the kubelet runs it.
//     The kubelet also deletes a removed container's log files; weir does not, they go with the pod.
//   - Of images, those that are not pinned, were seen two minutes ago or earlier, and are no
//     container's, running or not, nor mounted into one. Which there are is watched by Run; an image
//     younger than that may have been pulled for a container about to be made.
//
// Containers in state created or unknown, those that no kubelet made, and sandboxes are left alone.
package cri
