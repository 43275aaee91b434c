package aggregate_test

import (
	"testing"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/processors/aggregate"
	"github.com/weir-metrics/weir/test/samplenodes"
)

// rated fills b with the reading of round r, as rate leaves it.
func rated(n samplenodes.Node, b *metric.Batch, r int) time.Time {
	now := n.Round(b, r)
	for i := range b.Samples {
		s := &b.Samples[i]
		s.Values.Set(metric.CPUUsageRate, 1e8)
		s.Reasons[metric.CPU], s.Reasons[metric.Memory] = metric.Measured, metric.Measured
		s.Rates[metric.CPU] = metric.Window{End: now.UnixNano(), Length: samplenodes.Interval}
	}
	return now
}

func TestUnchangedNodeAllocatesNothing(t *testing.T) {
	n := samplenodes.Node{Pods: 30, Containers: 2}
	whole := n.Batch()
	containers := &metric.Batch{Node: samplenodes.Name}
	for i := range whole.Samples {
		if s := &whole.Samples[i]; s.Entity.Kind == metric.Container {
			containers.Add(s.Entity).Instance = s.Instance
		}
	}
	reported := len(containers.Samples)
	for _, test := range []struct {
		name  string
		facts *cluster.Facts
		batch *metric.Batch
		keep  int // how many samples the source reports
	}{
		{"with facts", n.Facts(), whole, len(whole.Samples)},
		{"without facts", nil, whole, len(whole.Samples)},
		{"containers only", n.Facts(), containers, reported},
		{"containers only, without facts", nil, containers, reported},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := aggregate.New()
			round := 0
			read := func() {
				test.batch.Samples = test.batch.Samples[:test.keep]
				a.Process(test.facts, test.batch, rated(n, test.batch, round))
				round++
			}
			read()
			if got := testing.AllocsPerRun(100, read); got != 0 {
				t.Errorf("%v allocations a round, want 0", got)
			}
			pods := 0
			for i := range test.batch.Samples {
				s := &test.batch.Samples[i]
				if s.Entity.Kind != metric.Pod {
					continue
				}
				pods++
				if v, ok := s.Values.Get(metric.CPUUsageRate); !ok || v != 2e8 || !s.Servable(metric.CPU) {
					t.Errorf("%v uses %v nanocores (%v), want 2e8", s.Entity, v, s.Reasons[metric.CPU])
				}
			}
			if pods != n.Pods || len(test.batch.Verdicts) != 0 {
				t.Errorf("%d pods, %d verdicts, want %d, 0", pods, len(test.batch.Verdicts), n.Pods)
			}
		})
	}
}

// A node that cannot be read must not cost more than one that can.
func TestUnreadNodeAllocatesNothing(t *testing.T) {
	n := samplenodes.Node{Pods: 30, Containers: 2}
	facts, b := n.Facts(), n.Batch()
	a := aggregate.New()
	b.Err = &metric.ReadError{Reason: metric.NodeTimeout}
	read := func() {
		b.Samples, b.Verdicts = b.Samples[:0], b.Verdicts[:0]
		a.Process(facts, b, samplenodes.Epoch)
	}
	read()
	// errors.As makes one allocation.
	if got := testing.AllocsPerRun(100, read); got > 1 {
		t.Errorf("%v allocations a round, want at most 1", got)
	}
	if want := 2 * (1 + 30 + 60); len(b.Verdicts) != want {
		t.Errorf("%d verdicts, want %d", len(b.Verdicts), want)
	}
}

func BenchmarkProcess(b *testing.B) {
	for _, n := range samplenodes.Nodes {
		b.Run(n.String(), func(b *testing.B) {
			facts, batch := n.Facts(), n.Batch()
			a := aggregate.New()
			now := rated(n, batch, 0)
			b.ReportAllocs()
			for b.Loop() {
				a.Process(facts, batch, now)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n.Pods), "ns/pod")
		})
	}
}
