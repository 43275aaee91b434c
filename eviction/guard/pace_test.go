package guard

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/weir-metrics/weir/eviction"
)

// fill is a working set that grows. Its threshold is limit.
type fill struct {
	name  string
	limit int64
	at    func(seconds float64) float64 // the working set in bytes
}

// fills grow for 20 s, and cross their limit in that time.
var fills = []fill{
	{"1 MiB/s", 108 * mib, func(s float64) float64 { return 100*mib + mib*s }},
	{"20 MiB/s", 300 * mib, func(s float64) float64 { return 100*mib + 20*mib*s }},
	{"20 MiB/s, near", 103 * mib, func(s float64) float64 { return 100*mib + 20*mib*max(0, s-10) }},
	{"20 MiB/s in huge pages", 301 * mib, func(s float64) float64 { return 100*mib + 2*mib*math.Floor(10*s) }},
	{"2 GiB/s", 20 * gib, func(s float64) float64 { return gib + 2*gib*s }},
	{"2 GiB/s, near", 6 * gib, func(s float64) float64 { return 5*gib + 2*gib*max(0, s-10) }},
	{"16 GiB/s", 60 * gib, func(s float64) float64 { return 5*gib + 16*gib*max(0, s-10) }},
	{"16 GiB/s, near", 6 * gib, func(s float64) float64 { return 5*gib + 16*gib*max(0, s-10) }},
	{"16 GiB/s, 100 MiB near", 5*gib + 100*mib, func(s float64) float64 { return 5*gib + 16*gib*max(0, s-10) }},
	{"faster and faster", 50 * gib, func(s float64) float64 { return gib + gib*math.Exp2(s/2) }},
	{"a step", 6 * gib, func(s float64) float64 { return 5*gib + 2*gib*math.Floor(s/10) }},
}

// pauses decides when to look next, from the distance to the limit and the last two looks.
type pauses func(at time.Time, workingSet, limit int64) time.Duration

// crossing returns the time at which a fill crosses its limit.
func (f *fill) crossing() (at time.Duration) {
	for f.at(at.Seconds()) <= float64(f.limit) {
		at += 100 * time.Microsecond
	}
	return at
}

// crossingDelay looks at a fill, the first time at the offset. It returns the time from the crossing
// to the look that finds it, and the number of looks before.
func crossingDelay(f fill, crossed, offset time.Duration, next pauses) (delay time.Duration, looks int) {
	begin := time.Unix(0, 0)
	for at := offset; ; looks++ {
		workingSet := int64(f.at(at.Seconds()))
		if workingSet > f.limit {
			return at - crossed, looks
		}
		at += next(begin.Add(at), workingSet, f.limit)
	}
}

// guardPauses returns the pauses of a guard on two processors, whose reads take cost.
func guardPauses(cost time.Duration) pauses {
	p := newPace(2)
	return func(at time.Time, workingSet, limit int64) time.Duration {
		grows := p.observe(eviction.MemoryAvailable, at.Add(-cost), at, workingSet)
		return p.pause(limit-workingSet, grows)
	}
}

// timerPauses returns the pauses of the guard without polls, and of the kubelet.
func timerPauses(time.Time, int64, int64) time.Duration { return 10 * time.Second }

// likeEarlyoom returns the pauses of earlyoom 1.8: what is left by 6000 MiB/s, but 100 ms to 1 s.
func likeEarlyoom(_ time.Time, workingSet, limit int64) time.Duration {
	return min(max(seconds(float64(limit-workingSet)/(6000*mib)), 100*time.Millisecond), time.Second)
}

// slowRead is the cost of a read on an emulated node.
const slowRead = 500 * time.Microsecond

