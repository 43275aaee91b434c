package rate

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// A track is the same after pack and unpack, whichever of its words are predicted.
func TestPackedTrackKeepsATrack(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var in, out track
	var rest packedTracks
	var kept [8]track // what is in each slot
	rest.list = make([]packedTrack, len(kept))
	for i := range 20000 {
		slot := uint32(r.IntN(len(kept)))
		in = randomTrack(r)
		kept[slot] = in
		if i%5 == 0 {
			rest.clear(slot)
		}
		rest.pack(slot, &in)
		if i%7 == 0 {
			rest.compact()
		}
		slot = uint32(r.IntN(len(kept))) // this one, or one that must not have changed
		if in = kept[slot]; rest.empty(slot) {
			continue // never packed yet
		}
		rest.unpack(slot, &out) // over the values of the previous track
		if !alike(&in, &out) {
			t.Fatalf("track %d:\ngot  %+v\nwant %+v", i, out, in)
		}
		if rest.line(slot) != in.instance.Line {
			t.Fatalf("track %d: got line %d, want %d", i, rest.line(slot), in.instance.Line)
		}
	}
}

// alike compares tracks. Two NaN are equal, and entries after the last one do not count.
func alike(a, b *track) bool {
	for g := range a.groups {
		x, y := &a.groups[g].series, &b.groups[g].series
		if x.n != y.n {
			return false
		}
		for i := range x.n {
			for k, v := range x.entries[i].counters {
				w := y.entries[i].counters[k]
				if math.Float64bits(v) != math.Float64bits(w) || x.entries[i].time != y.entries[i].time {
					return false
				}
			}
		}
		x.entries, y.entries = [maxEntries]entry{}, [maxEntries]entry{}
	}
	for i := range a.last.n {
		if a.last.dense[i] != b.last.dense[i] {
			return false
		}
	}
	a.last.dense, b.last.dense = [metric.NumMetrics]float64{}, [metric.NumMetrics]float64{}
	return *a == *b
}

// randomTrack returns a track with few different numbers, so that some predictions are right.
func randomTrack(r *rand.Rand) track {
	few := func() int64 { return []int64{0, 1, 15e9, 1 << 60}[r.IntN(4)] }
	yes := func() bool { return r.IntN(2) == 0 }
	t := track{seen: time.Duration(few()), steady: yes(), absent: uint8(r.IntN(maxAbsent + 1))}
	t.instance = metric.Instance{Start: few(), Origin: metric.StartOrigin(r.IntN(4)), Processes: int32(r.IntN(3) - 1), Line: r.Uint32()}
	if yes() {
		t.instance.UID, t.instance.Inode = "u", uint64(few())
	}
	if yes() {
		t.pod, t.run = &cluster.Pod{UID: "u"}, &cluster.Container{}
	}
	var v metric.Values
	for range r.IntN(6) {
		v.Set(metric.ID(r.IntN(int(metric.NumMetrics))), float64(few()))
	}
	t.last.keep(&v)
	for g := range t.groups {
		if yes() {
			continue
		}
		t.used |= 1 << g
		kept := &t.groups[g]
		*kept = group{time: few(), reason: metric.Reason(r.IntN(metric.NumReasons)), received: yes(), served: yes(), read: time.Duration(few())}
		kept.window = metric.Window{End: few(), Length: time.Duration(few())}
		if yes() {
			continue
		}
		kept.series = series{on: true, received: yes(), reset: yes(), stepped: yes(), unsure: yes(), impossible: uint8(r.IntN(inARow + 1)),
			since: time.Duration(few()), newest: few(), doubt: few(), least: float64(few()), n: r.IntN(maxEntries + 1)}
		for i := range kept.series.n {
			e := &kept.series.entries[i]
			e.time, e.counters = few(), noCounters
			for k := range counters[g] {
				if yes() {
					e.counters[k] = float64(few())
				}
			}
		}
	}
	return t
}
