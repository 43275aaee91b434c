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

// A faulty kubelet may send ten thousand lines of one container. The cost is one verdict if they differ,
// none if they are equal, and little time.
func TestManyDuplicatesAreBounded(t *testing.T) {
	f := func(name string, first, step float64, verdicts int) {
		t.Helper()
		s := identity.New()
		b := &metric.Batch{Node: "n1", Interval: 15 * time.Second, Resolution: time.Millisecond}
		for round := range 2 {
			b.Reset()
			now := transcript.Epoch.Add(time.Duration(round) * b.Interval)
			for i := range 10_000 {
				sample := b.Add(metric.Entity{Kind: metric.Container, Node: "n1", Namespace: "shop", Pod: "web", Name: "app"})
				sample.Values.Set(metric.CPUUsage, first+float64(i)*step+float64(round)*1e9)
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
			if served != 1 || over != verdicts || verdicts == 0 && len(b.Verdicts) > 0 {
				t.Errorf("%s, round %d: %d samples believed, %d verdicts, %d of them OverLimit; want 1 and %d OverLimit", name, round, served, len(b.Verdicts), over, verdicts)
			}
		}
	}
	f("lines that differ", 0, 1e9, 1)
	f("equal lines", 1e9, 0, 0)
}
