// Package cri removes unused objects from a container runtime: containers that have ended, and
// images that no container uses. Like the kubelet it uses the Container Runtime Interface over the
// runtime's socket. It also stops the containers of a pod that is killed at once, if the agent cannot
// signal their processes itself.
//
// It is off by default. A process that may write to that socket can start a privileged container,
// so it has the rights of root on the node. An agent without the socket has only the rights of its
// service account. The kubelet removes the same objects at its own thresholds, so mount the socket
// only if weir must remove them before the kubelet does.
//
// It removes what the kubelet removes under pressure, as far as the runtime and Options provide the
// data:
//
//   - Containers that have exited. For each container of a pod that has not ended, the newest exited
//     one stays: it shows the kubelet that an init container is done, and that a container
//     with restartPolicy Never has run. All exited containers are removed for pods that
//     Options.Ended names, unless a sandbox of the pod is ready, because the kubelet then runs the pod.
//     The kubelet also deletes a removed container's log files. weir does not; they are deleted with
//     the pod.
//   - Images that are not pinned, were first seen at least two minutes ago, are not used by any
//     container, running or not, and are not mounted into one. Run keeps track of the images. A
//     newer image may have been pulled for a container that is about to be created.
//
// It does not remove sandboxes, containers in the states created and unknown, and containers that
// the kubelet did not create.
package cri
