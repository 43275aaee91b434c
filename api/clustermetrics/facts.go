package clustermetrics

import (
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/metric/series"
)

// factFamily is a family of gauges that describes what the API server knows. Its names and labels are
// those of kube-state-metrics, except those that begin with weir_.
type factFamily struct {
	name, help string
	kind       metric.Kind // of the entities it is about
	each       func(*cluster.Facts, factWriter)
}

// factWriter writes one series about an entity. The labels follow those of series.LabelsOf.
type factWriter func(e *metric.Entity, value float64, labels ...series.Label)

// podInfo is in every answer with weir's own names.
var podInfo = []factFamily{{
	"weir_pod_info", "Pods and their workloads; a ReplicaSet of a Deployment counts as the Deployment.", metric.Pod,
	eachPod(func(p *cluster.Pod, e *metric.Entity, write factWriter) {
		w := p.Workload()
		write(e, 1, series.Label{Name: "workload", Value: w.Name}, series.Label{Name: "workload_kind", Value: w.Kind})
	}),
}}

func eachPod(do func(*cluster.Pod, *metric.Entity, factWriter)) func(*cluster.Facts, factWriter) {
	return func(f *cluster.Facts, write factWriter) {
		for p := range f.EachPod {
			e := podEntity(p)
			do(p, &e, write)
		}
	}
}

func podEntity(p *cluster.Pod) metric.Entity {
	return metric.Entity{Kind: metric.Pod, Node: p.Node, Namespace: p.Namespace, Pod: p.Name}
}

// facts writes families about what the API server knows. They count towards the limit.
func (e *exposition) facts(known *cluster.Facts, families []factFamily, f filters) {
	for i := range families {
		family := &families[i]
		if e.truncated || e.err != nil {
			return
		}
		if !f.level(family.kind) || !f.family(family.name) {
			continue
		}
		begun := false
		family.each(known, func(entity *metric.Entity, value float64, labels ...series.Label) {
			own, _ := series.LabelsOf(entity)
			switch {
			case e.truncated || !f.entity(&own):
				return
			case e.series == e.limit:
				e.truncated = true
				return
			case !begun:
				e.header(family.name, family.help, "gauge")
				begun = true
			}
			e.series++
			e.buf = append(e.buf, family.name...)
			e.buf = appendLabels(e.buf, &own, labels...)
			e.buf = append(e.buf, ' ')
			e.buf = appendValue(e.buf, value, metric.Count)
			e.buf = append(e.buf, '\n')
			e.flushIfFull()
		})
	}
}
