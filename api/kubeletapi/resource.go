package kubeletapi

import (
	dto "github.com/prometheus/client_model/go"

	"github.com/weir-metrics/weir/metric"
)

// The families of /metrics/resource, by whom they are of.
var (
	nodeFamilies = []family{
		{"node_cpu_usage_seconds_total", metric.CPUUsage, 1e9},
		{"node_memory_working_set_bytes", metric.MemoryWorkingSet, 1},
		{"node_swap_usage_bytes", metric.MemorySwap, 1},
	}
	podFamilies = []family{
		{"pod_cpu_usage_seconds_total", metric.CPUUsage, 1e9},
		{"pod_memory_working_set_bytes", metric.MemoryWorkingSet, 1},
		{"pod_swap_usage_bytes", metric.MemorySwap, 1},
	}
	containerFamilies = []family{
		{"container_cpu_usage_seconds_total", metric.CPUUsage, 1e9},
		{"container_memory_working_set_bytes", metric.MemoryWorkingSet, 1},
		{"container_swap_limit_bytes", metric.SwapLimit, 1},
		{"container_swap_usage_bytes", metric.MemorySwap, 1},
	}
)

// startHelp is what container_start_time_seconds says.
const startHelp = "When the container began, in seconds since the Unix epoch."

// resource returns the families of /metrics/resource. A nil t gives the one that says
// that nothing could be read.
func resource(t *tree) []*dto.MetricFamily {
	var f families
	failed := t == nil || t.node.Sample == nil
	f.gauge("resource_scrape_error", "1 if the node could not be read, 0 otherwise.", bit(failed), 0, nil)
	if failed {
		return f.sorted()
	}
	for i := range nodeFamilies {
		f.value(&nodeFamilies[i], t.node.Sample, nil)
	}
	for _, p := range t.pods {
		namespace, name := string(p.ref.Namespace), string(p.ref.Name)
		of := labels("namespace", namespace, "pod", name)
		for i := range podFamilies {
			f.value(&podFamilies[i], p.Sample, of)
		}
		for _, c := range p.containers {
			of := labels("container", c.name, "namespace", namespace, "pod", name)
			for i := range containerFamilies {
				f.value(&containerFamilies[i], c.Sample, of)
			}
			if c.Instance.Start != 0 {
				f.gauge("container_start_time_seconds", startHelp, float64(c.Instance.Start)/1e9, 0, of)
			}
		}
	}
	return f.sorted()
}
