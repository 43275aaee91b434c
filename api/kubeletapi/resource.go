package kubeletapi

import (
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-metrics/weir/metric"
)

// family is a metric family with a kubelet's name. Its value and help are those of metric id in the
// catalogue.
type family struct {
	id   metric.ID
	per  float64 // how many of the catalogue's units are one of the family's: 1e9 for nanoseconds in seconds
	desc *prometheus.Desc
	kind prometheus.ValueType
}

func newFamily(name string, id metric.ID, per float64, labels ...string) family {
	d, kind := id.Describe(), prometheus.GaugeValue
	if d.Type == metric.Cumulative {
		kind = prometheus.CounterValue
	}
	return family{id, per, prometheus.NewDesc(name, d.Help, labels, nil), kind}
}

// The families of /metrics/resource.
var (
	nodeFamilies = []family{
		newFamily("node_cpu_usage_seconds_total", metric.CPUUsage, 1e9),
		newFamily("node_memory_working_set_bytes", metric.MemoryWorkingSet, 1),
		newFamily("node_swap_usage_bytes", metric.MemorySwap, 1),
	}
	podFamilies = []family{
		newFamily("pod_cpu_usage_seconds_total", metric.CPUUsage, 1e9, "namespace", "pod"),
		newFamily("pod_memory_working_set_bytes", metric.MemoryWorkingSet, 1, "namespace", "pod"),
		newFamily("pod_swap_usage_bytes", metric.MemorySwap, 1, "namespace", "pod"),
	}
	containerFamilies = []family{
		newFamily("container_cpu_usage_seconds_total", metric.CPUUsage, 1e9, "container", "namespace", "pod"),
		newFamily("container_memory_working_set_bytes", metric.MemoryWorkingSet, 1, "container", "namespace", "pod"),
		newFamily("container_swap_limit_bytes", metric.SwapLimit, 1, "container", "namespace", "pod"),
		newFamily("container_swap_usage_bytes", metric.MemorySwap, 1, "container", "namespace", "pod"),
	}
	startTimeDesc = prometheus.NewDesc("container_start_time_seconds", "When the container began, in seconds since the Unix epoch.",
		[]string{"container", "namespace", "pod"}, nil)
	scrapeErrorDesc = prometheus.NewDesc("resource_scrape_error", "1 if the node could not be read, 0 otherwise.", nil, nil)
)

// resourceCollector collects /metrics/resource from the newest round.
type resourceCollector struct{ newest func() *tree }

// Describe implements prometheus.Collector. It describes nothing, so that the registry accepts a round without
// some of the families.
func (resourceCollector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (r resourceCollector) Collect(to chan<- prometheus.Metric) {
	t := r.newest()
	if t == nil || t.node.Sample == nil {
		to <- prometheus.MustNewConstMetric(scrapeErrorDesc, prometheus.GaugeValue, 1)
		return
	}
	to <- prometheus.MustNewConstMetric(scrapeErrorDesc, prometheus.GaugeValue, 0)
	collect(to, nodeFamilies, t.node.Sample)
	for _, p := range t.pods {
		namespace, name := validUTF8(string(p.ref.Namespace)), validUTF8(string(p.ref.Name))
		collect(to, podFamilies, p.Sample, namespace, name)
		for _, c := range p.containers {
			container := validUTF8(c.container)
			collect(to, containerFamilies, c.Sample, container, namespace, name)
			if c.Instance.Start != 0 {
				to <- prometheus.MustNewConstMetric(startTimeDesc, prometheus.GaugeValue, float64(c.Instance.Start)/1e9, container, namespace, name)
			}
		}
	}
}

// collect sends the values of s for some families, if s has them, with the times of their reads.
func collect(to chan<- prometheus.Metric, families []family, s *metric.Sample, labels ...string) {
	for _, f := range families {
		v, at, ok := get(s, f.id)
		if !ok {
			continue
		}
		m := prometheus.MustNewConstMetric(f.desc, f.kind, v/f.per, labels...)
		if at != 0 {
			m = prometheus.NewMetricWithTimestamp(time.Unix(0, at), m)
		}
		to <- m
	}
}

// validUTF8 returns s with invalid bytes written as \xff. A cgroup can have any name, and one
// invalid label would make the whole answer invalid.
func validUTF8(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return strings.Trim(strconv.Quote(s), `"`)
}
