package cri

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"
	runtime "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/weir-metrics/weir/eviction/execute"
)

// The labels that the kubelet sets on its containers.
const (
	labelUID  = "io.kubernetes.pod.uid"
	labelName = "io.kubernetes.container.name"
)

func (r *Reclaimer) removeContainers(ctx context.Context) (execute.Freed, error) {
	all, err := call(ctx, r, r.containers.ListContainers, &runtime.ListContainersRequest{
		Filter: &runtime.ContainerFilter{State: &runtime.ContainerStateValue{State: runtime.ContainerState_CONTAINER_EXITED}},
	})
	if err != nil {
		return execute.Freed{}, fmt.Errorf("list containers: %w", err)
	}
	// The pods are read after the containers, so that the list includes the pods of all listed
	// containers.
	ready, err := r.readyPods(ctx)
	if err != nil {
		return execute.Freed{}, fmt.Errorf("list pods: %w", err)
	}
	dead := removableContainers(all.GetContainers(), func(uid types.UID) bool { return !ready[uid] && r.opts.Ended(uid) })
	return removeEach(ctx, dead, "container", (*runtime.Container).GetId, func(c *runtime.Container) (bytes uint64, err error) {
		_, err = call(ctx, r, r.containers.RemoveContainer, &runtime.RemoveContainerRequest{ContainerId: c.GetId()})
		return 0, err // runtimes do not report the size of an exited container
	})
}

// StopPod ends the running containers of a pod at once, by SIGKILL. stopped reports whether it may have
// ended any.
func (r *Reclaimer) StopPod(ctx context.Context, uid types.UID) (stopped bool, err error) {
	all, err := call(ctx, r, r.containers.ListContainers, &runtime.ListContainersRequest{Filter: &runtime.ContainerFilter{
		State:         &runtime.ContainerStateValue{State: runtime.ContainerState_CONTAINER_RUNNING},
		LabelSelector: map[string]string{labelUID: string(uid)},
	}})
	if err != nil {
		return false, fmt.Errorf("list containers: %w", err)
	}
	if len(all.GetContainers()) == 0 {
		return false, fmt.Errorf("the container runtime runs no container of pod %s", uid)
	}
	var stops errgroup.Group // each waits for the end of its container
	for _, c := range all.GetContainers() {
		stops.Go(func() error {
			_, err := call(ctx, r, r.containers.StopContainer, &runtime.StopContainerRequest{ContainerId: c.GetId()})
			return err
		})
	}
	if err := stops.Wait(); err != nil {
		return true, fmt.Errorf("stop containers: %w", err)
	}
	return true, nil
}

// readyPods returns the pods that have a ready sandbox. The kubelet stops the sandbox of a pod that
// has ended, so these pods have not ended. Options.Ended may report them as ended, because it does
// not know a new pod yet.
func (r *Reclaimer) readyPods(ctx context.Context) (map[types.UID]bool, error) {
	all, err := call(ctx, r, r.containers.ListPodSandbox, &runtime.ListPodSandboxRequest{
		Filter: &runtime.PodSandboxFilter{State: &runtime.PodSandboxStateValue{State: runtime.PodSandboxState_SANDBOX_READY}},
	})
	if err != nil {
		return nil, err
	}
	ready := make(map[types.UID]bool, len(all.GetItems()))
	for _, s := range all.GetItems() {
		ready[types.UID(s.GetMetadata().GetUid())] = true
	}
	return ready, nil
}

// removableContainers returns the containers to remove: all exited containers of pods that have
// ended, and for other pods all exited containers except the newest of each name.
func removableContainers(all []*runtime.Container, ended func(types.UID) bool) []*runtime.Container {
	type run struct {
		pod  types.UID
		name string
	}
	newest := map[run]*runtime.Container{}
	runOf := func(c *runtime.Container) run {
		return run{types.UID(c.GetLabels()[labelUID]), c.GetLabels()[labelName]}
	}
	for _, c := range all {
		if n := newest[runOf(c)]; c.GetState() == runtime.ContainerState_CONTAINER_EXITED && (n == nil || c.GetCreatedAt() > n.GetCreatedAt()) {
			newest[runOf(c)] = c
		}
	}
	var list []*runtime.Container
	for _, c := range all {
		r := runOf(c)
		if c.GetState() != runtime.ContainerState_CONTAINER_EXITED || r.pod == "" || r.name == "" {
			continue
		}
		if c != newest[r] || ended(r.pod) {
			list = append(list, c)
		}
	}
	return list
}
