package rate

import (
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// track is the state of one entity, unpacked. Between rounds it is a packedTrack.
type track struct {
	instance metric.Instance
	pod      *cluster.Pod       // as the API server knew it when the entity was last read
	run      *cluster.Container // the present run by the API server when it was last read
	seen     time.Duration      // our clock when it was last reported and not rejected
	isNew    bool               // it was never reported
	steady   bool               // its start was the same in the previous report
	absent   uint8              // later rounds in which the node answered; at most maxAbsent
	used     groupMask          // the groups with any state; bit g is group g
	groups   [metric.NumGroups]group
	last     values // the values that were last served
}

// group is the state of one group of an entity: what was last served, and the readings with
// which later ones are paired.
type group struct {
	time     int64 // of the reading that was served; 0 if none
	window   metric.Window
	reason   metric.Reason
	received bool          // the time is by our clock
	served   bool          // numbers of this instance were served
	read     time.Duration // our clock at the last new reading
	series   series
}

// hasNumbers reports whether numbers of the group were served last.
func (g *group) hasNumbers() bool {
	return g.reason == metric.Measured || g.reason == metric.Ambiguous
}

// since returns our clock when the group last had a new reading.
func (g *group) since() time.Duration {
	if g.series.on {
		return g.series.since
	}
	return g.read
}

// maxGroups is the number of bits of a groupMask.
const maxGroups = 16

// groupMask is a set of groups: bit g is group g.
type groupMask uint16

// values are like metric.Values, but of a fixed size, so that keep allocates nothing.
type values struct {
	present metric.IDSet
	dense   [metric.NumMetrics]float64 // those present, in the catalogue's order
	n       int
}

func (v *values) reset() { v.present, v.n = metric.IDSet{}, 0 }

// keep copies o to v.
func (v *values) keep(o *metric.Values) {
	present, dense := o.Dense()
	v.present, v.n = present, copy(v.dense[:], dense)
}

func (v *values) get(id metric.ID) (float64, bool) {
	return v.dense[min(v.present.Rank(id), len(v.dense)-1)], v.present.Has(id)
}

// keep records what sample serves.
func (t *track) keep(sample *metric.Sample) {
	for g := range t.groups {
		at, end, reason := sample.Times[g], sample.Rates[g].End, sample.Reasons[g]
		if t.used&(1<<g) == 0 && at|end == 0 && reason == metric.Unjudged {
			continue
		}
		t.used |= 1 << g
		kept := &t.groups[g]
		kept.time, kept.window, kept.reason = at, sample.Rates[g], reason
		kept.received, kept.served = sample.Received&(1<<g) != 0, kept.served || kept.hasNumbers()
	}
	t.last.keep(&sample.Values)
}

// lastTime returns the time of the last report, by the node's clock.
func (t *track) lastTime() int64 {
	return max(t.groups[metric.CPU].time, t.groups[metric.Memory].time)
}

// clear drops the state of an instance that ended. Its readings are not paired with later ones,
// its last values are not served, and what the API server said of it is not true of the next one.
func (t *track) clear() {
	t.pod, t.run = nil, nil
	for g := range t.groups {
		if sr := &t.groups[g].series; sr.on {
			*sr = series{on: true, stepped: sr.stepped}
		}
		t.groups[g].reason, t.groups[g].served = metric.Unjudged, false
	}
	t.last.reset()
}

// resetBaselines drops all stored readings. Later pairs begin with a reading that is still to
// come, and not with the instance's start.
func (t *track) resetBaselines() {
	for g := range t.groups {
		if sr := &t.groups[g].series; sr.on {
			sr.forget()
		}
	}
}

// distrustNextReading drops all stored readings after the node's clock stepped. The next
// reading may be from before the step.
func (t *track) distrustNextReading() {
	t.resetBaselines()
	for g := range t.groups {
		if sr := &t.groups[g].series; sr.on {
			sr.stepped, sr.unsure, sr.doubt = true, true, 0
		}
	}
}
