package custommetrics

import (
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/metrics/pkg/apis/custom_metrics"

	"github.com/weir-metrics/weir/metric"
)

// reading is a value with its time: of an object, or of some of its parts.
type reading struct {
	value  float64 // in the catalogue's unit
	parts  int
	at     int64 // nanoseconds since the Unix epoch
	window time.Duration
}

// read returns what a sample says of d, and whether it says anything.
func read(s *metric.Sample, d *metric.Descriptor) (reading, bool) {
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

// add counts another part's reading into r.
func (r *reading) add(o reading) {
	r.value += o.value
	r.parts += o.parts
	if r.at == 0 || o.at != 0 && o.at < r.at {
		r.at, r.window = o.at, o.window
	}
}

// measure returns the value of an object, and whether there is one.
func (q *question) measure(e metric.Entity) (reading, bool) {
	if q.parts.whole() {
		s, ok := q.view.Lookup(e)
		if !ok {
			return reading{}, false
		}
		return read(s, q.d)
	}
	var sum reading
	for r := range q.parts.of(q, e) {
		sum.add(r)
	}
	if sum.parts > 1 && q.d.Unit == metric.Ratio {
		sum.value /= float64(sum.parts)
	}
	return sum, sum.parts > 0
}

// value writes a reading as the API does.
func (q *question) value(e metric.Entity, r reading) custom_metrics.MetricValue {
	v := custom_metrics.MetricValue{
		DescribedObject: q.reference(e),
		Metric:          custom_metrics.MetricIdentifier{Name: q.d.Prometheus, Selector: q.parts.labels},
		Timestamp:       metav1.Time{Time: q.view.At()},
		Value:           quantity(r.value, q.d.Unit),
	}
	if r.at != 0 {
		v.Timestamp.Time = time.Unix(0, r.at)
	}
	if d := q.d; d.Type != metric.Rate {
		v.WindowSeconds = new(int64)
	} else if r.window > 0 {
		seconds := max(1, int64(r.window.Round(time.Second)/time.Second))
		v.WindowSeconds = &seconds
	}
	return v
}
