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
//
// Between rounds the values are read as metrics.k8s.io reads them, with newer
// cluster facts (reader_test.go). metrics-server's rule reads the same payloads,
// to compare with (metricsserver_test.go).
//
// The schedules of a cause (causes_test.go) have one kind of trouble each:
// clocks that step by seconds, facts that are late, stand still or go back, two
// cgroup paths, zeros, start times that are wrong. None of their numbers may be
// wrong without an excuse. cause.known is how many in a million readings the
// test accepts all the same: up to 500 of a run that the API server has not
// named since the last round, and up to 500 of the wrong one of two Ambiguous
// duplicates.
//
//	go test ./test/exact -run Causes -args -cause api-late -each 900     play one cause
//	go test ./test/exact -run Causes -v -args -cause api-late -seed 12   tell one schedule
//	go test ./test/exact -timeout 2h -args -table -seeds 20000 -each 900 write docs/exactness.md
//
// Of containers that run and are not served, weir's explanations are compared
// with what really happened (absences_test.go).
//
//	go test ./test/exact -run Absences -v -args -absences 100 -from 2    write random ones beside the truth
package exact

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
)

var (
	seeds     = flag.Uint64("seeds", 3000, "how many random schedules to play")
	each      = flag.Uint64("each", 45, "how many schedules to play of each cause")
	only      = flag.Int64("seed", -1, "play this schedule alone, and tell its rounds")
	about     = flag.String("cause", "", "play schedules of this cause alone")
	table     = flag.Bool("table", false, "write docs/exactness.md: the table of readings by endpoint and cause")
	absences  = flag.Int("absences", 0, "write so many random absences beside the truth")
	explained = flag.Uint64("explained", 12, "how many schedules of each cause to play for their explanations")
	from      = flag.Uint64("from", 1, "seed of the random absences")
	report    = flag.Int("report", 20, "how many rounds that the oracle would have served to tell of")
)

