package manager

import (
	"testing"

	"github.com/weir-metrics/weir/metric"
)

// A node that is read for the first time fills a batch with verdicts. The room is kept
// while it is used, and no longer.
func TestPoolGivesUpRoomForVerdicts(t *testing.T) {
	p := newPool(1)
	for _, round := range []struct{ verdicts, kept int }{{180, 180}, {90, 180}, {10, 0}, {fewVerdicts, fewVerdicts}, {0, fewVerdicts}} {
		b := p.get()
		if cap(b.Verdicts) < round.verdicts {
			b.Verdicts = make([]metric.Verdict, 0, round.verdicts)
		}
		b.Verdicts = b.Verdicts[:round.verdicts]
		p.recycle(b)
		if got := cap(b.Verdicts); got != round.kept {
			t.Errorf("room after a round with %d verdicts: got %d, want %d", round.verdicts, got, round.kept)
		}
	}
}
