package resourceusage

import (
	"math"
	"testing"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// sample returns the own sample of a pod with this UID, with both groups measured.
func sample(uid metric.PodUID, cpu, memory float64) *metric.Sample {
	s := &metric.Sample{}
	s.Instance.UID = uid
	for _, g := range []metric.Group{metric.CPU, metric.Memory} {
		s.Reasons[g] = metric.Measured
	}
	s.Times[metric.CPU] = 7
	s.Values.Set(metric.CPUUsageRate, cpu)
	s.Values.Set(metric.MemoryWorkingSet, memory)
	return s
}

// Times are seconds.
func second(n float64) int64 { return int64(n * 1e9) }

// usage returns a PodUsage with one container app, measured at a time in a run that began at start.
func usage(uid metric.PodUID, measured, start float64) *PodUsage {
	u := &PodUsage{UID: &uid}
	w := metric.Window{End: second(measured), Length: 15 * time.Second}
	u.Add(Usage{Name: "app", CPU: 1, Memory: 1}, NewRun(w, w.End, "", second(start), metric.StartReported))
	return u
}

// withID returns u with an ID for its run.
func withID(u *PodUsage, id metric.ContainerID) *PodUsage {
	u.Runs[0].ID = id
	return u
}

// A pod is served if it runs and is the one that was measured.
func TestMayServe(t *testing.T) {
	running := &cluster.Pod{UID: "a", Phase: cluster.Running}
	f := func(what string, p *cluster.Pod, u *PodUsage, want bool) {
		t.Helper()
		if got := MayServePod(p, u); got != want {
			t.Errorf("%s: served %v, want %v", what, got, want)
		}
	}
	f("the measured one", running, usage("a", 100, 0), true)
	f("a source that reports no UID", running, usage("", 100, 0), true)
	f("another of its name", running, usage("b", 100, 0), false)
	f("one that ended since", &cluster.Pod{UID: "a", Phase: cluster.Succeeded}, usage("a", 100, 0), false)
	f("one that the API server does not know", nil, usage("a", 100, 0), false)

	pod := func(c cluster.Container) *cluster.Pod {
		c.Name = "app"
		return &cluster.Pod{UID: "a", Phase: cluster.Running, Containers: []cluster.Container{c}}
	}
	at := func(n int64) time.Time { return time.Unix(n, 0) }
	ended := func(n int64) *cluster.PreviousRun { return cluster.PreviousRun{EndedAt: at(n)}.OrNil() }
	f("it still runs", pod(cluster.Container{State: cluster.StateRunning, StartedAt: at(50)}), usage("a", 100, 50), true)
	f("restarted before", pod(cluster.Container{State: cluster.StateRunning, StartedAt: at(80), Previous: ended(79)}), usage("a", 100, 0), true)
	f("restarted since", pod(cluster.Container{State: cluster.StateRunning, StartedAt: at(102), Previous: ended(101)}), usage("a", 100, 0), false)
	f("restarted in that second", pod(cluster.Container{State: cluster.StateRunning, StartedAt: at(100)}), usage("a", 100.7, 0), false)
	f("restarted since, by the start as well", pod(cluster.Container{State: cluster.StateRunning, StartedAt: at(102)}), usage("a", 100, 50), false)
	f("the clock was put back after it began", pod(cluster.Container{State: cluster.StateRunning, StartedAt: at(3600)}), usage("a", 100, 3600.3), true)
	f("the start is a cgroup's", pod(cluster.Container{State: cluster.StateRunning, StartedAt: at(3600)}), func() *PodUsage {
		u := usage("a", 100, 0)
		u.Runs[0] = NewRun(u.Window, 0, "", second(3600), metric.StartCgroup)
		return u
	}(), false)
	f("waits since", pod(cluster.Container{State: cluster.StateWaiting, Previous: ended(101)}), usage("a", 100, 0), false)
	f("has ended since", pod(cluster.Container{State: cluster.StateTerminated, Previous: ended(100)}), usage("a", 100.2, 0), false)
	f("the API server is late: it still waits", pod(cluster.Container{State: cluster.StateWaiting, Previous: ended(60)}), usage("a", 100, 0), true)
	f("it has never run, by the API server", pod(cluster.Container{State: cluster.StateWaiting}), usage("a", 100, 0), true)
	f("the time is unknown", pod(cluster.Container{State: cluster.StateWaiting, Previous: ended(101)}), usage("a", 0, 0), true)

	// IDs need no clock.
	since := cluster.Container{State: cluster.StateRunning, ID: "2", StartedAt: at(3600), Previous: cluster.PreviousRun{LastID: "1", StartedAt: at(40), EndedAt: at(3599)}.OrNil()}
	f("the clock was put back, and the ID is that of the present run", pod(since), withID(usage("a", 100, 0), "2"), true)
	f("the ID is that of the run that ended", pod(since), withID(usage("a", 100, 3600), "1"), false)
	f("the ID is neither, and it was measured before", pod(since), withID(usage("a", 100, 0), "0"), false)
	f("the ID is neither, and it was measured since: the API server is late", pod(since), withID(usage("a", 4000, 3900), "3"), true)
	waits := cluster.Container{State: cluster.StateWaiting, ID: "1", Previous: cluster.PreviousRun{LastID: "1", StartedAt: at(40), EndedAt: at(60)}.OrNil()}
	f("it waits, and the ID is that of the run that ended", pod(waits), withID(usage("a", 58, 0), "1"), false)
	f("it waits, and the ID is that of a later run", pod(waits), withID(usage("a", 70, 0), "2"), true)

	// A run that ended soon began near the present one.
	crashed := cluster.Container{State: cluster.StateRunning, StartedAt: at(104), Previous: cluster.PreviousRun{StartedAt: at(100), EndedAt: at(102)}.OrNil()}
	f("a crash within seconds", pod(crashed), usage("a", 102, 100), false)
	f("a crash within seconds, and the clock was put back", pod(crashed), usage("a", 102, 103.6), true)

	// ContainerStatusUnknown has no times.
	f("it ended at an unknown time", pod(cluster.Container{State: cluster.StateTerminated, ID: "1", StartedAt: at(50)}), usage("a", 100, 50.2), false)
	f("it ended at an unknown time, and this is its ID", pod(cluster.Container{State: cluster.StateTerminated, ID: "1"}), withID(usage("a", 100, 0), "1"), false)
	f("it ended at an unknown time, and this is a later run", pod(cluster.Container{State: cluster.StateTerminated, ID: "1", StartedAt: at(50)}), usage("a", 100, 70), true)
	f("it waits, and its last run ended at an unknown time", pod(cluster.Container{State: cluster.StateWaiting, ID: "1", Previous: cluster.PreviousRun{LastID: "1", StateReason: "CrashLoopBackOff"}.OrNil()}), usage("a", 100, 0), false)

	memory := usage("a", 110, 0)
	memory.MeasuredAt, memory.Runs[0] = second(100), NewRun(memory.Window, second(100), "", 0, metric.StartReported)
	f("the memory is of the run before", pod(cluster.Container{State: cluster.StateRunning, StartedAt: at(102)}), memory, false)
}

// A container that no longer runs is not part of its pod. One that began again has no number yet,
// and a pod is served whole.
func TestMayServeOtherContainers(t *testing.T) {
	p := &cluster.Pod{UID: "a", Phase: cluster.Running, Containers: []cluster.Container{
		{Name: "app", State: cluster.StateWaiting, Previous: cluster.PreviousRun{EndedAt: time.Unix(101, 0), StateReason: "CrashLoopBackOff"}.OrNil()},
		{Name: "mesh", State: cluster.StateRunning, Role: cluster.Sidecar},
		{Name: "setup", State: cluster.StateTerminated, Role: cluster.Init, Previous: cluster.PreviousRun{EndedAt: time.Unix(101, 0)}.OrNil()},
	}}
	u := usage("a", 100, 0)
	w := metric.Window{End: second(103), Length: time.Second}
	for _, name := range []string{"mesh", "setup", "unknown"} {
		u.Add(Usage{Name: name, CPU: 2, Memory: 2}, NewRun(w, 0, "", 0, 0))
	}
	u.Runs[2].MeasuredAt = second(99)
	if !MayServePod(p, u) || len(u.Containers) != 2 || u.Containers[0].Name != "mesh" || u.Containers[1].Name != "unknown" || u.Window != w || u.MeasuredAt != w.End || len(u.Runs) != 2 {
		t.Errorf("got %+v, want the containers mesh and unknown and their window", u)
	}
	p.Containers[1].StartedAt = time.Unix(200, 0)
	if MayServePod(p, u) {
		t.Errorf("got %+v without a number of the sidecar, which began again", u)
	}
}

// A pod's own sample must have both numbers, and neither may be in doubt.
func TestHasBothNumbers(t *testing.T) {
	f := func(what string, s *metric.Sample, want bool) {
		t.Helper()
		if got := HasBothNumbers(s); got != want {
			t.Errorf("%s: got %v, want %v", what, got, want)
		}
	}
	f("both", sample("a", 1, 1), true)
	f("no sample", nil, false)
	f("an amount below zero", sample("a", -1, 1), false)
	f("an infinite amount", sample("a", 1, math.Inf(1)), false)
	f("no amount", sample("a", math.NaN(), 1), false)
	half := sample("a", 1, 1)
	half.Values.Delete(metric.MemoryWorkingSet)
	f("CPU alone", half, false)
	doubtful := sample("a", 1, 1)
	doubtful.Reasons[metric.Memory] = metric.Ambiguous
	f("in doubt", doubtful, false)
}

// Numbers are rounded and at most the largest int64. The time is that of the rate, if it has a
// window.
func TestUsageOf(t *testing.T) {
	s := sample("a", 1.5, 1e30)
	u, over, ok := UsageOf(s)
	if u.CPU != 2 || u.Memory != math.MaxInt64 || over != (metric.Window{End: 7}) || !ok {
		t.Errorf("got %+v over %+v, %v; want 2 nanocores, the most bytes there are, and the time 7", u, over, ok)
	}
	s.Rates[metric.CPU] = metric.Window{End: 9, Length: time.Second}
	if _, over, _ = UsageOf(s); over != (metric.Window{End: 9, Length: time.Second}) {
		t.Errorf("got %+v, want the rate's window", over)
	}
}

// A pod is as old as its oldest container, whichever comes first.
func TestOlderWindow(t *testing.T) {
	f := func(a, b, want metric.Window) {
		t.Helper()
		if x, y := OlderWindow(a, b), OlderWindow(b, a); x != want || y != want {
			t.Errorf("%v and %v: got %v and %v, want %v", a, b, x, y, want)
		}
	}
	f(metric.Window{End: 1, Length: time.Second}, metric.Window{End: 2, Length: time.Minute}, metric.Window{End: 1, Length: time.Second})
	f(metric.Window{End: 2, Length: time.Second}, metric.Window{End: 2, Length: time.Minute}, metric.Window{End: 2, Length: time.Minute})
	if got := OlderWindow(metric.Window{}, metric.Window{End: 5, Length: 1}); got != (metric.Window{End: 5, Length: 1}) {
		t.Errorf("the first container: got %v, want its own", got)
	}
}
