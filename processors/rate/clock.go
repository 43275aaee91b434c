package rate

import (
	"time"

	"github.com/weir-metrics/weir/metric"
)

// stepLimit is by how much a node's clock and ours may diverge between two readings before it
// counts as a step, if the node does not report its time. Statistics always lag by less.
const stepLimit = 35 * time.Second

// clockStepped reports whether the node's clock jumped since the last read: by the time that
// the node reports, else by its readings.
func (s *Calculator) clockStepped(b *metric.Batch) bool {
	switch {
	case b.NodeTime != 0:
		return s.node.Follow(b)
	case b.Failed():
		return false // no reading to compare
	}
	s.node = metric.NodeClock{}
	return s.readingsStepped(b)
}

// readingsStepped is clockStepped for a node that does not report its time. Every entity with a
// new reading votes, and the majority decides: one container with an absurd time is no step. A
// reading that is older than the last one is a late answer, unless most readings are older.
//
// Smaller steps look like statistics that are a little older or younger than usual.
func (s *Calculator) readingsStepped(b *metric.Batch) bool {
	var stepped, voters, back int
	var t track
	for i := range b.Samples {
		sample := &b.Samples[i]
		at := sample.Times[metric.CPU]
		if at == 0 || sample.Received&(1<<metric.CPU) != 0 || sample.Rejected() {
			continue
		}
		slot := sample.Slot
		if s.tracks.empty(slot) {
			continue
		}
		s.tracks.unpack(slot, &t)
		sr := &t.groups[metric.CPU].series
		if sr.n == 0 {
			continue
		}
		last := sr.last().time
		if at == last {
			continue // the same reading again
		}
		voters++
		if apart := time.Duration(at-last) - (s.clock - sr.since); apart > stepLimit || apart < -stepLimit {
			stepped++
		}
		if at < last-int64(b.Resolution) {
			back++
		}
	}
	return stepped*2 > voters || voters > 1 && back*2 > voters
}

// timeIsSure reports whether a reading certainly has its time from the clock as it is set now.
// After a step, the next reading of each series may still be from before it, and so may the
// first reading of a series that begins then. It is accepted if the clock could not have shown
// this time without the step, or, if the node does not report its time, if the reading itself
// shows the step. Without a step, the first reading of a series is not accepted if it is in the
// future, or older than stepLimit, by the time that the node reports.
func (s *Calculator) timeIsSure(sr *series, at int64, b *metric.Batch) bool {
	first := sr.newest == 0 && sr.doubt == 0
	if sr.unsure || first && s.stepped >= 0 && s.clock-s.stepped <= stepLimit {
		if s.node.Known {
			return at > s.node.LatestBeforeStep
		}
		apart := time.Duration(at-sr.newest) - (s.clock - sr.since)
		return sr.newest == 0 || at < sr.newest || apart > stepLimit || apart < -stepLimit
	}
	if sr.n > 0 || b.NodeTime == 0 {
		return true
	}
	age := time.Duration(b.NodeTime - at)
	return age <= stepLimit && age >= -time.Second-b.Resolution
}
