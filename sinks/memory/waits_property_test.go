package memory_test

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sinks/memory"
)

// waits are the rates that explain slow reads.
var waits = []metric.ID{
	metric.CPUUsageRate, metric.CPUThrottledRate, metric.CPUPressureSomeRate, metric.CPUPressureFullRate,
	metric.MemoryMajorPageFaultsRate, metric.MemoryPressureSomeRate, metric.MemoryPressureFullRate,
	metric.DiskReadBytesRate, metric.DiskWriteBytesRate, metric.IOPressureSomeRate, metric.IOPressureFullRate,
}

// rounded returns v with 18 significant bits, as the history promises, and false if v is no rate.
func rounded(v float64) (float64, bool) {
	fraction, exponent := math.Frexp(v)
	if v = math.Ldexp(math.Floor(fraction*(1<<18)+0.5), exponent-18); v < math.Ldexp(1, -40) {
		return 0, v >= 0
	}
	return min(v, math.Ldexp(2-math.Ldexp(1, -17), 86)), v > 0
}

// listed is a point of a plain list.
type listed struct {
	memory.Point
	exact    float64
	received int64
}

// plainList is a history without packing.
type plainList map[metric.Entity]map[metric.ID][]listed

// add adds the rates of s. A rate of a pod is the sum of its containers' where it was made as their sum.
func (p plainList) add(s *metric.Sample, received int64, containers []metric.Entity) {
	if p[s.Entity] == nil {
		p[s.Entity] = map[metric.ID][]listed{}
	}
	for _, id := range waits {
		g := id.Describe().Group
		v, ok := s.Values.Get(id)
		if !ok || s.Reasons[g] != metric.Measured || s.LastKnown>>g&1 != 0 {
			continue
		}
		point := listed{memory.Point{Time: s.Rates[g].End}, v, received}
		point.Value, ok = rounded(v)
		if sum, isSum := p.sum(id, &point, containers); isSum {
			point.Value, ok = sum, true
		}
		if ok {
			p[s.Entity][id] = append(p[s.Entity][id], point)
		}
	}
}

// sum returns the sum of what the containers have in the round of total, and whether total is that.
func (p plainList) sum(id metric.ID, total *listed, containers []metric.Entity) (sum float64, ok bool) {
	exact, oldest := 0.0, int64(math.MaxInt64)
	for _, e := range containers {
		if all := p[e][id]; len(all) > 0 && all[len(all)-1].received == total.received {
			last := all[len(all)-1]
			sum, exact, oldest = sum+last.Value, exact+last.exact, min(oldest, last.Time)
		}
	}
	exactly := total.exact == 0 || total.exact >= 1 && total.exact <= 1<<80
	return sum, exactly && oldest == total.Time && math.Abs(exact-total.exact) <= total.exact*1e-9
}

// since returns the points that were received since then, by time; of two of one time, the later.
func (p plainList) since(e metric.Entity, id metric.ID, then int64) (points []memory.Point) {
	for _, r := range slices.Backward(p[e][id]) {
		if r.received >= then {
			points = append(points, r.Point)
		}
	}
	slices.SortStableFunc(points, func(a, b memory.Point) int { return cmp.Compare(a.Time, b.Time) })
	return slices.CompactFunc(points, func(a, b memory.Point) bool { return a.Time == b.Time })
}

// container is a random container: for some time it waits for nothing, for one thing, or for all.
type container struct {
	entity metric.Entity
	active map[metric.ID]bool
	start  int64
}

// fill adds a sample of the container to b. Its groups are stale, reset, not measured or last known at
// times.
func (c *container) fill(r *rand.Rand, b *metric.Batch, end int64) *metric.Sample {
	if r.IntN(12) == 0 {
		clear(c.active)
		for _, id := range waits {
			c.active[id] = r.IntN(3) == 0
		}
	}
	switch r.IntN(60) {
	case 0:
		clear(c.active)
	case 1:
		for _, id := range waits {
			c.active[id] = true
		}
	case 2:
		c.start++ // a restart
	}
	s := b.Add(c.entity)
	s.Instance.Start = c.start
	moment := end - r.Int64N(15000)*int64(time.Millisecond)
	for _, g := range []metric.Group{metric.CPU, metric.Memory, metric.IO} {
		if r.IntN(30) == 0 {
			moment -= r.Int64N(1000) * int64(time.Millisecond) // groups that were read apart
		}
		s.Times[g], s.Reasons[g], s.Rates[g] = moment, metric.Measured, metric.Window{End: moment, Length: 15 * time.Second}
		switch r.IntN(50) {
		case 0:
			s.LastKnown |= 1 << g
		case 1:
			s.Reasons[g] = metric.CounterReset
		case 2:
			s.Reasons[g] = metric.Stale
		}
	}
	for _, id := range waits {
		v := 0.0
		switch {
		case r.IntN(200) == 0:
			v = []float64{1e-13, math.NaN(), -1, math.Inf(1), math.MaxFloat64}[r.IntN(5)]
		case r.IntN(200) == 0:
			continue // this one is not reported
		case c.active[id]:
			v = math.Exp(r.Float64()*20 - 10)
		}
		s.Values.Set(id, v)
	}
	return s
}

