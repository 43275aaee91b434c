package metric_test

import (
	"testing"
	"time"

	"github.com/weir-metrics/weir/metric"
)

func TestNodeClock(t *testing.T) {
	start := time.Unix(1_800_000_000, 300_000_000)
	var c metric.NodeClock
	// said is how far the node's clock is ahead when each answer is written.
	for i, said := range []struct {
		ahead   time.Duration
		silent  bool // the answer has no time
		stepped bool
	}{
		{ahead: 2 * time.Second},
		{ahead: 2*time.Second + 5*time.Millisecond}, // it is adjusted slowly
		{ahead: time.Hour, silent: true},
		{ahead: 2*time.Second + 10*time.Millisecond},
		{ahead: 5 * time.Second, stepped: true},
		{ahead: 5 * time.Second},
		{ahead: 2800 * time.Millisecond, stepped: true},
		{ahead: -time.Hour, stepped: true},
		{ahead: -time.Hour},
	} {
		b := metric.Batch{Began: start.Add(time.Duration(i) * 15 * time.Second)}
		b.Ended = b.Began.Add(40 * time.Millisecond)
		wrote := b.Began.Add(20 * time.Millisecond)
		if !said.silent {
			b.NodeTime = wrote.Add(said.ahead).Truncate(time.Second).UnixNano()
		}
		before := c
		if got := c.Follow(&b); got != said.stepped {
			t.Errorf("answer %d, %v ahead: stepped %v, want %v", i, said.ahead, got, said.stepped)
		}
		if said.silent {
			if c != before {
				t.Errorf("answer %d: an answer without a time changed %+v to %+v", i, before, c)
			}
			continue
		}
		if got := c.OurTime(b.Ended); got != b.Ended.UnixNano() {
			t.Errorf("answer %d: a time without a monotonic reading is %d by our clock, want %d", i, got, b.Ended.UnixNano())
		}
		if said.ahead < c.MinAhead || said.ahead > c.MaxAhead {
			t.Errorf("answer %d: between %v and %v ahead, want %v in it", i, c.MinAhead, c.MaxAhead, said.ahead)
		}
		if said.stepped {
			if was := wrote.Add(before.MaxAhead).UnixNano(); c.LatestBeforeStep < was {
				t.Errorf("answer %d: without the step it would show at most %d, want at least %d", i, c.LatestBeforeStep, was)
			}
		}
	}
}