// wanted is the smallest acceptable share of decidable pod-rounds that are
// served.
const wanted = 0.9997

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
	if *about != "" {
		t.Skip("-cause plays the schedules of a cause alone")
	}
	if *only >= 0 {
		s, err := newSchedule(uint64(*only))
		playAlone(t, s, err)
		return
	}
	var mu sync.Mutex
	total, of, reads := shares{}, map[string]shares{}, map[string]tally{}
	var left, wrong []string
	t.Run("seeds", func(t *testing.T) {
		// Each subtest plays a slice of the seeds, because a subtest costs more than a
		// schedule.
		const slices = 64
		for slice := range uint64(slices) {
			t.Run(fmt.Sprint(slice), func(t *testing.T) {
				t.Parallel()
				for seed := slice; seed < *seeds; seed += slices {
					s, err := newSchedule(seed)
					p := newPlay(t, s, err)
					p.run()
					mu.Lock()
					read := reads[p.endpoints()]
					read.add(p.read)
					reads[p.endpoints()] = read
					wrong = append(wrong, p.wrong...)
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
	checkReadings(t, "any", knownOfAny, reads, wrong)
	if total.unseen*5000 > total.asked {
		t.Errorf("%d rates are over a counter that began again unseen: want few", total.unseen)
	}
	if float64(total.decidable-total.unserved) < wanted*float64(total.decidable) || total.decidable*2 < total.asked {
		t.Errorf("of %d pod-rounds %d are decidable and %d of these were not served: want at most 3 in 10,000, and that half be decidable\n%s",
			total.asked, total.decidable, total.unserved, strings.Join(left[:min(len(left), *report)], "\n"))
	}
}

// known says how many in a million readings may be wrong without an excuse, how
// many may be of the wrong one of two Ambiguous duplicates, and how many may be
// of a run that has ended since the last round by the API server. The goal is 0
// for all.
type known struct{ wrong, doubtful, ended int }

// knownOfAny are the known wrong numbers in the schedules of any faults: 26 in 14.6
// million readings of 100,000 schedules, 14 of them in seeds 32230 and 89883. The
// oracle calls none of them decidable, and knows no excuse. In seed 32230 a clock was
// put back by 23 s: of two runs, the one that began before that says the later start.
// In seed 20553 one endpoint serves what is left of a pod, and the other one has the
// new pod's container, but not what is left.
var knownOfAny = known{wrong: 2, doubtful: 5, ended: 10}

// knownSeeds are the schedules of the first 100,000 in which a round has a wrong
// number, or one that is Ambiguous without need.
var knownSeeds = []uint64{
	14868, 25229, 29301, 32230, 47449, 49793, 54961, 59554, 70776, 72221,
	74644, 75908, 81369, 82750, 89883, 92257, 93084, 93650, 96577,
}

// Each cause has its own schedules, and a known share of wrong numbers.
func TestCausesOfWrongNumbers(t *testing.T) {
	for i := range causes {
		of := &causes[i]
		if *about != "" && *about != of.name {
			continue
		}
		t.Run(of.name, func(t *testing.T) {
			if *only >= 0 {
				if *about == "" {
					t.Skip("-seed without -cause is a schedule of any faults")
				}
				s, err := newCauseSchedule(of, uint64(*only))
				playAlone(t, s, err)
				return
			}
			t.Parallel()
			reads := map[string]tally{}
			var wrong, absent []string
			for seed := range *each {
				s, err := newCauseSchedule(of, seed)
				p := newPlay(t, s, err)
				p.run()
				read := reads[p.endpoints()]
				read.add(p.read)
				reads[p.endpoints()] = read
				wrong, absent = append(wrong, p.wrong...), append(absent, p.absent...)
			}
			checkReadings(t, of.name, of.known, reads, wrong)
			if testing.Verbose() {
				t.Logf("decidable and absent:\n%s", strings.Join(absent[:min(len(absent), *report)], "\n"))
			}
		})
	}
}

// playAlone plays one schedule and prints everything.
func playAlone(t *testing.T, s schedule, err error) {
	t.Helper()
	p := newPlay(t, s, err)
	p.reported = true
	p.run()
	for _, w := range p.wrong {
		t.Log("WRONG ", w)
	}
}

// checkReadings logs the readings by endpoint, and fails if more are wrong than
// known in a million.
func checkReadings(t *testing.T, cause string, k known, reads map[string]tally, wrong []string) {
	t.Helper()
	var total tally
	percent := func(n, of int) float64 { return 100 * float64(n) / float64(max(of, 1)) }
	for _, name := range slices.Sorted(maps.Keys(reads)) {
		s := reads[name]
		total.add(s)
		peer := "| |"
		if s.peer > 0 {
			peer = fmt.Sprintf("%.2f%% | %.2f%% |", percent(s.peerRight, s.peer), percent(s.peerWrong, s.peer))
		}
		if *table {
			addRow(cause, name, fmt.Sprintf("| %s | %s | %d | %.2f%% | %d | %d | %d | %d | %d of %d | %s\n", cause, name, s.readings, percent(s.right, s.readings),
				s.wrong, s.doubtful, s.ended, s.excusable, s.absent, s.decidable, peer))
		}
	}
	t.Logf("%d readings: %.2f%% right; wrong are %d, %d doubtful, %d of ended runs and %d excusable; %d of %d decidable are absent",
		total.readings, percent(total.right, total.readings), total.wrong, total.doubtful, total.ended, total.excusable, total.absent, total.decidable)
	few := strings.Join(wrong[:min(len(wrong), *report)], "\n")
	if testing.Verbose() {
		t.Logf("wrong:\n%s", few)
	}
	if bad := total.wrong + total.panics; bad*1_000_000 > k.wrong*total.readings {
		t.Errorf("%d of %d readings are wrong: want at most %d in a million\n%s", bad, total.readings, k.wrong, few)
	}
	if total.doubtful*1_000_000 > k.doubtful*total.readings {
		t.Errorf("%d of %d readings are of the wrong one of two Ambiguous duplicates: want at most %d in a million\n%s", total.doubtful, total.readings, k.doubtful, few)
	}
	if total.ended*1_000_000 > k.ended*total.readings {
		t.Errorf("%d of %d readings are of runs that have ended since the last round: want at most %d in a million", total.ended, total.readings, k.ended)
	}
}
