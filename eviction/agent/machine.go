package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/weir-metrics/weir/eviction"
	"github.com/weir-metrics/weir/eviction/guard"
	"github.com/weir-metrics/weir/metric"
)

// Machine reads this machine at any time, outside the rounds of the pipeline.
type Machine struct {
	guard.NodeReader
	// Pods returns the pods of this node, or nothing without a cluster. Pod returns the one that has this
	// UID in its cgroup's path, or nil.
	Pods func() []*corev1.Pod
	Pod  func(metric.PodUID) *corev1.Pod
	// Processes returns the process IDs of a pod's containers. An error means that some may be missing.
	Processes func(metric.PodUID) ([]int, error)
}

// maxPasses is how often kill lists processes: once to open them, then to signal them and to open those
// that they started meanwhile.
const maxPasses = 5

// kill sends SIGKILL to the processes of a pod. It signals a process only if the pod still has its ID after
// it was opened, because an ID alone may belong to another process by then. killed reports whether it
// signalled any.
func (m *Machine) kill(uid types.UID) (killed bool, err error) {
	opened, failed := map[int]*os.Process{}, map[int]error{}
	defer func() {
		for _, p := range opened {
			_ = p.Release() // it fails only if it was released before
		}
	}()
	for range maxPasses {
		pids, err := m.Processes(metric.PodUID(uid))
		if err != nil && len(opened) == 0 {
			return false, err
		}
		known := len(opened)
		for _, pid := range pids {
			p := opened[pid]
			if p == nil {
				opened[pid], _ = os.FindProcess(pid) // on Unix it never fails
				continue
			}
			switch err := p.Signal(os.Kill); {
			case err == nil:
				killed = true
			case !errors.Is(err, os.ErrProcessDone):
				failed[pid] = fmt.Errorf("kill process %d: %w", pid, err)
			}
		}
		if len(opened) == known {
			break // each was signalled
		}
	}
	return killed, errors.Join(slices.Collect(maps.Values(failed))...)
}

// has reports whether the node has the pod now.
func (m *Machine) has(ctx context.Context, uid types.UID) (bool, error) {
	s, err := m.ReadMemory(ctx)
	if s == nil {
		return false, err
	}
	return slices.ContainsFunc(s.Pods, func(p stats.PodStats) bool { return p.PodRef.UID == string(uid) }), nil
}

// capacities returns the present capacity of each signal by the kubelet's settings, or 0 if it is not
// known.
func (m *Machine) capacities(ctx context.Context, kubelet *eviction.Settings) func(eviction.Signal) int64 {
	summary, _ := m.Read(ctx) // without it no capacity is known
	d := eviction.Decide(&eviction.Input{Now: time.Now(), Settings: kubelet, Summary: summary, MemoryLeft: m.MemoryLeft()})
	return func(s eviction.Signal) int64 {
		for i := range d.Observations {
			if o := &d.Observations[i]; o.Signal == s {
				return o.Capacity
			}
		}
		return 0
	}
}
