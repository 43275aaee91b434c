// Package apply resizes one pod in place, and verifies that no container was restarted.
//
//	a := apply.New(apply.Options{Client: client})
//	plan, err := a.Plan(ctx, request)     // checked here and by the API server's dry run
//	result, err := a.Apply(ctx, plan)     // the only step that changes anything
//
// Plan reads the pod, checks the change with resize.Check, and has the API server check it
// (dryRun=All on the pods/resize subresource), so that a refusal by admission or quota is known
// before anything is written. Apply sends the patch with the pod's UID and resourceVersion (if only
// the status changed since, the pod is read again). Then it reads the pod's status until the kubelet has
// done the resize or refuses it, or the timeout is over. It never undoes anything: after the timeout
// the kubelet continues.
//
// A resize is done when the kubelet has observed its generation, there is no resize condition, and
// the allocated and the reported resources of the containers are the requested ones (StageOf). Then
// Apply verifies that it was in place: container IDs and restart counts are unchanged. With an agent of
// weir on the node it also checks the values of the containers' cgroups, and that the pod has one
// cgroup and not a second one under another QoS class.
//
// The package needs get on pods and patch on pods/resize, and no other rights.
package apply
