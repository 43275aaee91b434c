// Package exact checks weir's two most important promises against a simulator
// that knows the truth: a served number is right, and a number that can be known
// is served.
//
// It plays thousands of random schedules through the whole pipeline: restarts,
// pods that are replaced, duplicates of every style, a pod that two nodes
// report, reboots, crash loops, slow starts, roles of containers, counters that
// fall, start times that jitter, zeros, clocks that jump, and answers that are
// late, cut or missing. The schedules of a cause (causes_test.go) have one kind
// of trouble each. Between rounds the values are read as metrics.k8s.io reads
// them, with newer cluster facts (reader_test.go). A value is wrong if it is not
// what the counter of the right run did over the window that weir states
// (truth_test.go). An oracle knows which numbers could be known (oracle_test.go).
// metrics-server's rule reads the same payloads, to compare with
// (metricsserver_test.go).
//
// Each run draws new seeds and logs the first one, so that -from can repeat the
// run. What the test accepts is the constant bar, for all schedules alike.
//
//	go test ./test/exact -args -from 5000000                             play the schedules of these seeds
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
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
)

var (
	seeds     = flag.Uint64("seeds", 3000, "how many random schedules to play")
	each      = flag.Uint64("each", 45, "how many schedules to play of each cause")
	from      = flag.Uint64("from", 0, "the first seed; if 0, it is drawn at random")
	only      = flag.Int64("seed", -1, "play this schedule alone, and tell its rounds")
	about     = flag.String("cause", "", "play schedules of this cause alone")
	table     = flag.Bool("table", false, "write docs/exactness.md: the table of readings by endpoint and cause")
	absences  = flag.Int("absences", 0, "write so many random absences beside the truth")
	explained = flag.Uint64("explained", 12, "how many schedules of each cause to play for their explanations")
	report    = flag.Int("report", 20, "how many wrong or absent readings to tell of")
)

// firstSeed returns the first seed of this run, and logs it.
var firstSeed = sync.OnceValue(func() uint64 {
	if *from > 0 {
		return *from
	}
	return 1 + rand.Uint64N(1e15)
})

// result is what schedules of one kind came to.
type result struct {
	schedules int
	failed    int              // schedules with a decidable wrong reading
	wrongIn   int              // schedules with any wrong reading
	absentIn  int              // schedules with a decidable absence
	reads     map[string]tally // by endpoint
	wrong     []string
	absent    []string
}

func (r *result) add(p *play) {
	if r.reads == nil {
		r.reads = map[string]tally{}
	}
	read := r.reads[p.endpoints()]
	read.add(p.read)
	r.reads[p.endpoints()] = read
	r.wrong, r.absent = append(r.wrong, p.wrong...), append(r.absent, p.absent...)
	r.schedules++
	count := func(n *int, is bool) {
		if is {
			*n++
		}
	}
	count(&r.failed, p.read.wrong[isDecidable] > 0)
	count(&r.wrongIn, p.read.allWrong() > 0)
	count(&r.absentIn, p.read.absent > 0)
}

func (r *result) merge(o *result) {
	for name, t := range o.reads {
		if r.reads == nil {
			r.reads = map[string]tally{}
		}
		read := r.reads[name]
		read.add(t)
		r.reads[name] = read
	}
	r.schedules, r.failed, r.wrongIn, r.absentIn = r.schedules+o.schedules, r.failed+o.failed, r.wrongIn+o.wrongIn, r.absentIn+o.absentIn
	r.wrong, r.absent = append(r.wrong, o.wrong...), append(r.absent, o.absent...)
}

// bar is what the test accepts, in schedules of 10,000: with a wrong reading although the
// right number was decidable, with a wrong reading of any kind, with a reading that is absent
// although it was decidable, and with an explanation that is untrue. Schedules are counted, not readings, because the wrong
// readings of one schedule have one cause.
//
// A run plays n schedules of new seeds. It fails if more than allowed(rate, n) of them are
// bad: if the true rate is the bar's, that happens in one run of 10,000 for each of the
// seven checks. docs/exactness.md states the bar.
var bar = struct{ decidable, wrong, absent, untrue float64 }{decidable: 20, wrong: 250, absent: 200, untrue: 400}

