package manager

import (
	"fmt"
	"testing"
	"time"

	"github.com/weir-metrics/weir/metric"
)

// Replicas of different versions must agree, so the offsets must never change.
func TestOffsetIsSteady(t *testing.T) {
	for _, c := range []struct {
		name     string
		interval time.Duration
		want     time.Duration
	}{
		{"host", 15 * time.Second, 6500 * time.Millisecond},
		{"kubelet:resource/node-1", 15 * time.Second, 12500 * time.Millisecond},
		{"kubelet:resource/node-2", 15 * time.Second, 2 * time.Second},
		{"kubelet:resource/node-1", 60 * time.Second, 57500 * time.Millisecond},
		{"kubelet:resource/node-1", time.Second, 500 * time.Millisecond},
	} {
		if got := newTimetable(c.name, c.interval).offset; got != c.want {
			t.Errorf("offset of %q in %v: got %v, want %v", c.name, c.interval, got, c.want)
		}
	}
}

func TestOffsetsAreSpread(t *testing.T) {
	const nodes, bins = 5000, 15
	var count [bins]int
	for i := range nodes {
		tt := newTimetable(fmt.Sprintf("kubelet:resource/node-%d", i), 15*time.Second)
		count[tt.offset/time.Second]++
	}
	// Of 5000 random values in 15 bins, one bin has 333 ± 18; the limit is five sigma.
	for i, n := range count {
		if n < 243 || n > 423 {
			t.Errorf("second %d of the interval: %d of %d sources, want 333 ± 90", i, n, nodes)
		}
	}
}

func TestFirst(t *testing.T) {
	for _, c := range []struct {
		says             string
		offset, interval time.Duration
		together         int
		want             time.Duration
	}{
		{"one alone is read at once", 14 * time.Second, 15 * time.Second, 1, 0},
		{"1001 spread over a second", 9 * time.Second, 15 * time.Second, 1001, 600 * time.Millisecond},
		{"in the order of their places", 3 * time.Second, 15 * time.Second, 1001, 200 * time.Millisecond},
		{"5001 over five seconds", 9 * time.Second, 15 * time.Second, 5001, 3 * time.Second},
		{"50,000 over half an interval, no more", 9 * time.Second, 15 * time.Second, 50000, 4500 * time.Millisecond},
	} {
		if got := (timetable{c.offset, c.interval}).first(c.together); got != c.want {
			t.Errorf("%s: first(%d) with offset %v of %v: got %v, want %v", c.says, c.together, c.offset, c.interval, got, c.want)
		}
	}
}

func TestNext(t *testing.T) {
	// Seconds since the epoch; the interval is 15 s, the offset 4 s, so the
	// places are 4, 19, 34, 49, 64.
	tt := timetable{offset: 4 * time.Second, interval: 15 * time.Second}
	for _, c := range []struct {
		says       string
		round      int
		due, now   float64
		newcomers  bool
		want       float64
		wantMissed int
	}{
		{"the second read comes 10 s after the first", 1, 1, 1, false, 11, 0},
		{"10 s after its end, so that fresh samples are 10 s apart", 1, 1, 3.5, false, 13.5, 0},
		{"though places lie between", 1, 18, 18, false, 28, 0},
		{"the third is at its place", 2, 11, 11, false, 19, 0},
		{"but not right after the second", 2, 18, 18, false, 34, 0},
		{"half an interval after is far enough", 2, 11.5, 11.5, false, 19, 0},
		{"then every interval", 3, 19, 19.5, false, 34, 0},
		{"a round that is late keeps the phase", 3, 19, 33.9, false, 34, 0},
		{"a round as long as the interval misses the next", 3, 19, 34, false, 49, 1},
		{"a longer one misses more", 3, 19, 70, false, 79, 3},
		{"a second read may miss places", 2, 11, 20, false, 34, 1},
		{"a timer that fires early does not read twice", 3, 19, 18.99, false, 34, 0},
		{"newcomers are looked at again halfway", 3, 19, 19.5, true, 26.5, 0},
		{"and again at the place", 4, 26.5, 27, true, 34, 0},
		{"which is steady once they are known", 4, 26.5, 27, false, 34, 0},
		{"nor after a late second read", 2, 30, 30.1, true, 41.5, 0},
		{"the second read comes no sooner for newcomers", 1, 1, 1, true, 11, 0},
		{"before the epoch too", 3, -11, -10, false, 4, 0},
	} {
		next, missed := tt.next(c.round, at(c.due), at(c.now), c.newcomers)
		if !next.Equal(at(c.want)) || missed != c.wantMissed {
			t.Errorf("%s: round %d due %v ended %v: got next %v, missed %d; want %v, %d",
				c.says, c.round, c.due, c.now, float64(next.UnixNano())/1e9, missed, c.want, c.wantMissed)
		}
	}
}

