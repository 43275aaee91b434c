// Package exact checks the promise that a served number is right: whatever the
// schedule of scrapes, every rate equals (C(t2)-C(t1))/(t2-t1) over the window
// weir says it used, where C is the simulator's counter, known at every
// nanosecond and strictly non-linear.
package exact

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/processors/identity"
	"github.com/weir-metrics/weir/processors/rate"
	"github.com/weir-metrics/weir/simulator"
	"github.com/weir-metrics/weir/sources/kubelet/cadvisor"
	"github.com/weir-metrics/weir/sources/kubelet/payload"
	"github.com/weir-metrics/weir/sources/kubelet/resource"
	"github.com/weir-metrics/weir/sources/kubelet/summary"
)

var seeds = flag.Int("seeds", 40, "how many random schedules for each endpoint")

// accuracy is how far a rate may be off where the node's timestamps are exact,
// relative to the rate.
const accuracy = 1e-6

type parser interface {
	Parse(body []byte, req payload.Request, b *metric.Batch) error
}

var endpoints = []struct {
	name     string
	endpoint simulator.Endpoint
	clock    time.Duration
	parser   func() parser
}{
	{"resource", simulator.Resource, resource.Clock, func() parser { return resource.New() }},
	{"summary", simulator.Summary, summary.Clock, func() parser { return summary.New() }},
	{"cadvisor", simulator.CAdvisor, cadvisor.Clock, func() parser { return cadvisor.New() }},
}

// faults are what may happen in a schedule, each at a random time.
var faults = []string{
	"restart pod=* at=%ds",
	"missing pod=* at=%ds for=20s",
	"stale node=* at=%ds for=25s",
	"zero container=* at=%ds for=15s",
	"jitter pod=* start=±3ms at=%ds for=60s",
}

// TestServedRatesAreTheCounters plays random schedules: scrapes 3 to 40 s
// apart, some of them missed, with and without an API server's facts, with and
// without faults.
func TestServedRatesAreTheCounters(t *testing.T) {
	for _, e := range endpoints {
		t.Run(e.name, func(t *testing.T) {
			served, asked := 0, 0
			for seed := range uint64(*seeds) {
				t.Run(fmt.Sprint(seed), func(t *testing.T) {
					r := rand.New(rand.NewPCG(seed, 3))
					start := time.Unix(1_800_000_000+int64(r.IntN(1_000_000)), int64(r.IntN(1e9)))
					options := simulator.Options{Nodes: 1, Pods: 5, Containers: 2, Seed: seed, Start: start, Fresh: r.IntN(3) == 0}
					if r.IntN(2) == 0 {
						fault, err := simulator.Parse(fmt.Sprintf(faults[r.IntN(len(faults))], 20+r.IntN(120)))
						if err != nil {
							t.Fatal(err)
						}
						options.Faults = []simulator.Fault{fault}
					}
					fleet, err := simulator.New(options)
					if err != nil {
						t.Fatal(err)
					}
					node := fleet.Nodes()[0]
					p := e.parser()
					ids, rates := identity.New(identity.Options{}), rate.New(rate.Options{})
					b := &metric.Batch{Source: "test", Node: metric.NodeName(node.Name), Interval: 15 * time.Second, Cores: float64(node.Cores)}
					withFacts := r.IntN(2) == 0
					play := fmt.Sprintf("facts %v, fresh %v, %v", withFacts, options.Fresh, options.Faults)
					now := start.Add(time.Second)
					for range 25 {
						now = now.Add(time.Duration(3000+r.IntN(37_000)) * time.Millisecond)
						b.Reset()
						b.Clock, b.Began, b.Ended = e.clock, now, now
						if r.IntN(10) == 0 {
							b.Err = &metric.ReadError{Reason: metric.NodeTimeout, Err: fmt.Errorf("missed")}
						} else {
							b.Err = p.Parse(fleet.Payload(node.Name, e.endpoint, now), payload.Request{Node: b.Node, Received: now.UnixNano()}, b)
							if b.Err != nil {
								t.Fatal(b.Err)
							}
						}
						var facts *metric.Facts
						if withFacts {
							if facts, err = cluster.FactsFromPods(fleet.Payload(node.Name, simulator.PodList, now), now); err != nil {
								t.Fatal(err)
							}
						}
						ids.Process(facts, b, now)
						rates.Process(facts, b, now)
						s, a := check(t, play, node, b, now)
						served, asked = served+s, asked+a
					}
				})
			}
			t.Logf("%d of %d container-rounds served, each exact", served, asked)
			if served*3 < asked*2 {
				t.Errorf("only %d of %d container-rounds were served: absence must be the exception", served, asked)
			}
		})
	}
}

// check compares each served rate of a batch with the truth, and returns how
// many were served and how many containers there are.
func check(t *testing.T, play string, node *simulator.Node, b *metric.Batch, now time.Time) (served, asked int) {
	t.Helper()
	for i := range b.Samples {
		s := &b.Samples[i]
		if s.Entity.Kind != metric.Container || s.Entity.Part != "" || s.Rejected() {
			continue
		}
		asked++
		got, ok := s.Values.Get(metric.CPUUsageRate)
		if !s.Numbered(metric.CPU) {
			continue
		}
		if !ok {
			t.Errorf("%v: measured, and no rate", s.Entity)
			continue
		}
		served++
		window := s.Rates[metric.CPU]
		from, to := window.End-int64(window.Length), window.End
		if !matches(node, s, got, from, to, int64(b.Clock)) {
			t.Errorf("%v at %v: %.6f cores over %v to %v, and no life of its counter says so (%s)", s.Entity, now.Format("15:04:05"), got/1e9, window.Length, time.Unix(0, to).Format("15:04:05.000"), play)
		}
	}
	return served, asked
}

// matches reports whether some life of the container used CPU at that rate in
// the window. Timestamps were cut to clock, so the true ends lie in a clock's
// tick behind them, and the rate between what the counter says at either end of the ticks.
func matches(node *simulator.Node, s *metric.Sample, rate float64, from, to, clock int64) bool {
	cut := clock
	if clock == int64(time.Nanosecond) {
		cut = 0
	}
	ends := node.Truth(time.Unix(0, to), time.Unix(0, to+cut))
	cutStart := cut
	if from == s.Instance.Start && from%int64(time.Second) == 0 {
		cutStart = int64(time.Second) // measured from a start that the node cuts
	}
	for _, begin := range node.Truth(time.Unix(0, from), time.Unix(0, from+cutStart)) {
		if begin.Namespace != string(s.Entity.Namespace) || begin.Pod != string(s.Entity.Pod) || begin.Container != s.Entity.Name {
			continue
		}
		for _, end := range ends {
			if end.ID != begin.ID || end.UID != begin.UID {
				continue
			}
			w := float64(to-from) / 1e9
			low, high := float64(end.CPUFrom-begin.CPUTo)/w, float64(end.CPUTo-begin.CPUFrom)/w
			slack := accuracy * max(high, 1)
			if rate >= low-slack && rate <= high+slack {
				return true
			}
		}
	}
	return false
}
