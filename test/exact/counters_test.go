package exact

import (
	"testing"
	"time"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/metric/series"
	"github.com/weir-metrics/weir/processors"
	"github.com/weir-metrics/weir/sources/kubelet/payload"
	"github.com/weir-metrics/weir/test/simulator"
)

// counterPoint is a counter and its time.
type counterPoint struct {
	value float64
	at    int64
}

// Every counter leaves the pipeline with the value and the time that the payload has, also a
// pod's own, beside the sum of its containers' rates. So rates of exported counters are the
// payload's.
func TestExportedCountersAreThePayloads(t *testing.T) {
	for _, e := range []simulator.Endpoint{simulator.Resource, simulator.Summary, simulator.CAdvisor} {
		t.Run(e.String(), func(t *testing.T) {
			start := time.Unix(1_800_000_000, 0)
			fleet, err := simulator.New(simulator.Options{Nodes: 1, Pods: 6, Containers: 2, Seed: 1, Start: start})
			if err != nil {
				t.Fatal(err)
			}
			node := fleet.Nodes()[0]
			by, resolution := parserOf(e)
			pipeline := processors.New(processors.Options{})
			b := metric.Batch{Source: e.String(), Node: metric.NodeName(node.Name), Interval: 15 * time.Second, Resolution: resolution}
			checked := 0
			for round := range 8 {
				now := start.Add(time.Duration(round+1) * b.Interval)
				b.Reset()
				b.Began, b.Ended = now, now
				if err := by.Parse(fleet.Append(nil, node, e, now), payload.Request{Node: b.Node, Received: now.UnixNano()}, &b); err != nil {
					t.Fatal(err)
				}
				given := map[metric.Entity]counterPoint{}
				for i := range b.Samples {
					if s := &b.Samples[i]; s.Values.Has(metric.CPUUsage) {
						value, _ := s.Values.Get(metric.CPUUsage)
						given[s.Entity] = counterPoint{value, series.Time(s, metric.CPUUsage)}
					}
				}
				pipeline.Process(nil, &b, now)
				for i := range b.Samples {
					s := &b.Samples[i]
					want, ok := given[s.Entity]
					if !ok || s.Rejected() || s.LastKnown&(1<<metric.CPU) != 0 {
						continue
					}
					value, _ := s.Values.Get(metric.CPUUsage)
					if got := (counterPoint{value, series.Time(s, metric.CPUUsage)}); got != want {
						t.Errorf("round %d: the counter of %v is %.9f s at %v, want %.9f s at %v", round, s.Entity, got.value/1e9, time.Unix(0, got.at).Sub(start), want.value/1e9, time.Unix(0, want.at).Sub(start))
					}
					if s.Entity.Kind == metric.Pod {
						checked++
					}
				}
			}
			if checked < 20 {
				t.Errorf("%d counters of pods were compared, want at least 20", checked)
			}
		})
	}
}