// TestNextAcrossClockSteps changes the clock between due and now: due is by the old wall clock,
// now by the new one, and only the monotonic clock has the elapsed time. Times without a
// monotonic reading, as here, are the worst case: even then the next round is at a place, and
// at most 2 intervals away.
func TestNextAcrossClockSteps(t *testing.T) {
	tt := timetable{offset: 4 * time.Second, interval: 15 * time.Second}
	for _, step := range []time.Duration{time.Hour, time.Minute, 5 * time.Millisecond, 0, -5 * time.Millisecond, -time.Minute, -time.Hour} {
		due := at(3604)
		now := due.Add(step)
		next, _ := tt.next(3, due, now, false)
		wait := next.Sub(now)
		if tt.phase(next) != 0 || wait <= 0 || wait > 2*tt.interval {
			t.Errorf("clock steps by %v: next round in %v, %v after its place; want a place within 30s", step, wait, tt.phase(next))
		}
	}
}

// In any schedule of long and short rounds, every place is either due or counted as missed.
func TestNextLosesNoPlace(t *testing.T) {
	tt := newTimetable("host", 15*time.Second)
	due := tt.upcoming(at(1000))
	lasts := []time.Duration{0, time.Second, 15 * time.Second, 16 * time.Second, 14999 * time.Millisecond, 90 * time.Second, 45 * time.Second}
	start, rounds, missed := due, 0, 0
	for i := range 700 {
		next, m := tt.next(3+i, due, due.Add(lasts[i%len(lasts)]), false)
		due, rounds, missed = next, rounds+1, missed+m
	}
	if got, want := rounds+missed, int(due.Sub(start)/tt.interval); got != want {
		t.Errorf("%d rounds and %d missed: got %d places, want %d", rounds, missed, got, want)
	}
}

func at(seconds float64) time.Time { return time.Unix(0, int64(seconds*1e9)) }

func TestNewcomers(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	for _, c := range []struct {
		says   string
		kind   metric.Kind
		group  metric.Group
		reason metric.Reason
		age    time.Duration // 0: unknown
		want   bool
	}{
		{"a container seen for the first time", metric.Container, metric.CPU, metric.FirstSample, 20 * time.Second, true},
		{"one in the first round that brought anything", metric.Container, metric.CPU, metric.WarmingUp, 20 * time.Second, true},
		{"one too young", metric.Container, metric.CPU, metric.TooYoung, 3 * time.Second, true},
		{"one whose start nobody told", metric.Container, metric.CPU, metric.FirstSample, 0, true},
		{"one whose counter has not moved since it started", metric.Container, metric.CPU, metric.FirstSample, time.Minute, false},
		{"one whose node's clock is ahead", metric.Container, metric.CPU, metric.TooYoung, -time.Second, true},
		{"a container that fell", metric.Container, metric.CPU, metric.CounterReset, 20 * time.Second, false},
		{"the network of a pod", metric.Pod, metric.Network, metric.FirstSample, 20 * time.Second, false},
	} {
		v := metric.Verdict{Entity: metric.Entity{Kind: c.kind}, Group: c.group, Reason: c.reason}
		if c.age != 0 {
			v.Instance.Start = now.Add(-c.age).UnixNano()
		}
		b := &metric.Batch{Interval: 15 * time.Second, Ended: now, Verdicts: []metric.Verdict{v}}
		if got := newcomers(b); got != c.want {
			t.Errorf("%s: got %v, want %v", c.says, got, c.want)
		}
	}
}
