package model

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/weir-metrics/weir/metric"
)

// exportSeries is one node or container of /api/v1/metric-export.
type exportSeries struct {
	Metrics map[string][]exportPoint `json:"metrics"`
	Labels  map[string]string        `json:"labels,omitempty"`
}

// exportPoint is a value and the period it covers: a moment or, for a counter, the time since the
// counter was zero.
type exportPoint struct {
	Start  time.Time         `json:"start"`
	End    time.Time         `json:"end"`
	Labels map[string]string `json:"labels,omitempty"`
	Value  any               `json:"value"`
}

// isExported reports whether an export holds the metric. It holds no rates, and of the metrics of
// group Spec only the limits.
func isExported(d *metric.Descriptor) bool {
	switch d.ID {
	case metric.Uptime, metric.CPULimit, metric.MemoryLimit:
		return true
	}
	return !d.NotInHeapster && d.Type != metric.Rate && d.Group != metric.Spec
}

// isCumulative reports whether Heapster called a metric cumulative.
func isCumulative(d *metric.Descriptor) bool {
	return d.Type == metric.Cumulative || d.ID == metric.Uptime
}

// isLabelled reports whether Heapster kept a metric only for parts of an entity.
func isLabelled(d *metric.Descriptor) bool {
	return d.Parts != "" && d.Parts != "interface"
}

// writeExport answers with the newest numbers of nodes, containers and system containers. It keeps
// only one of them in memory as JSON at a time.
func (r *request) writeExport() *requestError {
	r.writeHeader()
	if r.r.Method == "HEAD" {
		return nil
	}
	write := func(s string) bool { _, err := r.w.Write([]byte(s)); return err == nil }
	if !write("[") {
		return nil // the client has gone, here and below
	}
	enc := json.NewEncoder(r.w)
	enc.SetEscapeHTML(false)
	separator := "\n"
	alive := true
	for _, kind := range []metric.Kind{metric.Node, metric.System, metric.Container} {
		var owner metric.Entity
		var ts exportSeries
		flush := func() {
			if len(ts.Metrics) > 0 {
				alive = alive && write(separator) && enc.Encode(&ts) == nil
				separator = ","
			}
		}
		r.view.Each(kind, func(s *metric.Sample) bool {
			if e := s.Entity.Whole(); e != owner || ts.Metrics == nil {
				flush()
				owner, ts = e, exportSeries{Metrics: map[string][]exportPoint{}, Labels: r.exportLabels(s)}
			}
			addPoints(&ts, s)
			return alive
		})
		flush()
	}
	if alive {
		write("]\n")
	}
	return nil
}

// addPoints adds the values of a sample of an entity or of one of its parts.
func addPoints(ts *exportSeries, s *metric.Sample) {
	for id, v := range s.Values.All() {
		d := id.Describe()
		// An entity's own traffic is the sum over its interfaces, and Heapster had no points for
		// that sum. An entity's own disk I/O is the sum over its devices, and Heapster had points
		// only for the devices.
		if !isExported(d) || !isFinite(v) || s.Entity.Part != "" && !isLabelled(d) || s.Entity.Part == "" && d.Group == metric.IO {
			continue
		}
		end := s.Time(d.Group).UTC()
		p := exportPoint{Start: end, End: end, Value: v * heapsterFactor(id)}
		if start := s.Instance.StartTime(); isCumulative(d) && !start.IsZero() {
			p.Start = start.UTC()
		}
		if isInteger(id) {
			p.Value = int64(toUnsigned(v * heapsterFactor(id)))
		}
		if isLabelled(d) {
			p.Labels = labelOf(s.Entity.Part)
		}
		ts.Metrics[d.Name] = append(ts.Metrics[d.Name], p)
	}
}

// exportLabels returns the labels of an entity in an export.
func (r *request) exportLabels(s *metric.Sample) map[string]string {
	e := s.Entity
	labels := map[string]string{"nodename": string(e.Node), "hostname": string(e.Node)}
	node := r.facts.Node(e.Node)
	if node != nil {
		for _, a := range node.Addresses {
			if a.Type == "Hostname" {
				labels["hostname"] = a.Address
			}
		}
	}
	switch e.Kind {
	case metric.Node:
		labels["container_name"] = "machine"
		if node != nil {
			addLabels(labels, node.Labels)
		}
	case metric.System:
		labels["container_name"] = e.Name
	case metric.Container:
		labels["container_name"] = e.Name
		labels["pod_name"] = string(e.Pod)
		labels["pod_namespace"], labels["namespace_name"] = string(e.Namespace), string(e.Namespace)
		if s.Instance.UID != "" {
			labels["pod_id"] = string(s.Instance.UID)
		}
		if p := r.facts.Pod(e.PodRef()); p != nil {
			labels["pod_id"] = string(p.UID)
			addLabels(labels, p.Labels)
		}
	}
	return labels
}

// addLabels adds an object's labels as one string, in Heapster's format.
func addLabels(to, owner map[string]string) {
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(owner)) {
		pairs = append(pairs, key+":"+owner[key])
	}
	if pairs != nil {
		to["labels"] = strings.Join(pairs, ",")
	}
}

