package resource

import (
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/kubelet/payload"
)

// value is the content of the lines of a family.
type value uint8

const (
	cpu value = iota
	memory
	swap
	swapLimit
	start
	failure // 1 if the kubelet could not read everything
	numValues
)

// family describes a family of the endpoint.
type family struct {
	kind  metric.Kind
	value value
	id    metric.ID
	scale int // power of ten; 9 from seconds to nanoseconds
}

// amount returns the value of a line in the catalogue's unit.
func (f *family) amount(n payload.Number) (float64, bool) {
	if f.scale != 0 {
		whole, ok := n.Scaled(f.scale)
		return float64(whole), ok
	}
	return n.Value()
}

// families has all families of the endpoint, including those of older kubelets, by name.
var families = map[string]*family{
	"container_cpu_usage_seconds_total":  {metric.Container, cpu, metric.CPUUsage, 9},
	"container_memory_working_set_bytes": {metric.Container, memory, metric.MemoryWorkingSet, 0},
	"container_start_time_seconds":       {metric.Container, start, 0, 9},
	"container_swap_limit_bytes":         {metric.Container, swapLimit, metric.SwapLimit, 0},
	"container_swap_usage_bytes":         {metric.Container, swap, metric.MemorySwap, 0},
	"node_cpu_usage_seconds_total":       {metric.Node, cpu, metric.CPUUsage, 9},
	"node_memory_working_set_bytes":      {metric.Node, memory, metric.MemoryWorkingSet, 0},
	"node_swap_usage_bytes":              {metric.Node, swap, metric.MemorySwap, 0},
	"pod_cpu_usage_seconds_total":        {metric.Pod, cpu, metric.CPUUsage, 9},
	"pod_memory_working_set_bytes":       {metric.Pod, memory, metric.MemoryWorkingSet, 0},
	"pod_swap_usage_bytes":               {metric.Pod, swap, metric.MemorySwap, 0},
	"resource_scrape_error":              {metric.Node, failure, 0, 0},
	"scrape_error":                       {metric.Node, failure, 0, 0}, // until Kubernetes 1.28
}

// entityOf returns the entity that labels name. ok is false if they name none. valid is false if
// they are not a list of labels.
func entityOf(kind metric.Kind, labels []byte) (e metric.Entity, ok, valid bool) {
	e.Kind = kind
	valid = payload.EachLabel(labels, func(name []byte, value string) {
		switch string(name) {
		case "namespace":
			e.Namespace = metric.Namespace(value)
		case "pod":
			e.Pod = metric.PodName(value)
		case "container":
			e.Name = value
		}
	})
	switch kind {
	case metric.Container:
		ok = e.Namespace != "" && e.Pod != "" && e.Name != ""
	case metric.Pod:
		ok = e.Namespace != "" && e.Pod != ""
		e.Name = ""
	default:
		ok = true
		e = metric.Entity{Kind: kind}
	}
	return e, ok, valid
}
