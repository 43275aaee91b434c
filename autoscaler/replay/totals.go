package replay

import (
	"math"
	"time"
)

// Totals sum up how a workload fared.
type Totals struct {
	// Known is the time that counts here, in seconds as in all of these; Unknown that
	// in which a metric or the count of pods is not known.
	Known   Seconds `json:"knownSeconds"`
	Unknown Seconds `json:"unknownSeconds"`
	// PodHours is how long pods ran, added up.
	PodHours float64 `json:"podHours"`
	// Above is the time in which the ready pods used more than a target and its
	// tolerance, AboveLimit that in which they would have needed more CPU than their
	// limits allow.
	Above      Seconds `json:"aboveTargetSeconds"`
	AboveLimit Seconds `json:"aboveLimitSeconds"`
	// AtMax is the time with maxReplicas pods.
	AtMax Seconds `json:"atMaxSeconds"`
	// Ups and Downs are changes of the count of pods.
	Ups   int `json:"ups"`
	Downs int `json:"downs"`
	// Peak and Least are the most and the fewest pods.
	Peak  int32 `json:"peak"`
	Least int32 `json:"least"`
	// Metrics are of each metric that reacts to the count of pods.
	Metrics []MetricTotals `json:"metrics"`
}

// Seconds is a span of time that JSON tells in seconds.
type Seconds float64

// Duration converts.
func (s Seconds) Duration() time.Duration { return time.Duration(float64(s) * float64(time.Second)) }

// MetricTotals are of one metric: what a ready pod used, as a share of its target.
type MetricTotals struct {
	Name string `json:"name"`
	// Target is as the specification has it: "60%", "100".
	Target string `json:"target"`
	// Mean is over time, Peak the highest: 1 is the target.
	Mean float64 `json:"mean"`
	Peak float64 `json:"peak"`
}

// meter adds up Totals.
type meter struct {
	trace     *Trace
	targets   []target
	tolerance float64
	max       int32

	totals Totals
	begun  bool
	last   int32
	means  []mean // of each target
}

// mean adds up use times seconds, over the seconds with ready pods.
type mean struct{ sum, span, peak float64 }

func newMeter(t *Trace, list []target, tolerance float64, max int32) *meter {
	return &meter{trace: t, targets: list, tolerance: tolerance, max: max, means: make([]mean, len(list))}
}

// load is how the ready pods bear the demand: the largest use of a target that
// reacts, and how many pods would use it exactly; NaN if no target reacts. It is not
// ok if any metric is unknown.
func load(list []target, now time.Time, ready int) (use, pods float64, ok bool) {
	use, pods = math.NaN(), math.NaN()
	for i := range list {
		total, known := list[i].total(now)
		if !known {
			return math.NaN(), math.NaN(), false
		}
		if wants := total / list[i].goal; list[i].react && !(wants <= pods) {
			pods, use = wants, share(wants, ready)
		}
	}
	return use, pods, true
}

// share is what each of n bears; infinite if there is something and nobody.
func share(wants float64, n int) float64 {
	if wants == 0 {
		return 0
	}
	return wants / float64(n)
}

// count adds a span in which so many pods ran, and so many were ready.
func (m *meter) count(now time.Time, span time.Duration, running int32, ready int) {
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
	use, _, ok := load(m.targets, now, ready)
	if !ok {
		m.miss(span)
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
		total, _ := m.targets[i].total(now)
		use := total / m.targets[i].goal / float64(ready)
		of := &m.means[i]
		of.sum, of.span, of.peak = of.sum+use*span.Seconds(), of.span+span.Seconds(), max(of.peak, use)
	}
}

// miss adds a span of which nothing is known.
func (m *meter) miss(span time.Duration) { m.totals.Unknown += Seconds(span.Seconds()) }

// overLimit reports whether a container's share is more CPU than its limit.
func (m *meter) overLimit(now time.Time, ready int) bool {
	for i := range m.trace.Containers {
		c := &m.trace.Containers[i]
		total, ok := c.CPU.At(now, m.trace.hold())
		if ok && c.Limits.CPU.Set && total*1000 > float64(c.Limits.CPU.Milli)*float64(ready) {
			return true
		}
	}
	return false
}

// done returns what was added up.
func (m *meter) done() Totals {
	t := m.totals
	for i, of := range m.means {
		if m.targets[i].react && of.span > 0 {
			t.Metrics = append(t.Metrics, MetricTotals{Name: m.targets[i].name, Target: m.targets[i].aim(), Mean: of.sum / of.span, Peak: of.peak})
		}
	}
	return t
}
