package clustermetrics

import (
	"k8s.io/utils/ptr"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/metric/series"
)

// kubernetesName is the name of a metric of entities of a kind, or of their parts.
type kubernetesName struct {
	kind   metric.Kind
	part   string
	id     metric.ID
	name   string
	labels string // before those of the entity, in the text format; with a comma at the end
}

// kubernetesNames has each name once: a family has series of one kind of entity.
var kubernetesNames = []kubernetesName{
	{metric.Container, "", metric.CPUUsage, "container_cpu_usage_seconds_total", `cpu="total",`},
	{metric.Container, "", metric.CPUPeriods, "container_cpu_cfs_periods_total", ""},
	{metric.Container, "", metric.CPUThrottledPeriods, "container_cpu_cfs_throttled_periods_total", ""},
	{metric.Container, "", metric.MemoryWorkingSet, "container_memory_working_set_bytes", ""},
	{metric.Container, "", metric.MemoryRSS, "container_memory_rss", ""},
	{metric.Container, "", metric.MemoryCache, "container_memory_cache", ""},
	{metric.Container, "", metric.MemorySwap, "container_memory_swap", ""},
	{metric.Container, "device", metric.DiskReadBytes, "container_fs_reads_bytes_total", ""},
	{metric.Container, "device", metric.DiskWriteBytes, "container_fs_writes_bytes_total", ""},
	{metric.Pod, "interface", metric.NetworkRx, "container_network_receive_bytes_total", ""},
	{metric.Pod, "interface", metric.NetworkTx, "container_network_transmit_bytes_total", ""},
}

// kubernetesNameOf returns the name of a metric among KubernetesNames, or nil.
func kubernetesNameOf(k metric.Kind, part string, id metric.ID) *kubernetesName {
	for i := range kubernetesNames {
		if n := &kubernetesNames[i]; n.kind == k && n.part == part && n.id == id {
			return n
		}
	}
	return nil
}

// image returns the label image of a container; empty if the API server does not know it.
func image(known *cluster.Facts, e *metric.Entity) series.Label {
	l := series.Label{Name: "image"}
	if c := known.Pod(metric.PodRef{Namespace: e.Namespace, Name: e.Pod}).Container(e.Name); c != nil {
		l.Value = c.Image
	}
	return l
}

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

func eachNode(do func(*cluster.Node, *metric.Entity, factWriter)) func(*cluster.Facts, factWriter) {
	return func(f *cluster.Facts, write factWriter) {
		for n := range f.EachNode {
			e := metric.Entity{Kind: metric.Node, Node: n.Name}
			do(n, &e, write)
		}
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
func owners(kind, label string, owner func(*cluster.Pod) cluster.Owner) func(*cluster.Facts, factWriter) {
	type object struct {
		namespace metric.Namespace
		name      string
	}
	return func(f *cluster.Facts, write factWriter) {
		seen := map[object]bool{}
		for p := range f.EachPod {
			own := ownerOf(p)
			key := object{p.Namespace, own.Name}
			if own.Kind != kind || seen[key] {
				continue
			}
			seen[key] = true
			above := owner(p)
			if above == own {
				above = cluster.Owner{}
			}
			e := metric.Entity{Kind: metric.Namespaced, Namespace: p.Namespace}
			write(&e, 1, append([]series.Label{{Name: label, Value: own.Name}}, ownerLabels(above)...)...)
		}
	}
}

func ownerLabels(o cluster.Owner) []series.Label {
	controls := ""
	if o.Kind != "" {
		controls = "true"
	}
	return []series.Label{{Name: "owner_kind", Value: o.Kind}, {Name: "owner_name", Value: o.Name}, {Name: "owner_is_controller", Value: controls}}
}

func ownerOf(p *cluster.Pod) cluster.Owner { return ptr.Deref(p.Owner, cluster.Owner{}) }
