package rate

import (
	"time"

	"github.com/weir-metrics/weir/metric"
)

// nodeClock watches how a node's clock advances beside ours.
type nodeClock struct {
	newest int64         // the newest node time seen
	at     time.Duration // when it was first seen, by our clock
}

// stepLimit is how far two clocks may advance apart between two receipts before
// it counts as a step: more than statistics ever lag, and a little.
const stepLimit = 35 * time.Second

// clockStepped reports whether the node's clock jumped since the last batch.
//
// Smaller steps cannot be told from statistics that are a little older or
// younger than usual.
func (s *State) clockStepped(b *metric.Batch) bool {
	var newest int64
	var backwards, known int
	for i := range b.Samples {
		sample := &b.Samples[i]
		at := sample.Times[metric.CPU]
		if at == 0 || sample.Received&(1<<metric.CPU) != 0 || sample.Rejected() {
			continue
		}
		newest = max(newest, at)
		if t := s.tracks[sample.Entity]; t != nil {
			if sr := t.series[metric.CPU]; sr != nil && len(sr.entries) > 0 {
				known++
				if at < sr.entries[len(sr.entries)-1].time-int64(b.Clock) {
					backwards++
				}
			}
		}
	}
	c := &s.node
	if newest == 0 || newest == c.newest {
		return false
	}
	first := c.newest == 0
	apart := time.Duration(newest-c.newest) - (s.clock - c.at)
	if !first && newest < c.newest && backwards*2 <= known {
		return false // one late answer, not the clock
	}
	c.newest, c.at = newest, s.clock
	return !first && (apart > stepLimit || apart < -stepLimit || known > 0 && backwards*2 > known)
}
