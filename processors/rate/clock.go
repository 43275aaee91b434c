package rate

import (
	"time"

	"github.com/weir-metrics/weir/metric"
)

// stepLimit is how far a node's clock and ours may advance apart between two
// readings before it counts as a step where the node does not tell its time:
// more than statistics ever lag, and a little.
const stepLimit = 35 * time.Second

// clockStepped reports whether the node's clock jumped since the last read: by
// what the node says its time is, or else by its readings.
func (s *Calculator) clockStepped(b *metric.Batch) bool {
	switch {
	case b.NodeTime != 0:
		return s.node.Follow(b)
	case b.Failed():
		return false // there is no time to compare with
	}
	s.node = metric.NodeClock{}
	return s.readingsStepped(b)
}

// readingsStepped is clockStepped for a node that does not tell its time. Every
// entity that has a new reading votes, and the majority decides: one container
// with an absurd time is its own problem. A reading that is merely older than
// the last is a late answer, unless most are.
//
// Smaller steps cannot be told from statistics that are a little older or
// younger than usual.
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

// timeIsSure reports whether a reading's time is surely by the clock as it is set
// now. After a step the next reading of each series, also of one that begins then,
// may still be from before: it is believed if its time is one that the clock would
// not have shown without the step, or, where the node does not tell its time, if it
// itself shows the step. And the first reading
// of a series is doubted if, by what the node says its time is, it is older than
// statistics ever are, or yet to come.
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
