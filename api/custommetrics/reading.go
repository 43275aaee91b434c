package custommetrics

import (
	"math"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/metrics/pkg/apis/custom_metrics"

	"github.com/weir-metrics/weir/cluster/resourceusage"
	"github.com/weir-metrics/weir/metric"
)

// reading is a value and its time, of one object or of several parts.
type reading struct {
	value  float64 // in the catalogue's unit
	parts  int
	at     int64 // nanoseconds since the Unix epoch
	window time.Duration
}

// readSample returns the value of d in a sample, and whether there is one.
func readSample(s *metric.Sample, d *metric.Descriptor) (reading, bool) {
	v, ok := s.Values.Get(d.ID)
	if !ok || !s.Servable(d.Group) || math.IsNaN(v) || math.IsInf(v, 0) {
		return reading{}, false
	}
	r := reading{value: v, parts: 1, at: s.Times[d.Group]}
	if d.Type == metric.Rate {
		if w := s.Rates[d.Group]; w.End != 0 {
			r.at, r.window = w.End, w.Length
		}
	}
	return r, true
}

// add adds the reading of another part.
func (r *reading) add(o reading) {
	r.value += o.value
	r.parts += o.parts
	if r.at == 0 || o.at != 0 && o.at < r.at {
		r.at, r.window = o.at, o.window
	}
}

// measure returns the value of an object, and whether there is one.
func (m *metricRequest) measure(e metric.Entity) (reading, bool) {
	if m.parts.whole() {
		return m.readEntity(e)
	}
	var sum reading
	for _, r := range m.parts.readings(m, e) {
		sum.add(r)
	}
	if sum.parts > 1 && m.descriptor.Unit == metric.Ratio {
		sum.value /= float64(sum.parts)
	}
	return sum, sum.parts > 0
}

// readEntity returns the value of one entity, and whether there is one.
func (m *metricRequest) readEntity(e metric.Entity) (reading, bool) {
	s, ok := m.view.Lookup(e)
	if !ok || m.hasEnded(s) {
		return reading{}, false
	}
	r, ok := readSample(s, m.descriptor)
	if ok && m.rule != nil {
		r = m.readOverTime(s, r)
	}
	return r, ok
}

// hasEnded reports whether the value is of a run that the API server knows to have ended since its
// node was read. Numbers that are not of CPU or memory are served until the next read.
func (m *metricRequest) hasEnded(s *metric.Sample) bool {
	if !resourceusage.EndsWithRun(m.descriptor.ID) {
		return false
	}
	p, run := m.facts.Pod(s.Entity.PodRef()), resourceusage.RunOf(s)
	switch s.Entity.Kind {
	case metric.Pod:
		return resourceusage.PodHasEnded(p, &run, func() []*metric.Sample {
			_, containers := m.view.Pod(p.PodRef)
			return containers
		})
	case metric.Container:
		return p != nil && run.HasEnded(p.Container(s.Entity.Name))
	}
	return false
}

// value converts a reading to the API's type.
func (m *metricRequest) value(e metric.Entity, r reading) custom_metrics.MetricValue {
	v := custom_metrics.MetricValue{
		DescribedObject: m.reference(e),
		Metric:          custom_metrics.MetricIdentifier{Name: m.name(), Selector: m.parts.labels},
		Timestamp:       metav1.Time{Time: m.view.At()},
		Value:           quantity(r.value, m.descriptor.Unit),
	}
	if r.at != 0 {
		v.Timestamp.Time = time.Unix(0, r.at)
	}
	if r.window > 0 {
		seconds := max(1, int64(r.window.Round(time.Second)/time.Second))
		v.WindowSeconds = &seconds
	} else if m.descriptor.Type != metric.Rate {
		v.WindowSeconds = new(int64)
	}
	return v
}

// scale returns the power of ten of the last digit in values of a unit, after conversion to the
// base unit.
func scale(u metric.Unit) resource.Scale {
	switch u {
	case metric.Nanocores, metric.Nanoseconds:
		return resource.Nano
	case metric.Bytes, metric.Count:
		return 0
	case metric.Ratio:
		return resource.Micro
	default:
		return resource.Milli
	}
}

// quantity converts a value in the catalogue's unit to a quantity in Prometheus' base unit, rounded
// to scale. Larger numbers are as precise as int64 allows.
func quantity(v float64, u metric.Unit) resource.Quantity {
	format := resource.DecimalSI
	if u == metric.Bytes {
		format = resource.BinarySI
	}
	s := scale(u)
	if s != resource.Nano { // values of other scales are whole numbers already
		v *= math.Pow10(-int(s))
	}
	v = math.RoundToEven(v)
	for math.Abs(v) >= 1<<63 {
		v, s = math.RoundToEven(v/1000), s+3
	}
	if s == 0 {
		return *resource.NewQuantity(int64(v), format)
	}
	q := resource.NewScaledQuantity(int64(v), s)
	q.Format = format
	return *q
}
