package kubeletapi

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	dto "github.com/prometheus/client_model/go"

	"github.com/weir-metrics/weir/metric"
)

// family is a family of metrics as a kubelet names it.
type family struct {
	name string
	id   metric.ID // whose value it is, and whose help
	per  float64   // of the catalogue's unit in the family's; 1e9 turns nanoseconds into seconds
}

// families are the metric families of one answer.
type families struct {
	byName map[string]*dto.MetricFamily
}

// gauge adds a metric that is none of the catalogue's. At is when it was read, in
// nanoseconds since the Unix epoch; 0 for no time.
func (f *families) gauge(name, help string, value float64, at int64, labels []*dto.LabelPair) {
	f.add(name, help, dto.MetricType_GAUGE, value, at, labels)
}

func (f *families) add(name, help string, kind dto.MetricType, value float64, at int64, labels []*dto.LabelPair) {
	one := f.byName[name]
	if one == nil {
		if f.byName == nil {
			f.byName = map[string]*dto.MetricFamily{}
		}
		one = &dto.MetricFamily{Name: &name, Help: &help, Type: &kind}
		f.byName[name] = one
	}
	m := &dto.Metric{Label: labels}
	if one.GetType() == dto.MetricType_COUNTER {
		m.Counter = &dto.Counter{Value: &value}
	} else {
		m.Gauge = &dto.Gauge{Value: &value}
	}
	if at != 0 {
		ms := at / 1e6
		m.TimestampMs = &ms
	}
	one.Metric = append(one.Metric, m)
}

// value adds the value that s has of a family, if it was told.
func (f *families) value(of *family, s *metric.Sample, labels []*dto.LabelPair) {
	v, at, ok := get(s, of.id)
	if !ok {
		return
	}
	d, kind := of.id.Describe(), dto.MetricType_GAUGE
	if d.Type == metric.Cumulative {
		kind = dto.MetricType_COUNTER
	}
	f.add(of.name, d.Help, kind, v/of.per, at, labels)
}

// sorted returns the families by name.
func (f *families) sorted() []*dto.MetricFamily {
	out := make([]*dto.MetricFamily, 0, len(f.byName))
	for _, one := range f.byName {
		out = append(out, one)
	}
	slices.SortFunc(out, func(a, b *dto.MetricFamily) int { return strings.Compare(a.GetName(), b.GetName()) })
	return out
}

// labels makes labels, sorted by name, of names and values in turn.
func labels(pairs ...string) []*dto.LabelPair {
	out := make([]*dto.LabelPair, 0, len(pairs)/2)
	for i := 0; i < len(pairs); i += 2 {
		value := readable(pairs[i+1])
		out = append(out, &dto.LabelPair{Name: &pairs[i], Value: &value})
	}
	slices.SortFunc(out, func(a, b *dto.LabelPair) int { return strings.Compare(a.GetName(), b.GetName()) })
	return out
}

// readable returns s with what is no UTF-8 written as \xff: a cgroup may be called
// anything, and one such label would cost a reader the whole answer.
func readable(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return strings.Trim(strconv.Quote(s), `"`)
}

// bit is 1 for yes.
func bit(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
