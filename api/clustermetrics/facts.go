package clustermetrics

import (
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/metric/series"
)

// factFamily is a family of gauges that says what the API server knows. Its names and labels are
// those of kube-state-metrics, except weir_pod_info.
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

// kubernetesFacts are in answers with ?names=kubernetes.
var kubernetesFacts = []factFamily{
	{"kube_pod_info", "Pods and their nodes.", metric.Pod, eachPod(func(p *cluster.Pod, e *metric.Entity, write factWriter) {
		write(e, 1, series.Label{Name: "created_by_kind", Value: ownerOf(p).Kind}, series.Label{Name: "created_by_name", Value: ownerOf(p).Name})
	})},
	{"kube_pod_owner", "Pods and their owners.", metric.Pod, eachPod(func(p *cluster.Pod, e *metric.Entity, write factWriter) {
		write(e, 1, ownerLabels(ownerOf(p))...)
	})},
	{"kube_pod_status_phase", "The phase of each pod. Phases that a pod is not in have no series.", metric.Pod, eachPod(func(p *cluster.Pod, e *metric.Entity, write factWriter) {
		if p.Phase != "" {
			write(e, 1, series.Label{Name: "phase", Value: string(p.Phase)})
		}
	})},
	{"kube_pod_container_resource_requests", "Requests of regular containers.", metric.Container, eachContainer(metric.CPURequest, metric.MemoryRequest)},
	{"kube_pod_container_resource_limits", "Limits of regular containers.", metric.Container, eachContainer(metric.CPULimit, metric.MemoryLimit)},
	{"kube_replicaset_owner", "Owners of the ReplicaSets that have pods: the Deployment, or none.", metric.Pod, owners("ReplicaSet", "replicaset", (*cluster.Pod).Workload)},
	{"kube_job_owner", "The Jobs that have pods. Their owners are not known.", metric.Pod, owners("Job", "job_name", ownerOf)},
	{"kube_node_info", "Nodes.", metric.Node, eachNode(func(_ *cluster.Node, e *metric.Entity, write factWriter) { write(e, 1) })},
	{"kube_node_status_capacity", "CPU and memory of nodes.", metric.Node, eachNode(nodeResources(metric.CPUNodeCapacity, metric.MemoryNodeCapacity))},
	{"kube_node_status_allocatable", "CPU and memory of nodes for pods.", metric.Node, eachNode(nodeResources(metric.CPUNodeAllocatable, metric.MemoryNodeAllocatable))},
	{"kubelet_running_pods", "Pods of each node in phase Running.", metric.Node, func(f *cluster.Facts, write factWriter) {
		eachNode(func(n *cluster.Node, e *metric.Entity, write factWriter) {
			running := 0
			for _, p := range f.PodsOn(n.Name) {
				if p.Phase == cluster.Running {
					running++
				}
			}
			write(e, float64(running))
		})(f, write)
	}},
}

func eachPod(do func(*cluster.Pod, *metric.Entity, factWriter)) func(*cluster.Facts, factWriter) {
	return func(f *cluster.Facts, write factWriter) {
		f.EachPod(func(p *cluster.Pod) bool {
			e := metric.Entity{Kind: metric.Pod, Node: p.Node, Namespace: p.Namespace, Pod: p.Name}
			do(p, &e, write)
			return true
		})
	}
}

func eachNode(do func(*cluster.Node, *metric.Entity, factWriter)) func(*cluster.Facts, factWriter) {
	return func(f *cluster.Facts, write factWriter) {
		f.EachNode(func(n *cluster.Node) bool {
			e := metric.Entity{Kind: metric.Node, Node: n.Name}
			do(n, &e, write)
			return true
		})
	}
}

// eachContainer writes two resources of every regular container.
func eachContainer(cpu, memory metric.ID) func(*cluster.Facts, factWriter) {
	return eachPod(func(p *cluster.Pod, e *metric.Entity, write factWriter) {
		e.Kind = metric.Container
		for i := range p.Containers {
			if c := &p.Containers[i]; c.Role == cluster.Regular {
				e.Name = c.Name
				resources(c.Spec.Values(), cpu, memory, e, write)
			}
		}
	})
}

func nodeResources(cpu, memory metric.ID) func(*cluster.Node, *metric.Entity, factWriter) {
	return func(n *cluster.Node, e *metric.Entity, write factWriter) { resources(&n.Spec, cpu, memory, e, write) }
}

func resources(v *metric.Values, cpu, memory metric.ID, e *metric.Entity, write factWriter) {
	if cores, ok := v.Get(cpu); ok {
		write(e, series.Value(cores, metric.Nanocores), series.Label{Name: "resource", Value: "cpu"}, series.Label{Name: "unit", Value: "core"})
	}
	if bytes, ok := v.Get(memory); ok {
		write(e, bytes, series.Label{Name: "resource", Value: "memory"}, series.Label{Name: "unit", Value: "byte"})
	}
}

// owners writes each owner of pods of a kind once, under a label of that name, with the owner that of
// returns for one of its pods; the object itself means that it has none.
func owners(kind, label string, of func(*cluster.Pod) cluster.Owner) func(*cluster.Facts, factWriter) {
	type object struct {
		namespace metric.Namespace
		name      string
	}
	return func(f *cluster.Facts, write factWriter) {
		seen := map[object]bool{}
		f.EachPod(func(p *cluster.Pod) bool {
			own := ownerOf(p)
			key := object{p.Namespace, own.Name}
			if own.Kind != kind || seen[key] {
				return true
			}
			seen[key] = true
			above := of(p)
			if above == own {
				above = cluster.Owner{}
			}
			e := metric.Entity{Kind: metric.Namespaced, Namespace: p.Namespace}
			write(&e, 1, append([]series.Label{{Name: label, Value: own.Name}}, ownerLabels(above)...)...)
			return true
		})
	}
}

func ownerLabels(o cluster.Owner) []series.Label {
	controls := ""
	if o.Kind != "" {
		controls = "true"
	}
	return []series.Label{{Name: "owner_kind", Value: o.Kind}, {Name: "owner_name", Value: o.Name}, {Name: "owner_is_controller", Value: controls}}
}

func ownerOf(p *cluster.Pod) cluster.Owner {
	if p.Owner == nil {
		return cluster.Owner{}
	}
	return *p.Owner
}

// facts writes families about what the API server knows. They count towards the limit.
func (x *exposition) facts(known *cluster.Facts, families []factFamily, f filters) {
	for i := range families {
		family := &families[i]
		if x.truncated || x.err != nil {
			return
		}
		if !f.level(family.kind) || !f.family(family.name) {
			continue
		}
		begun := false
		family.each(known, func(e *metric.Entity, value float64, labels ...series.Label) {
			own, _ := series.LabelsOf(e)
			switch {
			case x.truncated || !f.entity(&own):
				return
			case x.series == x.limit:
				x.truncated = true
				return
			case !begun:
				x.header(family.name, family.help, "gauge")
				begun = true
			}
			x.series++
			x.buf = append(x.buf, family.name...)
			x.buf = appendLabels(x.buf, &own, labels...)
			x.buf = append(x.buf, ' ')
			x.buf = appendValue(x.buf, value, metric.Count)
			x.buf = append(x.buf, '\n')
			x.flushIfFull()
		})
	}
}
