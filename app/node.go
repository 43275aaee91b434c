package app

import (
	"context"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/weir-metrics/weir/api/kubeletapi"
	"github.com/weir-metrics/weir/api/nodeapi"
	"github.com/weir-metrics/weir/eviction/execute"
)

// openNode opens what is known of this machine beside the rounds of the pipeline: what
// is read at the moment one asks, who would be evicted, what its pod cgroups hold. What
// this machine does not give is a warning, since the rest is worth having; but who is to
// evict must be able to look. A mistake in the flags is an error.
func (d *daemon) openNode(ctx context.Context, p *plan, f *front, newest *kubeletapi.Newest) error {
	nobody := func() []*corev1.Pod { return nil }
	names := &podNames{pods: nobody}
	if d.cluster != nil {
		names.pods = d.cluster.NodePods
	}
	o := nodeapi.Options{Node: string(p.Host.Node)}
	if d.inspector != nil {
		o.PodCgroups = podCgroups(d.inspector, p.Host.Node, d.facts)
	}
	var now func(context.Context) (*stats.Summary, error)
	machine, err := openMachine(p.Host, names, d.log)
	switch {
	case err != nil && p.Eviction != nil && p.Eviction.Mode != execute.Observe:
		return err
	case err != nil:
		d.log.Warn("nobody watches over this machine", zap.Error(err))
	default:
		d.machine, now = machine, machine.readAll
		d.sources = append(d.sources, held{machine})
	}
	if machine != nil && p.Eviction != nil {
		if d.evictor, err = openEvictor(ctx, p, machine, names, d.cluster, f.registry, d.log); err != nil {
			return err
		}
		d.sources = append(d.sources, held{d.evictor})
		o.Eviction, f.eviction = d.evictor.report, d.evictor.page
	}
	f.standIn = newStandIn(p.Host.Node, newest, d.facts, now, names.pods)
	f.node = nodeapi.NewHandler(o)
	return nil
}
