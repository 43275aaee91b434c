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

// A pod is served if it runs and is the one that was measured.
func TestMayServe(t *testing.T) {
	running := &cluster.Pod{UID: "a", Phase: cluster.Running}
	f := func(what string, p *cluster.Pod, s *metric.Sample, want bool) {
		t.Helper()
		if got := MayServe(p, s); got != want {
			t.Errorf("%s: served %v, want %v", what, got, want)
		}
	}
	f("the measured one", running, sample("a", 1, 1), true)
	f("a source that tells no UID", running, sample("", 1, 1), true)
	f("another of its name", running, sample("b", 1, 1), false)
	f("one that ended since", &cluster.Pod{UID: "a", Phase: cluster.Succeeded}, sample("a", 1, 1), false)
	f("one that the API server does not know", nil, sample("a", 1, 1), false)
	f("one of which nothing was measured", running, nil, false)
	f("an amount below zero", running, sample("a", -1, 1), false)
	f("an infinite amount", running, sample("a", 1, math.Inf(1)), false)
	f("no amount", running, sample("a", math.NaN(), 1), false)
	half := sample("a", 1, 1)
	half.Values.Delete(metric.MemoryWorkingSet)
	f("CPU alone", running, half, false)
	lastKnown := sample("a", 1, 1)
	lastKnown.LastKnown, lastKnown.Rates[metric.CPU] = 1<<metric.CPU, metric.Window{End: 5.7e9, Length: time.Second}
	ended := func(at int64, role cluster.Role) *cluster.Pod {
		c := cluster.Container{Name: "app", State: cluster.StateRunning, Role: role, Previous: cluster.NewPreviousRun("", time.Unix(at, 0), "")}
		return &cluster.Pod{UID: "a", Phase: cluster.Running, Containers: []cluster.Container{c}}
	}
	f("last known value, and nothing has ended", running, lastKnown, true)
	f("last known value since after a run ended", ended(4, cluster.Regular), lastKnown, true)
	f("last known value of a run that has ended in that second, perhaps after", ended(5, cluster.Regular), lastKnown, false)
	f("last known value of a run that has ended", ended(6, cluster.Regular), lastKnown, false)
	f("last known value of a sidecar's", ended(6, cluster.Sidecar), lastKnown, false)
	f("last known value while init has ended", ended(6, cluster.Init), lastKnown, true)
	f("read while a run has ended", ended(6, cluster.Regular), sample("a", 1, 1), true)
	lastKnown.Rates[metric.CPU] = metric.Window{}
	f("last known value with a time alone", ended(6, cluster.Regular), lastKnown, false)
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
