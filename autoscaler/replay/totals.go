package replay

import (
	"math"
	"time"
)

// Totals are the sums over a run.
type Totals struct {
	// Known is the time that the totals include, in seconds like all times here. Unknown is the time
	// without a metric or a number of pods.
	Known   Seconds `json:"knownSeconds"`
	Unknown Seconds `json:"unknownSeconds"`
	// PodHours is the sum of the running times of the pods, in hours.
	PodHours float64 `json:"podHours"`
	// Above is the time in which the ready pods used more than a target plus its tolerance.
	// AboveLimit is the time in which they would have needed more CPU than their limits.
	Above      Seconds `json:"aboveTargetSeconds"`
	AboveLimit Seconds `json:"aboveLimitSeconds"`
	// AtMax is the time with maxReplicas pods.
	AtMax Seconds `json:"atMaxSeconds"`
	// Ups and Downs are the numbers of changes of the count.
	Ups   int `json:"ups"`
	Downs int `json:"downs"`
	// Peak and Least are the largest and smallest counts.
	Peak  int32 `json:"peak"`
	Least int32 `json:"least"`
	// Metrics are the metrics that depend on the number of pods.
	Metrics []MetricTotals `json:"metrics"`
}

// Seconds is a duration that JSON encodes in seconds.
type Seconds float64

// Duration converts s.
func (s Seconds) Duration() time.Duration { return time.Duration(float64(s) * float64(time.Second)) }

// MetricTotals has the usage of a ready pod by one metric, as a share of the target.
type MetricTotals struct {
	Name string `json:"name"`
	// Target is the target as in the specification: "60%", "100".
	Target string `json:"target"`
	// Mean is the mean over time and Peak the maximum; 1 is the target.
	Mean float64 `json:"mean"`
	Peak float64 `json:"peak"`
}

// totalsMeter adds up the Totals of a run.
type totalsMeter struct {
	trace     *Trace
	targets   []targetMetric
	tolerance float64
	max       int32

	totals Totals
	begun  bool
	last   int32
	means  []usageMean // one for each target
}

// usageMean adds up use times seconds, and the seconds with ready pods.
type usageMean struct{ sum, span, peak float64 }

func newMeter(t *Trace, list []targetMetric, tolerance float64, max int32) *totalsMeter {
	return &totalsMeter{trace: t, targets: list, tolerance: tolerance, max: max, means: make([]usageMean, len(list))}
}

// loadAt returns the largest use of a target that depends on the number of pods, and the number of
// pods that would use exactly the target; NaN if there is no such target. ok is false if a metric
// is not known.
func loadAt(list []targetMetric, now time.Time, ready int) (use, pods float64, ok bool) {
	use, pods = math.NaN(), math.NaN()
	for i := range list {
		total, known := list[i].totalAt(now)
		if !known {
			return math.NaN(), math.NaN(), false
		}
		if wants := total / list[i].goal; list[i].perPod && !(wants <= pods) {
			pods, use = wants, perReadyPod(wants, ready)
		}
	}
	return use, pods, true
}

// perReadyPod divides the demand by n ready pods. It returns infinity if there is demand but no
// pod.
func perReadyPod(wants float64, n int) float64 {
	if wants == 0 {
		return 0
	}
	return wants / float64(n)
}

// addSpan adds a span with this many running and ready pods.
func (m *totalsMeter) addSpan(now time.Time, span time.Duration, running int32, ready int) {
	t := &m.totals
	switch {
	case !m.begun:
		m.begun, t.Least = true, running
	case running > m.last:
		t.Ups++
	case running < m.last:
		t.Downs++
	}
	m.last, t.Peak, t.Least = running, max(t.Peak, running), min(t.Least, running)
	use, _, ok := loadAt(m.targets, now, ready)
	if !ok {
		m.addUnknown(span)
		return
	}
	seconds := Seconds(span.Seconds())
	t.Known += seconds
	t.PodHours += float64(running) * span.Hours()
	if use > 1+m.tolerance {
		t.Above += seconds
	}
	if running >= m.max {
		t.AtMax += seconds
	}
	if m.overLimit(now, ready) {
		t.AboveLimit += seconds
	}
	if ready == 0 {
		return
	}
	for i := range m.targets {
		total, _ := m.targets[i].totalAt(now)
		use := total / m.targets[i].goal / float64(ready)
		mean := &m.means[i]
		mean.sum, mean.span, mean.peak = mean.sum+use*span.Seconds(), mean.span+span.Seconds(), max(mean.peak, use)
	}
}

// addUnknown adds a span without data.
func (m *totalsMeter) addUnknown(span time.Duration) { m.totals.Unknown += Seconds(span.Seconds()) }

// overLimit reports whether a container would need more CPU than its limit.
func (m *totalsMeter) overLimit(now time.Time, ready int) bool {
	for i := range m.trace.Containers {
		c := &m.trace.Containers[i]
		total, ok := c.CPU.At(now, m.trace.maxAge())
		if ok && c.Limits.CPU.Set && total*1000 > float64(c.Limits.CPU.Milli)*float64(ready) {
			return true
		}
	}
	return false
}

// done returns the totals.
func (m *totalsMeter) done() Totals {
	t := m.totals
	for i, mean := range m.means {
		if m.targets[i].perPod && mean.span > 0 {
			t.Metrics = append(t.Metrics, MetricTotals{Name: m.targets[i].name, Target: m.targets[i].targetText(), Mean: mean.sum / mean.span, Peak: mean.peak})
		}
	}
	return t
}
