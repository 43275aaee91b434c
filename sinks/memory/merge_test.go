package memory

import (
	"slices"
	"testing"
	"time"

	"github.com/weir-metrics/weir/metric"
)

// resourceAndSummary writes a pod as two endpoints of one kubelet report it: the first often
// and to the millisecond, the second seldom, in whole seconds, and with more metrics.
func resourceAndSummary(t *testing.T, o Options, change func(resource, summary *metric.Sample)) (*Sink, metric.Entity) {
	t.Helper()
	sink := New(o)
	p := on("n1", pod("a", "p"))
	b := at("kubelet:summary", "n1", 0)
	b.Resolution, b.Interval = time.Second, time.Minute
	summary := use(b, p, 1, 10)
	summary.Instance.UID = "u"
	summary.Values.Set(metric.MemoryRSS, 7)
	measure(summary, metric.Network, epoch.UnixNano())
	summary.Values.Set(metric.NetworkRx, 70)
	c := at("kubelet:resource", "n1", 15*time.Second)
	resource := use(c, p, 2, 20)
	if change != nil {
		change(resource, summary)
	}
	write(t, sink, b)
	write(t, sink, c)
	return sink, p
}

func TestFinerClockWins(t *testing.T) {
	sink, p := resourceAndSummary(t, Options{}, nil)
	for how, get := range map[string]func() *metric.Sample{
		"Lookup": func() *metric.Sample { s, _ := sink.Snapshot().Lookup(p); return s },
		"Samples": func() *metric.Sample {
			all := slices.Collect(sink.Snapshot().Samples(metric.Pod))
			if len(all) != 1 {
				t.Fatalf("got %d pods, want 1", len(all))
			}
			return all[0]
		},
	} {
		s := get()
		if s == nil {
			t.Fatalf("%s: nothing", how)
		}
		value(t, s, metric.CPUUsageRate, 2)
		value(t, s, metric.MemoryWorkingSet, 20)
		value(t, s, metric.MemoryRSS, 7) // only the summary has it
		value(t, s, metric.NetworkRx, 70)
		if got, want := s.Times[metric.Memory], epoch.Add(15*time.Second).UnixNano(); got != want {
			t.Errorf("%s: memory's time: got %d, want %d", how, got, want)
		}
		if s.Instance.UID != "u" {
			t.Errorf("%s: UID: got %q, want that of the summary", how, s.Instance.UID)
		}
	}
}

func TestPreferenceGoesBeforeClock(t *testing.T) {
	sink, p := resourceAndSummary(t, Options{Preference: []string{"kubelet:summary"}}, nil)
	s, _ := sink.Snapshot().Lookup(p)
	value(t, s, metric.CPUUsageRate, 1)
}

func TestServedGoesBeforePreference(t *testing.T) {
	sink, p := resourceAndSummary(t, Options{}, func(resource, _ *metric.Sample) { resource.Reasons[metric.CPU] = metric.FirstSample })
	s, _ := sink.Snapshot().Lookup(p)
	value(t, s, metric.CPUUsageRate, 1)
	value(t, s, metric.MemoryWorkingSet, 20)
}

func TestFreshGoesBeforeLastKnown(t *testing.T) {
	sink, p := resourceAndSummary(t, Options{}, func(resource, _ *metric.Sample) { resource.LastKnown = 1 << metric.CPU })
	s, _ := sink.Snapshot().Lookup(p)
	value(t, s, metric.CPUUsageRate, 1)
	value(t, s, metric.MemoryWorkingSet, 20)
}

// The summary still has the container that ended. Its numbers must not be merged into the new
// container, nor be served for it.
func TestOlderRunIsIgnored(t *testing.T) {
	sink, p := resourceAndSummary(t, Options{}, func(resource, summary *metric.Sample) {
		summary.Instance.Start, summary.Instance.Origin = epoch.Add(-time.Hour).UnixNano(), metric.StartReported
		resource.Instance.Start, resource.Instance.Origin = epoch.Add(10*time.Second).UnixNano(), metric.StartReported
		resource.Reasons[metric.CPU] = metric.TooYoung
	})
	s, _ := sink.Snapshot().Lookup(p)
	value(t, s, metric.MemoryWorkingSet, 20)
	for _, id := range []metric.ID{metric.CPUUsageRate, metric.MemoryRSS, metric.NetworkRx} {
		if v, ok := s.Values.Get(id); ok {
			t.Errorf("%v: got %v of the old container, want nothing", id, v)
		}
	}
	if got := s.Reasons[metric.CPU]; got != metric.TooYoung {
		t.Errorf("reason: got %v, want TooYoung", got)
	}
}

func TestAnAbsenceThatAnotherSourceFills(t *testing.T) {
	sink, p := resourceAndSummary(t, Options{}, nil)
	b := at("kubelet:resource", "n1", 30*time.Second)
	use(b, p, 3, 30).Reasons[metric.CPU] = metric.CounterReset
	judge(b, p, metric.CPU, metric.CounterReset)
	judge(b, p, metric.Filesystem, metric.Unsupported)
	write(t, sink, b)
	expect(t, sink.Snapshot(), "a/p on n1 filesystem: Unsupported since 30s")
	b = at("kubelet:summary", "n1", 60*time.Second)
	b.Resolution, b.Interval = time.Second, time.Minute
	judge(b, p, metric.Filesystem, metric.NodeTimeout)
	write(t, sink, b)
	expect(t, sink.Snapshot(),
		"a/p on n1 cpu: CounterReset since 30s",
		"a/p on n1 filesystem: NodeTimeout since 1m0s")
}
