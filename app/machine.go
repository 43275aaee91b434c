package app

import (
	"context"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/types"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/weir-metrics/weir/eviction"
	"github.com/weir-metrics/weir/eviction/kubeletconfig"
)

// machine is how this machine is read at the moment one asks, beside the rounds of the
// pipeline.
type machine struct {
	// peek reads the node alone, read its pods too, readAll the containers of these as well.
	peek, read, readAll func(context.Context) (*stats.Summary, error)
	layout              func(context.Context) (images, containers bool, err error)
	// refresh looks anew at what pods use of disks; scan does in the background.
	refresh func(context.Context)
	scan    func(context.Context) error
	cgroups func() eviction.Cgroups // where they are now
	io.Closer
}

// Where a node's disks are looked at unless the flags say otherwise.
const (
	defaultKubeletRoot   = "/var/lib/kubelet"
	defaultContainerRoot = "/var/lib/containerd"
)

// has reports whether what is read of the node has the pod.
func (m *machine) has(ctx context.Context, uid types.UID) (bool, error) {
	s, err := m.read(ctx)
	if s == nil {
		return false, err
	}
	for i := range s.Pods {
		if s.Pods[i].PodRef.UID == string(uid) {
			return true, nil
		}
	}
	return false, nil
}

// capacities returns what there is of each signal now; zero for what is not known.
func (m *machine) capacities(ctx context.Context) func(eviction.Signal) int64 {
	s, _ := m.read(ctx) // what it lacks is not known
	d := eviction.Decide(&eviction.Input{Now: time.Now(), Settings: kubeletconfig.Default().Settings(), Summary: s})
	return func(of eviction.Signal) int64 {
		for i := range d.Observations {
			if o := &d.Observations[i]; o.Signal == of {
				return o.Capacity
			}
		}
		return 0
	}
}
