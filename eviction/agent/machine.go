package agent

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/weir-metrics/weir/eviction"
	"github.com/weir-metrics/weir/metric"
)

// Machine reads this machine at any time, outside the rounds of the pipeline.
type Machine struct {
	// Pods returns the pods of this node, or nothing without a cluster. Pod returns the one that has this
	// UID in its cgroup's path, or nil.
	Pods func() []*corev1.Pod
	Pod  func(metric.PodUID) *corev1.Pod
	// ReadNode reads only the node, ReadMemory also the memory of its pods, and Read also the rest of
	// them.
	ReadNode, ReadMemory, Read func(context.Context) (*stats.Summary, error)
	// MemoryLeft reads the figures of weir's own eviction signals; nil if they are not known.
	MemoryLeft func() *eviction.MemoryLeft
	// WorkingSet reads only the working set that a memory signal is about.
	WorkingSet func(eviction.Signal) (int64, error)
	// Layout reports whether images and containers have file systems of their own.
	Layout func(context.Context) (images, containers bool, err error)
	// Refresh measures the disk usage of pods now.
	Refresh func(context.Context)
	Cgroups func() eviction.Cgroups
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
