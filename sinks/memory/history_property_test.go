package memory

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weir-metrics/weir/metric"
)

// plain is a simple history without packing: a list.
type plain map[metric.Entity]map[metric.ID][]reading

type reading struct {
	Point
	received int64
}

func (p plain) add(s *metric.Sample, received int64) {
	for _, id := range []metric.ID{metric.CPUUsageRate, metric.MemoryWorkingSet, metric.MemoryRSS} {
		g := metric.Catalogue[id].Group
		v, ok := s.Values.Get(id)
		if !ok || !served(s.Reasons[g]) || s.LastKnown>>g&1 != 0 || !(v >= 0) {
			continue
		}
		at := s.Times[g]
		if id == metric.CPUUsageRate {
			at = s.Rates[g].End
		}
		if p[s.Entity] == nil {
			p[s.Entity] = map[metric.ID][]reading{}
		}
		p[s.Entity][id] = append(p[s.Entity][id], reading{Point{at, v}, received})
	}
}

// since returns the points received since then, by time. Of two reads of one time it returns
// the later one.
func (p plain) since(e metric.Entity, id metric.ID, then int64) (points []Point) {
	for _, r := range slices.Backward(p[e][id]) {
		if r.received >= then {
			points = append(points, r.Point)
		}
	}
	slices.SortStableFunc(points, func(a, b Point) int { return cmp.Compare(a.Time, b.Time) })
	return slices.CompactFunc(points, func(a, b Point) bool { return a.Time == b.Time })
}

// The history has the points of a plain list. Pods come, go and restart, the nodes' clocks
// step, and the numbers are of every kind.
func TestHistoryIsAPlainList(t *testing.T) {
	const keep = 10 * time.Minute
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 7))
		sink, want := New(Options{History: keep}), plain{}
		step, now := int64(0), time.Duration(0)
		odd := []float64{0, 1e-13, math.NaN(), -1, math.Inf(1), math.Inf(-1), math.MaxFloat64, 1e30, 0.25}
		number := func() float64 {
			if r.IntN(20) == 0 {
				return odd[r.IntN(len(odd))]
			}
			return math.Trunc(math.Exp(r.Float64() * 25))
		}
		rounds := 30 + r.IntN(90)
		for range rounds {
			now += 15 * time.Second
			if r.IntN(25) == 0 {
				now += time.Duration(r.IntN(300)) * time.Second // a gap
			}
			if r.IntN(40) == 0 {
				step += (r.Int64N(600) - 300) * int64(time.Second)
			}
			b := at("s", "n1", now)
			end := b.Ended.UnixNano() + step
			for p := range 4 {
				if r.IntN(15) == 0 {
					continue // the pod is not reported
				}
				e := on("n1", pod("a", string(rune('p'+p))))
				var cpu, memory float64
				oldest := int64(math.MaxInt64)
				for _, name := range []string{"x", "y", "z"}[:1+p%3] {
					if r.IntN(12) == 0 {
						continue
					}
					s := use(b, containerOf(e, name), number(), number())
					s.Instance.Start = int64(r.IntN(12) / 11) // sometimes another run
					moment := end - r.Int64N(15000)*int64(time.Millisecond)
					s.Times[metric.CPU], s.Times[metric.Memory], s.Rates[metric.CPU].End = moment, moment, moment
					switch r.IntN(12) {
					case 0:
						s.LastKnown = 1 << metric.CPU
					case 1:
						s.Reasons[metric.Memory] = metric.Stale
					case 2:
						s.Times[metric.Memory] -= 5 * int64(time.Millisecond)
					case 3:
						s.Values.Set(metric.MemoryRSS, number())
					}
					u, _ := s.Values.Get(metric.CPUUsageRate)
					m, _ := s.Values.Get(metric.MemoryWorkingSet)
					cpu, memory, oldest = cpu+u, memory+m, min(oldest, moment)
					want.add(s, b.Ended.UnixNano())
				}
				if r.IntN(10) == 0 {
					cpu, memory = number(), number() // not the sum
				}
				if r.IntN(30) == 0 || oldest == math.MaxInt64 {
					oldest = end
				}
				s := use(b, e, cpu, memory)
				s.Times[metric.CPU], s.Times[metric.Memory], s.Rates[metric.CPU].End = oldest, oldest, oldest
				want.add(s, b.Ended.UnixNano())
			}
			write(t, sink, b)
		}
		snap, since := sink.Snapshot(), epoch.Add(now-keep).UnixNano()
		for e, metrics := range want {
			for id := range metrics {
				expected := want.since(e, id, since)
				got := snap.History(e, id, epoch.Add(-time.Hour), epoch.Add(24*time.Hour))
				if len(got) != len(expected) {
					t.Fatalf("seed %d, %v of %v: got %d points, want %d\n%v\n%v", seed, id, e, len(got), len(expected), got, expected)
				}
				for i, w := range expected {
					if !near(got[i].Value, w.Value) || got[i].Time != w.Time {
						t.Fatalf("seed %d, %v of %v, point %d: got %v, want %v", seed, id, e, i, got[i], w)
					}
				}
			}
		}
	}
}

// near reports whether got is want as a float24 represents it.
func near(got, want float64) bool {
	if most := math.Ldexp(1, 87); want > most {
		return got > most*(1-1.0/(1<<17))
	}
	if want < math.Ldexp(1, -40) {
		return got == 0
	}
	return math.Abs(got-want) <= want*(1.0/(1<<18)+1e-9)
}

// An unchanged node costs a round of numbers, one of points, and its publication.
func TestWriteAllocations(t *testing.T) {
	c := kubelet(1, 30, 2)
	n, sink := c.names(0), New(Options{})
	round := 0
	c.fill(&c.batch, n, round)
	got := testing.AllocsPerRun(10*packRounds, func() {
		round++
		b := c.fill(&c.batch, n, round)
		if err := sink.Write(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	})
	if got > 3 {
		t.Errorf("a Write allocates %v times, want 3 or fewer", got)
	}
}
