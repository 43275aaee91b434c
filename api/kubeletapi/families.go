package kubeletapi

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	dto "github.com/prometheus/client_model/go"

	"github.com/weir-metrics/weir/metric"
)

// family is a metric family with a kubelet's name. Its value and help are those of metric id in the
// catalogue.
type family struct {
	name string
	id   metric.ID
	per  float64 // how many of the catalogue's units are one of the family's: 1e9 for nanoseconds in seconds
}

// families are the metric families of one answer, by name.
type families map[string]*dto.MetricFamily

// gauge adds a value that is not in the catalogue. at is when it was read, in nanoseconds since the
// Unix epoch, or 0 for no timestamp.
func (f families) gauge(name, help string, value float64, at int64, labels []*dto.LabelPair) {
	f.add(name, help, dto.MetricType_GAUGE, value, at, labels)
}

func (f families) add(name, help string, kind dto.MetricType, value float64, at int64, labels []*dto.LabelPair) {
	if f[name] == nil {
		f[name] = &dto.MetricFamily{Name: &name, Help: &help, Type: &kind}
	}
	m := &dto.Metric{Label: labels}
	if kind == dto.MetricType_COUNTER {
		m.Counter = &dto.Counter{Value: &value}
	} else {
		m.Gauge = &dto.Gauge{Value: &value}
	}
	if at != 0 {
		m.TimestampMs = new(at / 1e6)
	}
	f[name].Metric = append(f[name].Metric, m)
}

// values adds the values of s for the given families, if s has them.
func (f families) values(list []family, s *metric.Sample, labels []*dto.LabelPair) {
	for _, one := range list {
		v, at, ok := get(s, one.id)
		if !ok {
			continue
		}
		d, kind := one.id.Describe(), dto.MetricType_GAUGE
		if d.Type == metric.Cumulative {
			kind = dto.MetricType_COUNTER
		}
		f.add(one.name, d.Help, kind, v/one.per, at, labels)
	}
}

// sorted returns the families by name.
func (f families) sorted() []*dto.MetricFamily {
	return slices.SortedFunc(maps.Values(f), func(a, b *dto.MetricFamily) int { return cmp.Compare(a.GetName(), b.GetName()) })
}

// labels returns labels sorted by name. pairs are alternating names and values.
func labels(pairs ...string) []*dto.LabelPair {
	var out []*dto.LabelPair
	for pair := range slices.Chunk(pairs, 2) {
		out = append(out, &dto.LabelPair{Name: &pair[0], Value: new(validUTF8(pair[1]))})
	}
	slices.SortFunc(out, func(a, b *dto.LabelPair) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return out
}

// validUTF8 returns s with invalid bytes written as \xff. A cgroup can have any name, and one
// invalid label would make the whole answer invalid.
func validUTF8(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return strings.Trim(strconv.Quote(s), `"`)
}

// errorGauge adds a gauge that is 1 if something could not be read.
func (f families) errorGauge(name, what string, failed bool) {
	value := 0.0
	if failed {
		value = 1
	}
	f.gauge(name, "1 if "+what+" could not be read, 0 otherwise.", value, 0, nil)
}