// exportSchema is the answer of /api/v1/metric-export-schema.
type exportSchema struct {
	Metrics      []metricDescriptor `json:"metrics,omitempty"`
	CommonLabels []labelDescriptor  `json:"common_labels,omitempty"`
	PodLabels    []labelDescriptor  `json:"pod_labels,omitempty"`
}

type metricDescriptor struct {
	Name        string            `json:"name,omitempty"`
	Description string            `json:"description,omitempty"`
	Labels      []labelDescriptor `json:"labels,omitempty"`
	Type        string            `json:"type,omitempty"`       // gauge or cumulative
	ValueType   string            `json:"value_type,omitempty"` // int64 or double
	Units       string            `json:"units,omitempty"`      // bytes, ms, ns or millicores; none for a count
}

type labelDescriptor struct {
	Key         string `json:"key,omitempty"`
	Description string `json:"description,omitempty"`
}

// writeSchema answers with a description of every metric and label of an export.
func (r *request) writeSchema() *requestError {
	s := exportSchema{
		CommonLabels: []labelDescriptor{
			{"nodename", "the node's name"},
			{"hostname", "the node's address of type Hostname, else its name"},
			{"container_name", "the container's name; machine for the node itself"},
			{"labels", "the labels of the pod or node, as key:value, separated by commas"},
		},
		PodLabels: []labelDescriptor{
			{"pod_name", "the pod's name"},
			{"pod_id", "the pod's UID"},
			{"pod_namespace", "the pod's namespace"},
			{"namespace_name", "the pod's namespace"},
		},
	}
	for i := range metric.Catalogue {
		d := &metric.Catalogue[i]
		if !isExported(d) {
			continue
		}
		m := metricDescriptor{Name: d.Name, Description: d.Help, Type: "gauge", ValueType: "double", Units: heapsterUnit(d)}
		if isCumulative(d) {
			m.Type = "cumulative"
		}
		if isInteger(d.ID) {
			m.ValueType = "int64"
		}
		switch {
		case d.Parts == "accelerator":
			m.Labels = []labelDescriptor{{"accelerator_id", "the accelerator"}}
		case isLabelled(d):
			m.Labels = []labelDescriptor{{"resource_id", "the device, or Volume: and the volume's name, or / for the file system of a node or container itself"}}
		}
		s.Metrics = append(s.Metrics, m)
	}
	return r.writeJSON(s)
}

// heapsterUnit returns Heapster's word for the unit. It is empty for a count.
func heapsterUnit(d *metric.Descriptor) string {
	switch {
	case d.ID == metric.Uptime:
		return "ms"
	case d.Unit == metric.Nanoseconds:
		return "ns"
	case d.Unit == metric.Nanocores:
		return "millicores"
	case d.Unit == metric.Bytes:
		return "bytes"
	}
	return ""
}

// oldNames are the names of metrics before Heapster 1.0. Heapster continued to serve them, and old
// clients still ask for them.
var oldNames = map[string]metric.ID{
	"cpu-usage":      metric.CPUUsageRate,
	"cpu-limit":      metric.CPULimit,
	"memory-limit":   metric.MemoryLimit,
	"memory-usage":   metric.MemoryUsage,
	"memory-working": metric.MemoryWorkingSet,
}

// metricOf returns the metric with this Heapster name, current or deprecated.
func metricOf(name string) (metric.ID, bool) {
	if id, ok := oldNames[name]; ok {
		return id, true
	}
	id, ok := metric.ByName(name)
	// ByName also accepts Prometheus names, which promise other units.
	return id, ok && id.Describe().Name == name
}

// heapsterFactor returns the factor that converts a value from the catalogue's unit to Heapster's.
func heapsterFactor(id metric.ID) float64 {
	switch id {
	case metric.Uptime:
		return 1e-6 // milliseconds; only CPU time was in nanoseconds
	case metric.AcceleratorDutyCycle:
		return 100 // percent
	}
	return id.Describe().Unit.Heapster()
}

// isInteger reports whether Heapster kept the metric as an integer. It did so for all metrics
// except shares, what a node has, and rates other than CPU's.
func isInteger(id metric.ID) bool {
	switch id {
	case metric.CPUUsageRate, metric.AcceleratorDutyCycle:
		return true
	case metric.CPUNodeCapacity, metric.CPUNodeAllocatable,
		metric.MemoryNodeCapacity, metric.MemoryNodeAllocatable,
		metric.EphemeralStorageNodeCapacity, metric.EphemeralStorageNodeAllocatable:
		return false
	}
	d := id.Describe()
	return d.Type != metric.Rate && d.Unit != metric.Ratio
}

// toUnsigned returns v as the unsigned integer that every point carries.
func toUnsigned(v float64) uint64 {
	switch {
	case !(v > 0): // negative or NaN
		return 0
	case v >= math.MaxInt64: // clients read it into an int64
		return math.MaxInt64
	}
	return uint64(math.Round(v))
}
