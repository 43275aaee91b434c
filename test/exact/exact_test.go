// Package exact checks weir's two most important promises against a simulator
// that knows the truth: a served rate is right, and a number that can be known
// is served.
//
// It plays thousands of random schedules through the whole pipeline: restarts,
// pods that are replaced, duplicates of every style, a pod that two nodes
// report, counters that fall, start times that jitter, zeros, clocks that jump,
// and answers that come late or not at all. After every round
//
//   - each rate that is served, whether Measured or Ambiguous, must be what the
//     counter of the right run did over the window that weir states
//     (truth_test.go);
//   - each pod that an oracle calls decidable must be served, and Ambiguous is
//     only allowed where the oracle finds nothing that distinguishes the
//     duplicates (oracle_test.go defines these words).
package exact

import (
	"flag"
	"fmt"
	"strings"
	"sync"
	"testing"
)

var (
	seeds  = flag.Uint64("seeds", 3000, "how many random schedules to play")
	only   = flag.Int64("seed", -1, "play this schedule alone, and tell its rounds")
	report = flag.Int("report", 20, "how many rounds that the oracle would have served to tell of")
)

// wanted is the smallest acceptable share of decidable pod-rounds that are
// served.
const wanted = 0.999

// shares counts pod-rounds.
type shares struct {
	asked     int // of pods with a running container
	served    int
	ambiguous int // of those served
	decidable int
	unserved  int // of those decidable
	unseen    int // container-rounds whose counter was reset without anything that could show it
}

func (s *shares) add(o shares) {
	s.asked += o.asked
	s.served += o.served
	s.ambiguous += o.ambiguous
	s.decidable += o.decidable
	s.unserved += o.unserved
	s.unseen += o.unseen
}

func TestServedRatesAreTheTruth(t *testing.T) {
	if *only >= 0 {
		p := newPlay(t, uint64(*only))
		p.reported = true
		p.run()
		return
	}
	var mu sync.Mutex
	total, of := shares{}, map[string]shares{}
	var left []string
	t.Run("seeds", func(t *testing.T) {
		// Each subtest plays a slice of the seeds, because a subtest costs more than a
		// schedule.
		const slices = 64
		for slice := range uint64(slices) {
			t.Run(fmt.Sprint(slice), func(t *testing.T) {
				t.Parallel()
				for seed := slice; seed < *seeds; seed += slices {
					p := newPlay(t, seed)
					p.run()
					mu.Lock()
					total.add(p.shares)
					o := of[p.endpoints()]
					o.add(p.shares)
					of[p.endpoints()] = o
					left = append(left, p.left...)
					mu.Unlock()
				}
			})
		}
	})
	percent := func(n, of int) float64 { return 100 * float64(n) / float64(max(of, 1)) }
	for name, s := range of {
		t.Logf("%-16s %7d pod-rounds: %.2f%% served, %.3f%% of %d decidable", name, s.asked, percent(s.served, s.asked), 100-percent(s.unserved, s.decidable), s.decidable)
	}
	t.Logf("%d schedules, %d pod-rounds: %.2f%% served (%.2f%% of these ambiguous), %.2f%% absent",
		*seeds, total.asked, percent(total.served, total.asked), percent(total.ambiguous, total.served), percent(total.asked-total.served, total.asked))
	t.Logf("%.3f%% of %d decidable pod-rounds served; %d rates over a counter that began again unseen", 100-percent(total.unserved, total.decidable), total.decidable, total.unseen)
	if testing.Verbose() {
		t.Logf("decidable and not served:\n%s", strings.Join(left[:min(len(left), *report)], "\n"))
	}
	if total.unseen*5000 > total.asked {
		t.Errorf("%d rates are over a counter that began again unseen: want few", total.unseen)
	}
	if float64(total.decidable-total.unserved) < wanted*float64(total.decidable) || total.decidable*2 < total.asked {
		t.Errorf("of %d pod-rounds %d are decidable and %d of these were not served: want at most one in a thousand, and that half be decidable\n%s",
			total.asked, total.decidable, total.unserved, strings.Join(left[:min(len(left), *report)], "\n"))
	}
}
