package clustermetrics

import (
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/metric/series"
)

// applied are the requests and limits in force, where they differ from those of the specification.
var applied = []struct {
	id   metric.ID
	name string
}{
	{metric.CPURequest, "cpu_request_applied_cores"},
	{metric.CPULimit, "cpu_limit_applied_cores"},
	{metric.MemoryRequest, "memory_request_applied_bytes"},
	{metric.MemoryLimit, "memory_limit_applied_bytes"},
}

// resizes returns the families about resizes in place that nodes have not applied. It returns none if there
// are none.
func resizes(known *cluster.Facts) []factFamily {
	var pods []*cluster.Pod
	for p := range known.EachPod {
		if p.Resize != nil {
			pods = append(pods, p)
		}
	}
	if len(pods) == 0 {
		return nil
	}
	all := []factFamily{{
		"weir_pod_resize", "Resizes in place that the node has not applied, by the pod's condition; Pending before the node has seen it.", metric.Pod,
		func(_ *cluster.Facts, write factWriter) {
			for _, p := range pods {
				e := podEntity(p)
				write(&e, 1, series.Label{Name: "state", Value: p.Resize.StateOrPending()})
			}
		},
	}}
	for _, kind := range [...]metric.Kind{metric.Container, metric.Pod} {
		for _, a := range applied {
			all = append(all, factFamily{
				"weir_" + kind.String() + "_" + a.name, "The " + cluster.Applied{ID: a.id}.Name() + " in force, where the node has not applied that of the specification.", kind,
				func(_ *cluster.Facts, write factWriter) { writeApplied(pods, kind, a.id, write) },
			})
		}
	}
	return all
}

// writeApplied writes the values in force of containers, or of pods themselves.
func writeApplied(pods []*cluster.Pod, kind metric.Kind, id metric.ID, write factWriter) {
	for _, p := range pods {
		for _, a := range p.Resize.Applied {
			if a.ID != id || a.Value < 0 || (a.Container == "") != (kind == metric.Pod) {
				continue
			}
			e := podEntity(p)
			e.Kind, e.Name = kind, a.Container
			write(&e, series.Value(a.Value, id.Describe().Unit))
		}
	}
}
