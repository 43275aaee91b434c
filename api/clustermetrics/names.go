package clustermetrics

import (
	"fmt"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/metric/series"
)

// Names says which names and labels series have.
type Names string

// The names. The empty Names are WeirNames.
const (
	// WeirNames are weir_<kind>_<name>, with the labels of series.LabelsOf.
	WeirNames Names = "weir"
	// KubernetesNames are those of cAdvisor and kube-state-metrics that the recording rules and the
	// dashboards "Compute Resources" of kubernetes-mixin ask for. Other metrics have no series.
	KubernetesNames Names = "kubernetes"
)

func parseNames(name string) (Names, error) {
	switch n := Names(name); n {
	case WeirNames, KubernetesNames:
		return n, nil
	}
	return "", fmt.Errorf("no names are called %q: there are weir, kubernetes", name)
}

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