// TestCrossingsAreFoundInTime simulates fills, with a hundred different times of the first look. It
// logs the delays and the number of looks, also of the alternatives.
func TestCrossingsAreFoundInTime(t *testing.T) {
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "fill\ttimer: mean\tmost\tlooks\tearlyoom: mean\tmost\tlooks\tpace: mean\tmost\tlooks\tover, MiB\tslow reads: mean\tmost\tlooks\tover, MiB")
	for _, f := range fills {
		crossed := f.crossing()
		fmt.Fprint(w, f.name)
		for i, kind := range []func() pauses{func() pauses { return timerPauses }, func() pauses { return likeEarlyoom }, func() pauses { return guardPauses(20 * time.Microsecond) }, func() pauses { return guardPauses(slowRead) }} {
			var sum, most time.Duration
			all := 0
			const offsets = 100
			for k := range offsets {
				delay, looks := crossingDelay(f, crossed, time.Duration(k)*9700*time.Microsecond, kind())
				sum, most, all = sum+delay, max(most, delay), all+looks
			}
			fmt.Fprintf(w, "\t%s\t%s\t%d", (sum / offsets).Round(100*time.Microsecond), most.Round(100*time.Microsecond), all/offsets)
			if i < 2 {
				continue
			}
			fmt.Fprintf(w, "\t%.1f", (f.at((crossed+most).Seconds())-float64(f.limit))/mib)
			want := 2 * time.Millisecond // the speed is known before the crossing
			switch near := strings.HasSuffix(f.name, "near") || f.name == "a step"; {
			case strings.HasSuffix(f.name, "huge pages"):
				want = 7 * time.Millisecond // the next one may come at any time
			case near && i == 3:
				want = maxRest + slowRead // a pause at rest
			case i == 3:
				want = 10 * slowRead
			case f.name == "a step":
				want = 32 * time.Millisecond // two processors need as long to fill 1 GiB
			case near:
				want = 21 * time.Millisecond // a pause at rest
			}
			if most > want {
				t.Errorf("%s, %d: found after %s, want %s at most", f.name, i, most, want)
			}
			if looks := all / offsets; looks > 20*60 {
				t.Errorf("%s: %d looks in 20 s, want 50 in a second and a few", f.name, looks)
			}
		}
		fmt.Fprintln(w)
	}
	w.Flush()
	t.Logf("\n%s", &table)
}

// TestPace checks what polls cost while nothing happens, and the bounds of the pause.
func TestPace(t *testing.T) {
	f := func(name string, cost time.Duration, distance int64, now float64, want time.Duration) {
		t.Helper()
		p := newPace(2)
		p.cost = cost
		if got := p.pause(distance, speeds{now: now}); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	const ms, us = time.Millisecond, time.Microsecond
	f("far", 20*us, 64*gib, 0, time.Second)
	f("as far as two processors fill in half a second", 20*us, 16*gib, 0, 500*ms)
	f("near", 20*us, mib, 0, 20*ms)
	f("near, with reads of 0.5 ms", 500*us, mib, 0, 50*ms)
	f("near, with reads of 1 ms", ms, mib, 0, 100*ms)
	f("near, with very slow reads", time.Second, mib, 0, time.Second)
	f("near, with reads that cost nothing", 0, 0, 0, ms)
	f("approached", 20*us, 10*mib, 1000*mib, 4*ms)
	f("approached from afar", 20*us, 16*gib, gib, 500*ms)
	f("almost reached", 20*us, 1, gib, ms)
	f("almost reached, with slow reads", 200*us, 1, gib, 2*ms)
	f("receding", 20*us, 10*mib, -1000*mib, 20*ms)
	f("met, and shrinking", 20*us, -10*mib, -1000*mib, 4*ms)
	f("met, and growing", 20*us, -10*mib, 1000*mib, 20*ms)
	f("standing at it", 20*us, 0, 0, 20*ms)

	for processors, want := range map[int]time.Duration{32: 500 * ms, 64: 250 * ms, 512: 250 * ms} {
		if got := newPace(processors).pause(256*gib, speeds{}); got != want {
			t.Errorf("256 GiB away, with %d processors: %s, want %s", processors, got, want)
		}
	}

	p, now := newPace(2), time.Unix(0, 0)
	for range 2 {
		p.observe(eviction.MemoryAvailable, now, now.Add(10*us), gib)
		p.observe(eviction.AllocatableMemoryAvailable, now, now.Add(20*us), gib)
	}
	if got := p.pause(mib, speeds{}); got != 30*ms {
		t.Errorf("near, with two signals that take 10 and 20 µs: %s, want 30ms", got)
	}

	p = newPace(2)
	p.cost = 20 * us
	if got := p.pause(mib, speeds{lately: 20 * mib}); got != 6250*us {
		t.Errorf("less than a huge page away, and at rest since the last one: %s, want a part of the 100ms of a huge page", got)
	}
	reads := []struct {
		after      time.Duration
		signal     eviction.Signal
		workingSet int64
		want       speeds
	}{
		{0, eviction.MemoryAvailable, gib, speeds{}},
		{0, eviction.AllocatableMemoryAvailable, mib, speeds{}},
		{500 * ms, eviction.MemoryAvailable, gib + mib, speeds{now: 2 * mib}},
		{500 * ms, eviction.MemoryAvailable, gib + 2*mib, speeds{now: 2 * mib, lately: 2 * mib}},
		{500 * ms, eviction.MemoryAvailable, gib + 6*mib, speeds{now: 8 * mib, lately: 4 * mib}},
		{500 * ms, eviction.MemoryAvailable, gib + 6*mib, speeds{now: 0, lately: 4 * mib}}, // over the last second
	}
	for i, r := range reads {
		now = now.Add(r.after)
		if got := p.observe(r.signal, now, now, r.workingSet); got != r.want {
			t.Errorf("read %d: speeds %v, want %v", i, got, r.want)
		}
	}
}
