package kubeletapi

import (
	dto "github.com/prometheus/client_model/go"

	"github.com/weir-metrics/weir/metric"
)

// The families of /metrics/resource.
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

// resource returns the families of /metrics/resource. t is nil if nothing could be read.
func resource(t *tree) []*dto.MetricFamily {
	f := families{}
	failed := t == nil || t.node.Sample == nil
	f.errorGauge("resource_scrape_error", "the node", failed)
	if failed {
		return f.sorted()
	}
	f.values(nodeFamilies, t.node.Sample, nil)
	for _, p := range t.pods {
		namespace, name := string(p.ref.Namespace), string(p.ref.Name)
		f.values(podFamilies, p.Sample, labels("namespace", namespace, "pod", name))
		for _, c := range p.containers {
			containerLabels := labels("container", c.container, "namespace", namespace, "pod", name)
			f.values(containerFamilies, c.Sample, containerLabels)
			if c.Instance.Start != 0 {
				f.gauge("container_start_time_seconds", "When the container began, in seconds since the Unix epoch.", float64(c.Instance.Start)/1e9, 0, containerLabels)
			}
		}
	}
	return f.sorted()
}