// allowed returns the most schedules of n that may be bad: the smallest k for which a Poisson
// variable with the mean rate × n / 10,000 is larger in less than one of 10,000 cases.
func allowed(rate float64, n int) int {
	mean := rate * float64(n) / 10_000
	tail, term := 1.0, math.Exp(-mean)
	for k := 0; ; k++ {
		if tail -= term; tail < 1e-4 {
			return k
		}
		term *= mean / float64(k+1)
	}
}

// check fails if more schedules are bad than the bar allows.
func (r *result) check(t *testing.T) {
	t.Helper()
	for _, c := range []struct {
		what  string
		bad   int
		rate  float64
		tales []string
	}{
		{"a wrong reading that was decidable", r.failed, bar.decidable, r.wrong},
		{"a wrong reading", r.wrongIn, bar.wrong, r.wrong},
		{"an absent reading that was decidable", r.absentIn, bar.absent, r.absent},
	} {
		if most := allowed(c.rate, r.schedules); c.bad > most {
			t.Errorf("%d of %d schedules from seed %d on have %s: want at most %d (%v in 10,000)\n%s",
				c.bad, r.schedules, firstSeed(), c.what, most, c.rate, strings.Join(c.tales[:min(len(c.tales), *report)], "\n"))
		}
	}
}

// tell logs the readings, and adds their rows to the table.
func (r *result) tell(t *testing.T, cause string) {
	t.Helper()
	var total tally
	percent := func(n, of int) float64 { return 100 * float64(n) / float64(max(of, 1)) }
	for _, name := range slices.Sorted(maps.Keys(r.reads)) {
		s := r.reads[name]
		total.add(s)
		peer := "| |"
		if s.peer > 0 {
			peer = fmt.Sprintf("%.2f%% | %.2f%% |", percent(s.peerRight, s.peer), percent(s.peerWrong, s.peer))
		}
		if *table {
			addRow(cause, name, fmt.Sprintf("| %s | %s | %d | %.2f%% | %d | %d | %d | %d | %d of %d | %s\n", cause, name, s.readings, percent(s.right, s.readings),
				s.wrong[isDecidable], s.wrong[hasEnded], s.wrong[isDoubtful], s.wrong[isUndecidable], s.absent, s.decidable, peer))
		}
	}
	t.Logf("%s: %d readings of %d schedules from seed %d on: %.3f%% right; wrong are %d decidable, %d ended, %d doubtful, %d undecidable, in %d schedules (%d with a decidable one); %d needlessly Ambiguous; %d of %d decidable are absent, in %d schedules",
		cause, total.readings, r.schedules, firstSeed(), percent(total.right, total.readings), total.wrong[isDecidable], total.wrong[hasEnded], total.wrong[isDoubtful], total.wrong[isUndecidable],
		r.wrongIn, r.failed, total.needless, total.absent, total.decidable, r.absentIn)
	if testing.Verbose() {
		slices.Sort(r.wrong)
		t.Logf("wrong:\n%s", strings.Join(r.wrong[:min(len(r.wrong), *report)], "\n"))
		t.Logf("decidable and absent:\n%s", strings.Join(r.absent[:min(len(r.absent), *report)], "\n"))
	}
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
	var total result
	t.Run("seeds", func(t *testing.T) {
		// Each subtest plays a slice of the seeds, because a subtest costs more than a
		// schedule.
		const slices = 64
		for slice := range uint64(slices) {
			t.Run(fmt.Sprint(slice), func(t *testing.T) {
				t.Parallel()
				var part result
				for i := slice; i < *seeds; i += slices {
					s, err := newSchedule(firstSeed() + i)
					p := newPlay(t, s, err)
					p.run()
					part.add(p)
				}
				mu.Lock()
				defer mu.Unlock()
				total.merge(&part)
			})
		}
	})
	total.tell(t, "any")
	total.check(t)
}

// Each cause has its own schedules.
func TestCausesOfWrongNumbers(t *testing.T) {
	var mu sync.Mutex
	var total result
	t.Run("causes", func(t *testing.T) {
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
				var part result
				for i := range *each {
					s, err := newCauseSchedule(of, firstSeed()+i)
					p := newPlay(t, s, err)
					p.run()
					part.add(p)
				}
				part.tell(t, of.name)
				mu.Lock()
				defer mu.Unlock()
				total.merge(&part)
			})
		}
	})
	if *only < 0 {
		total.check(t)
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
	for _, a := range p.absent {
		t.Log("ABSENT ", a)
	}
}