// fillPod adds a sample of a pod. Use is the sum of the containers'; what they wait for is it only at
// times.
func fillPod(r *rand.Rand, b *metric.Batch, pod metric.Entity, containers []*metric.Sample, end int64) *metric.Sample {
	s := b.Add(pod)
	for _, g := range []metric.Group{metric.CPU, metric.Memory, metric.IO} {
		oldest := end
		for _, c := range containers {
			if c.LastKnown>>g&1 == 0 && c.Reasons[g] == metric.Measured {
				oldest = min(oldest, c.Rates[g].End)
			}
		}
		s.Times[g], s.Reasons[g], s.Rates[g] = oldest, metric.Measured, metric.Window{End: oldest, Length: 15 * time.Second}
	}
	for _, id := range waits {
		g, sum := id.Describe().Group, 0.0
		for _, c := range containers {
			if v, ok := c.Values.Get(id); ok && c.LastKnown>>g&1 == 0 && c.Reasons[g] == metric.Measured {
				sum += v
			}
		}
		if r.IntN(20) == 0 {
			sum = r.Float64() * 3
		}
		s.Values.Set(id, sum)
	}
	return s
}

// What explain slow reads is, bit for bit, what a plain list has: after restarts, resets, gaps, stale and
// repeated readings, clocks that step, pods that come and go, and when the oldest points have expired.
func TestWaitsAreAPlainList(t *testing.T) {
	const keep = 10 * time.Minute
	epoch := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 32))
		sink, want := memory.New(memory.Options{History: keep}), plainList{}
		pods := map[int][]*container{}
		now, step := epoch, int64(0)
		for round := range 60 + r.IntN(80) {
			now = now.Add(15 * time.Second)
			if r.IntN(25) == 0 {
				now = now.Add(time.Duration(r.IntN(300)) * time.Second) // a gap
			}
			if r.IntN(40) == 0 {
				step += (r.Int64N(600) - 300) * int64(time.Second)
			}
			b := &metric.Batch{Source: "s", Node: "n1", Interval: 15 * time.Second, Resolution: time.Millisecond, Began: now, Ended: now}
			for p := range 6 {
				if r.IntN(40) == 0 {
					delete(pods, p)
				}
				if r.IntN(15) == 0 {
					continue // the pod is not reported
				}
				pod := metric.Entity{Kind: metric.Pod, Node: "n1", Namespace: "shop", Pod: metric.PodName(rune('p' + p))}
				if pods[p] == nil {
					for i := range 1 + r.IntN(2) {
						c := &container{entity: pod, active: map[metric.ID]bool{}, start: int64(round)}
						c.entity.Kind, c.entity.Name = metric.Container, string(rune('x'+i))
						pods[p] = append(pods[p], c)
					}
				}
				// The list sums in the order of the names.
				var names []metric.Entity
				first := len(b.Samples)
				for _, c := range pods[p] {
					want.add(c.fill(r, b, now.UnixNano()+step), now.UnixNano(), nil)
					names = append(names, c.entity)
				}
				var samples []*metric.Sample
				for i := range names {
					samples = append(samples, &b.Samples[first+i])
				}
				want.add(fillPod(r, b, pod, samples, now.UnixNano()+step), now.UnixNano(), names)
			}
			if err := sink.Write(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			if round%7 == 0 {
				compareWaits(t, seed, sink.Snapshot(), want, now.Add(-keep).UnixNano())
			}
		}
		compareWaits(t, seed, sink.Snapshot(), want, now.Add(-keep).UnixNano())
	}
}

// compareWaits compares the points of a snapshot with those of want that were received since then.
func compareWaits(t *testing.T, seed uint64, snap *memory.Snapshot, want plainList, since int64) {
	t.Helper()
	for e, metrics := range want {
		for _, id := range waits {
			got := snap.History(e, id, time.Unix(0, 0), time.Unix(1<<33, 0))
			if expected := want.since(e, id, since); !slices.Equal(got, expected) {
				t.Fatalf("seed %d, %v of %v (%d points ever):\n got %v\nwant %v", seed, id, e, len(metrics[id]), got, expected)
			}
		}
	}
}
