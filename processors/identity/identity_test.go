package identity_test

import (
	"testing"
	"time"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/processors"
	"github.com/weir-metrics/weir/processors/identity"
	"github.com/weir-metrics/weir/test/transcript"
)

// Every transcript also runs rate: its numbers show what identity chose.
func TestTranscripts(t *testing.T) {
	transcript.Run(t, "testdata", func() []transcript.Processor {
		p := processors.New(processors.Options{})
		return []transcript.Processor{p.Identity, p.Rate}
	})
}

// A faulty kubelet may send one line ten thousand times. The cost is one verdict, and little
// time.
func TestManyDuplicatesAreBounded(t *testing.T) {
	s := identity.New()
	b := &metric.Batch{Node: "n1", Interval: 15 * time.Second, Resolution: time.Millisecond}
	for round := range 2 {
		b.Reset()
		now := transcript.Epoch.Add(time.Duration(round) * b.Interval)
		for i := range 10_000 {
			sample := b.Add(metric.Entity{Kind: metric.Container, Node: "n1", Namespace: "shop", Pod: "web", Name: "app"})
			sample.Values.Set(metric.CPUUsage, float64(i)*1e9+float64(round)*1e9)
			sample.Times[metric.CPU] = now.UnixNano()
		}
		s.Process(nil, b, now)
		served, over := 0, 0
		for i := range b.Samples {
			if !b.Samples[i].Rejected() {
				served++
			}
		}
		for i := range b.Verdicts {
			if b.Verdicts[i].Reason == metric.OverLimit {
				over++
			}
		}
		if served != 1 || over != 1 {
			t.Errorf("round %d: %d samples believed, %d verdicts OverLimit; want 1 and 1", round, served, over)
		}
	}
}
