package rate

import (
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// track is what is remembered of one entity, spread out to work on. At rest it is
// a row.
type track struct {
	instance metric.Instance
	pod      *cluster.Pod       // of the API server, when the entity was last read
	run      *cluster.Container // the run the API server named when it was last read
	seen     time.Duration      // when it was last reported and believed, by our clock
	isNew    bool               // it never was
	steady   bool               // its start was the same in the report before
	absent   uint8              // rounds since, in which the node answered; maxAbsent for more
	used     groupMask          // the groups that hold anything; bit g is group g
	groups   [metric.NumGroups]group
	last     values // as they were last served
}

// group is what is remembered of one group of an entity: how it was last served,
// and what is kept to pair later readings with.
type group struct {
	time     int64 // of the reading served; 0 for none
	window   metric.Window
	reason   metric.Reason
	received bool          // the time is not the node's
	read     time.Duration // when there last was a new reading
	series   series
}

// hasNumbers reports whether the group's last numbers were served.
func (g *group) hasNumbers() bool {
	return g.reason == metric.Measured || g.reason == metric.Ambiguous
}

// since returns when the group was last truly read, by our clock.
func (g *group) since() time.Duration {
	if g.series.on {
		return g.series.since
	}
	return g.read
}

// maxGroups is how many groups a groupMask has bits for.
const maxGroups = 16

// groupMask is a set of groups: bit g is group g.
type groupMask uint16

// values are metric.Values in memory that is there already.
type values struct {
	present metric.IDSet
	dense   [metric.NumMetrics]float64 // in the catalogue's order, those present
	n       int
}

func (v *values) reset() { v.present, v.n = metric.IDSet{}, 0 }

// keep makes v hold what o holds.
func (v *values) keep(o *metric.Values) {
	present, dense := o.Dense()
	v.present, v.n = present, copy(v.dense[:], dense)
}

func (v *values) get(id metric.ID) (float64, bool) {
	return v.dense[min(v.present.Rank(id), len(v.dense)-1)], v.present.Has(id)
}

// keep notes how sample is served.
func (t *track) keep(sample *metric.Sample) {
	for g := range t.groups {
		at, end, reason := sample.Times[g], sample.Rates[g].End, sample.Reasons[g]
		if t.used&(1<<g) == 0 && at|end == 0 && reason == metric.Unjudged {
			continue
		}
		t.used |= 1 << g
		kept := &t.groups[g]
		kept.time, kept.window, kept.reason = at, sample.Rates[g], reason
		kept.received = sample.Received&(1<<g) != 0
	}
	t.last.keep(&sample.Values)
}

// lastTime returns the time of the last report.
func (t *track) lastTime() int64 {
	return max(t.groups[metric.CPU].time, t.groups[metric.Memory].time)
}

// clear forgets an instance: nothing of it may be paired or stand in.
func (t *track) clear() {
	for g := range t.groups {
		if sr := &t.groups[g].series; sr.on {
			*sr = series{on: true, stepped: sr.stepped}
		}
		t.groups[g].reason = metric.Unjudged
	}
	t.last.reset()
}

// resetBaselines makes every later pair begin with a sample yet to come, and none
// with the instance's start.
func (t *track) resetBaselines() {
	for g := range t.groups {
		if sr := &t.groups[g].series; sr.on {
			sr.forget()
		}
	}
}

// distrustNextReading starts afresh after the node's clock stepped: what is reported next
// may have been read before.
func (t *track) distrustNextReading() {
	t.resetBaselines()
	for g := range t.groups {
		if sr := &t.groups[g].series; sr.on {
			sr.stepped, sr.unsure = true, true
		}
	}
}
