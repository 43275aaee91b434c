// Package apply carries out an in-place resize of one pod, and sees to it that it was
// one.
//
//	a := apply.New(apply.Options{Client: client})
//	plan, err := a.Plan(ctx, request)   // checked here and by the API server's dry run
//	result, err := a.Do(ctx, plan)      // the only step that changes anything
//
// Plan reads the pod, holds the change to resize.Check, and has the API server try it
// (dryRun=All on the pods/resize subresource), so that what admission or quota refuse is
// known before anything is written. Do patches the very pod that was looked at (UID and
// resourceVersion; a pod whose status alone moved is looked at again), and then follows
// its status until the kubelet has done it, says that it cannot, or time is up. Stopping
// to wait takes nothing back: the kubelet goes on.
//
// A resize is done when the kubelet has seen its generation, no resize condition stands,
// and what it allocated and what it reports of the containers are what was asked for
// (StageOf). That it was in place is verified from then on: container IDs and restart
// counts as before and, where an agent of weir's runs on the node, the values of the
// containers' cgroups, and that the pod has one cgroup and not a second one under
// another QoS class.
//
// The package needs get on pods and patch on pods/resize, and no more.
package apply
