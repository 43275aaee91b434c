package rate

import (
	"time"

	"github.com/weir-metrics/weir/metric"
)

// stepLimit is how far a node's clock and ours may advance apart between two
// readings before it counts as a step: more than statistics ever lag, and a
// little.
const stepLimit = 35 * time.Second

// clockStepped reports whether the node's clock jumped. Every entity that has a
// new reading votes, and the majority decides: one container with an absurd time
// is its own problem. A reading that is merely older than the last is a late
// answer, unless most are.
//
// Smaller steps cannot be told from statistics that are a little older or
// younger than usual.
func (s *State) clockStepped(b *metric.Batch) bool {
	var stepped, voters, back int
	for i := range b.Samples {
		sample := &b.Samples[i]
		at := sample.Times[metric.CPU]
		t := s.tracks[sample.Entity]
		if at == 0 || t == nil || sample.Received&(1<<metric.CPU) != 0 || sample.Rejected() {
			continue
		}
		sr := t.series[metric.CPU]
		if sr == nil || len(sr.entries) == 0 {
			continue
		}
		last := sr.entries[len(sr.entries)-1].time
		if at == last {
			continue // the same reading again
		}
		voters++
		if apart := time.Duration(at-last) - (s.clock - sr.since); apart > stepLimit || apart < -stepLimit {
			stepped++
		}
		if at < last-int64(b.Clock) {
			back++
		}
	}
	return stepped*2 > voters || voters > 1 && back*2 > voters
}
