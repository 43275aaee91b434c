package run_test

import (
	"testing"
	"time"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/metric/run"
)

var epoch = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// at returns the time d after epoch.
func at(d time.Duration) time.Time { return epoch.Add(d) }

// ns returns at(d) in nanoseconds since the Unix epoch.
func ns(d time.Duration) int64 { return at(d).UnixNano() }

func TestIntervals(t *testing.T) {
	f := func(name string, got run.Interval, earliest, latest time.Duration) {
		t.Helper()
		if want := (run.Interval{Earliest: ns(earliest), Latest: ns(latest)}); got != want {
			t.Errorf("%s: from %v to %v; want from %v to %v", name,
				time.Unix(0, got.Earliest).Sub(epoch), time.Unix(0, got.Latest).Sub(epoch), earliest, latest)
		}
	}
	reported := run.Reported(ns(10*time.Second), metric.StartReported, run.Jitter)
	f("reported", reported, 5*time.Second, 15*time.Second)
	f("recorded", run.Recorded(at(10*time.Second)), 9*time.Second, 11*time.Second)
	f("clock put forward by 1 h", reported.Shift(time.Hour), time.Hour+5*time.Second, time.Hour+15*time.Second)
	used := run.CoresAllow(24e9, 4, ns(18*time.Second))
	if used.EndsBefore(ns(12*time.Second)) || !used.EndsBefore(ns(12*time.Second)+1) || !used.Overlaps(reported) {
		t.Errorf("a counter of 24 s on 4 cores at 18 s: %v, want until 12 s", used)
	}
	if got := used.Shift(time.Hour); got.Earliest != used.Earliest || got.Latest != ns(time.Hour+12*time.Second) {
		t.Errorf("a counter, and the clock put forward by 1 h: %v, want until 1h0m12s, the earliest time unknown", got)
	}
}

func TestUnknownIntervals(t *testing.T) {
	known := run.Recorded(at(0))
	for name, i := range map[string]run.Interval{
		"no start":                   run.Reported(0, metric.StartReported, run.Cut),
		"a cgroup's time":            run.Reported(ns(0), metric.StartCgroup, run.Cut),
		"no recorded start":          run.Recorded(time.Time{}),
		"no cores":                   run.CoresAllow(1e9, 0, ns(0)),
		"no counter":                 run.CoresAllow(0, 4, ns(0)),
		"an unknown one that shifts": run.Interval{}.Shift(time.Hour),
	} {
		if i.Known() || !i.Overlaps(known) || i.Before(known) || known.Before(i) || i.EndsBefore(ns(0)) {
			t.Errorf("%s: %v, want an unknown interval that overlaps all others", name, i)
		}
	}
}

func TestCompare(t *testing.T) {
	inst := func(start time.Duration, id string) *metric.Instance {
		return &metric.Instance{ID: metric.ContainerID(id), Start: ns(start), Origin: metric.StartReported}
	}
	f := func(name string, a, b *metric.Instance, want run.Likeness) {
		t.Helper()
		if got := run.Compare(a, b); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
		mirrored := map[run.Likeness]run.Likeness{run.Earlier: run.Later, run.Later: run.Earlier}
		if other, differs := mirrored[want]; differs {
			want = other
		}
		if got := run.Compare(b, a); got != want {
			t.Errorf("%s, the other way round: %v, want %v", name, got, want)
		}
	}
	f("equal IDs decide", inst(0, "a"), inst(time.Hour, "a"), run.Same)
	f("other IDs decide", inst(0, "a"), inst(0, "b"), run.Other)
	f("other UIDs decide", &metric.Instance{UID: "u", ID: "a"}, &metric.Instance{UID: "v", ID: "a"}, run.Other)
	f("equal UIDs do not", &metric.Instance{UID: "u", Start: ns(0), Origin: metric.StartReported}, &metric.Instance{UID: "u", Start: ns(6 * time.Second), Origin: metric.StartReported}, run.Earlier)
	f("one cgroup", &metric.Instance{Path: "/a", Inode: 7}, &metric.Instance{Path: "/a", Inode: 7}, run.Same)
	f("one of them cut", inst(1999*time.Millisecond, ""), inst(time.Second, "a"), run.Same)
	f("3 s apart", inst(0, ""), inst(3*time.Second, ""), run.Undecided)
	f("6 s apart", inst(0, ""), inst(6*time.Second, ""), run.Earlier)
	f("one start unknown", inst(0, ""), &metric.Instance{}, run.Undecided)
	f("a cgroup's time", inst(0, ""), &metric.Instance{Start: ns(time.Hour), Origin: metric.StartCgroup}, run.Undecided)
}

func TestIsLater(t *testing.T) {
	f := func(start, other, resolution time.Duration, want bool) {
		t.Helper()
		if got := run.IsLater(ns(start), ns(other), resolution); got != want {
			t.Errorf("IsLater(%v, %v) at a resolution of %v: %v, want %v", start, other, resolution, got, want)
		}
	}
	f(time.Second, 0, time.Second, true) // both are cut by one clock
	f(1999*time.Millisecond, 0, time.Second, false)
	f(2001*time.Millisecond, 0, time.Second, true)
	f(99*time.Millisecond, 0, time.Millisecond, false)
	f(101*time.Millisecond, 0, time.Millisecond, true)
	f(0, time.Minute, time.Millisecond, false)
}

