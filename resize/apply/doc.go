// Package apply resizes one pod in place, and verifies that no container was restarted. It also writes the
// pod templates of workloads.
//
//	a := apply.New(apply.Options{Client: client})
//	plan, err := a.Plan(ctx, request)     // checked here and by the API server's dry run
//	result, err := a.Apply(ctx, plan)     // the only step that changes anything
//
// Plan reads the pod, checks the change with resize.Check, and asks the API server to check it
// (dryRun=All on the pods/resize subresource). A refusal by admission or quota is therefore known
// before anything is written. Apply sends the patch with the pod's UID and resourceVersion. If only
// the status has changed since, it reads the pod again. Then it reads the pod's status until the
// kubelet has done the resize, refuses it, or the timeout has passed. It never undoes anything:
// after the timeout the kubelet continues.
//
// A resize is done when the kubelet has observed its generation, there is no resize condition, and
// the containers' allocated and reported resources are the requested ones (StageOf). Then Apply
// verifies that the resize was in place: container IDs and restart counts are unchanged. If an
// agent of weir runs on the node, Apply also checks the values of the containers' cgroups, and that
// the pod has no second cgroup under another QoS class.
//
// Template.Write changes the pod template of a workload whose pods have the new values, and starts no
// rollout; Template.Owners returns which field managers have set the values that it would overwrite.
//
// Files: apply.go has Applier and Apply; plan.go makes a Plan; patch.go has the only write of a pod's
// resources; stage.go reads the progress from the pod; cgroup.go checks the cgroups; template.go writes
// templates, owner.go reads their managedFields.
//
// An Applier needs the rights get on pods and patch on pods/resize, and no others.
package apply
