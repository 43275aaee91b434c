package memory

import (
	"slices"
	"testing"
	"time"

	"github.com/weir-metrics/weir/cluster/resourceusage"
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
	value(t, s, metric.MemoryWorkingSet, 10) // of the same source, for the other may report another instance
}

func TestFreshGoesBeforeLastKnown(t *testing.T) {
	sink, p := resourceAndSummary(t, Options{}, func(resource, _ *metric.Sample) { resource.LastKnown = 1 << metric.CPU })
	s, _ := sink.Snapshot().Lookup(p)
	value(t, s, metric.CPUUsageRate, 1)
	value(t, s, metric.MemoryWorkingSet, 10)
}

// CPU and memory come from two sources only if these are known to report one instance.
func TestCPUAndMemoryOfTwoSources(t *testing.T) {
	began := epoch.Add(-time.Hour).UnixNano()
	for name, c := range map[string]struct {
		resource, summary metric.Instance
		together          bool
	}{
		"nothing is known":      {},
		"one start is known":    {summary: metric.Instance{Start: began, Origin: metric.StartReported}},
		"starts are equal":      {metric.Instance{Start: began + 1e9, Origin: metric.StartReported}, metric.Instance{Start: began, Origin: metric.StartReported}, true},
		"of a cgroup":           {metric.Instance{Start: began, Origin: metric.StartCgroup}, metric.Instance{Start: began, Origin: metric.StartReported}, false},
		"the ID is equal":       {metric.Instance{ID: "c"}, metric.Instance{ID: "c"}, true},
		"the inode is equal":    {metric.Instance{Path: "/c", Inode: 7}, metric.Instance{Path: "/c", Inode: 7}, true},
		"only the UID is equal": {metric.Instance{UID: "u"}, metric.Instance{UID: "u"}, false},
	} {
		sink, p := resourceAndSummary(t, Options{}, func(resource, summary *metric.Sample) {
			resource.Instance, summary.Instance = c.resource, c.summary
			resource.Reasons[metric.CPU], summary.Reasons[metric.Memory] = metric.FirstSample, metric.NoData
		})
		s, _ := sink.Snapshot().Lookup(p)
		_, cpu := s.Values.Get(metric.CPUUsageRate)
		if cpu != c.together {
			t.Errorf("%s: CPU beside the memory of another source: got %v, want %v", name, cpu, c.together)
		}
		value(t, s, metric.MemoryWorkingSet, 20)
	}
}

// When one source begins another line of a container, or rejects its lines, the earlier numbers of
// another source are those of the instance before.
func TestNumbersFromBeforeAnotherLine(t *testing.T) {
	app := on("n1", containerOf(pod("a", "p"), "app"))
	for name, c := range map[string]struct {
		before func(summary *metric.Sample)                    // the other source's container, at 10 s
		change func(b *metric.Batch, container *metric.Sample) // the container at 15 s, which has line 2
		served bool
	}{
		"another line": {},
		"the same line": {
			change: func(_ *metric.Batch, c *metric.Sample) { c.Instance.Line = 1 }, served: true,
		},
		"the same start": {
			before: func(s *metric.Sample) { s.Instance.Start = epoch.UnixNano() },
			change: func(_ *metric.Batch, c *metric.Sample) { c.Instance.Start = epoch.UnixNano() + 1e9 }, served: true,
		},
		"an earlier start": {
			before: func(s *metric.Sample) { s.Instance.Start = epoch.UnixNano() },
			change: func(_ *metric.Batch, c *metric.Sample) { c.Instance.Start = epoch.Add(12 * time.Second).UnixNano() },
		},
		"two starts of one cgroup": {
			before: func(s *metric.Sample) { s.Instance.Start = epoch.UnixNano() - 9e9 },
			change: func(_ *metric.Batch, c *metric.Sample) { c.Instance.Start = epoch.UnixNano() }, served: true,
		},
		"nothing distinguishes the lines": {
			change: func(b *metric.Batch, c *metric.Sample) { judge(b, c.Entity, metric.CPU, metric.Ambiguous) }, served: true,
		},
		"both lines were rejected": {
			change: func(b *metric.Batch, c *metric.Sample) {
				c.Reject(metric.OldPod)
				judge(b, c.Entity, metric.CPU, metric.OldPod)
			},
		},
		"the number is newer": {
			before: func(s *metric.Sample) {
				s.Times[metric.CPU], s.Times[metric.Memory] = epoch.Add(16*time.Second).UnixNano(), epoch.Add(16*time.Second).UnixNano()
			}, served: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			sink := New(Options{})
			b := at("kubelet:resource", "n1", 0)
			use(b, on("n1", pod("a", "p")), 1, 10)
			use(b, app, 1, 10).Instance.Line = 1
			write(t, sink, b)
			b = at("kubelet:summary", "n1", 10*time.Second)
			use(b, on("n1", pod("a", "p")), 2, 20)
			summary := use(b, app, 2, 20)
			if c.before != nil {
				c.before(summary)
			}
			write(t, sink, b)
			b = at("kubelet:resource", "n1", 15*time.Second)
			use(b, on("n1", pod("a", "p")), 0, 30).Reasons[metric.CPU] = metric.Incomplete
			use(b, app, 0, 30)
			container := &b.Samples[1]
			container.Reasons[metric.CPU], container.Instance.Line = metric.FirstSample, 2
			if c.change != nil {
				c.change(b, container)
			}
			write(t, sink, b)

			var u resourceusage.PodUsage
			snap := sink.Snapshot()
			if got := snap.PodUsage(pod("a", "p").PodRef(), &u); got != c.served || got && (u.Containers[0].CPU != 2 || u.Containers[0].Memory != 20) {
				t.Errorf("pod: got %v, %+v; want %v", got, u.Containers, c.served)
			}
			s, ok := snap.Lookup(app)
			if cpu := ok && s.Values.Has(metric.CPUUsageRate); cpu != c.served {
				t.Errorf("the container's CPU: got %v, want %v", cpu, c.served)
			}
		})
	}
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

// The old pod's cgroup stays, and was read after the new pod began. The summary has both since.
func TestRejectedRunIsIgnored(t *testing.T) {
	sink := New(Options{})
	p := on("n1", pod("a", "p"))
	run := func(s *metric.Instance, start time.Duration) {
		s.Start, s.Origin = epoch.Add(start).UnixNano(), metric.StartReported
	}
	b := at("kubelet:resource", "n1", 15*time.Second)
	use(b, p, 2, 20)
	run(&use(b, containerOf(p, "app"), 2, 20).Instance, -time.Hour)
	write(t, sink, b)
	b = at("kubelet:summary", "n1", 20*time.Second)
	b.Resolution, b.Interval = time.Second, time.Minute
	use(b, p, 0, 50).Reasons[metric.CPU] = metric.Incomplete
	s := use(b, containerOf(p, "app"), 0, 50)
	s.Reasons[metric.CPU] = metric.TooYoung
	run(&s.Instance, 14*time.Second)
	judge(b, s.Entity, metric.CPU, metric.OlderStart)
	run(&b.Verdicts[0].Instance, -time.Hour)
	write(t, sink, b)
	s, _ = sink.Snapshot().Lookup(s.Entity)
	value(t, s, metric.MemoryWorkingSet, 50)
	if v, ok := s.Values.Get(metric.CPUUsageRate); ok {
		t.Errorf("CPU: got %v of the old container, want nothing", v)
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