func TestAssignmentDistance(t *testing.T) {
	f := func(a, b int64, want time.Duration) {
		t.Helper()
		if got := run.AssignmentDistance(a, b); got != int64(want) {
			t.Errorf("AssignmentDistance(%d, %d) = %d, want %d", a, b, got, want)
		}
	}
	f(ns(1500*time.Millisecond), ns(time.Second), 0) // one is the other one cut to the second
	f(ns(time.Second), ns(1500*time.Millisecond), 0)
	f(ns(3*time.Second), ns(time.Second), 2*time.Second)
	f(0, ns(0), run.UnknownDistance)
}

func TestWhich(t *testing.T) {
	running := run.Record{
		State: run.Running, ID: "c2", Start: at(0),
		LastID: "c1", LastStart: at(-time.Hour), LastEnd: at(-10 * time.Second),
	}
	first := run.Record{State: run.Running, ID: "c1", Start: at(0), First: true}
	unended := run.Record{State: run.Running, ID: "c2", Start: at(0)}
	waits := run.Record{State: run.Stopped, ID: "c1", LastStart: at(-time.Hour), LastEnd: at(-10 * time.Second)}
	limits := run.Limits{Resolution: time.Millisecond, Cores: 4, Now: ns(time.Minute)}
	start := func(d time.Duration) run.Seen {
		return run.Seen{Start: ns(d), Origin: metric.StartReported, Read: ns(50 * time.Second), CPU: 1e9}
	}
	named := func(id string, s run.Seen) run.Seen {
		s.ID = metric.ContainerID(id)
		return s
	}
	read := func(d time.Duration, cpu time.Duration) run.Seen {
		return run.Seen{Read: ns(d), CPU: float64(cpu)}
	}
	f := func(name string, r run.Record, s run.Seen, want run.Run, by run.Basis) {
		t.Helper()
		if got, basis := r.Which(&s, &limits); got != want || basis != by {
			t.Errorf("%s: run %d by %d, want run %d by %d", name, got, basis, want, by)
		}
	}
	f("not mentioned", run.Record{}, start(0), run.AnyRun, run.ByNothing)
	f("the ID", running, named("c2", start(-time.Hour)), run.Present, run.ByName)
	f("the last ID", running, named("c1", start(0)), run.Ended, run.ByName)
	f("an unknown ID that began before", running, named("c0", start(-2*time.Hour)), run.Ended, run.ByName)
	f("an unknown ID that began after", running, named("c3", start(30*time.Second)), run.Newer, run.ByName)
	f("an unknown ID without a start", running, named("c3", read(50*time.Second, time.Second)), run.AnyRun, run.ByName)
	f("the start", running, start(900*time.Millisecond), run.Present, run.ByStart)
	f("a start before the last end", running, start(-30*time.Minute), run.Ended, run.ByStart)
	f("a start between the runs", running, start(-5*time.Second), run.AnyRun, run.ByNothing)
	f("a start 3 s after", running, start(3*time.Second), run.AnyRun, run.ByNothing)
	f("a start 30 s after", running, start(30*time.Second), run.Newer, run.ByStart)
	f("a start 30 s before, the last end unknown", unended, start(-30*time.Second), run.AnyRun, run.ByNothing)
	f("a start 2 m before, the last end unknown", unended, start(-2*time.Minute), run.Ended, run.ByStart)
	f("a first run that began before its record", first, start(-2*time.Minute), run.AnyRun, run.ByNothing)
	f("read before", running, read(-20*time.Second, time.Second), run.Ended, run.ByReading)
	f("read since", running, read(20*time.Second, time.Second), run.AnyRun, run.ByNothing)
	f("more than the cores allow", running, read(20*time.Second, 10*time.Minute), run.Ended, run.ByCounter)
	f("the run that ended", waits, named("c1", start(0)), run.Ended, run.ByName)
	f("a start before the end", waits, start(-time.Minute), run.Ended, run.ByStart)
	f("a start after the end", waits, start(-5*time.Second), run.AnyRun, run.ByNothing)
	f("read before the end", waits, read(-20*time.Second, time.Second), run.Ended, run.ByReading)

	ahead := run.Record{State: run.Running, ID: "c2", Start: at(time.Hour)}
	f("recorded before the clock was put back", ahead, read(0, time.Second), run.AnyRun, run.ByNothing)
}

func TestWouldName(t *testing.T) {
	known := ns(0)
	f := func(name string, start int64, origin metric.StartOrigin, want bool) {
		t.Helper()
		if got := run.WouldName(start, origin, known, run.RecordLag(15*time.Second)); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	f("59 s before", ns(-59*time.Second), metric.StartReported, false)
	f("61 s before", ns(-61*time.Second), metric.StartReported, true)
	f("unknown", 0, metric.StartReported, false)
	f("a cgroup's time", ns(-time.Hour), metric.StartCgroup, false)
}
