package rate_test

import (
	"testing"
	"time"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/processors"
	"github.com/weir-metrics/weir/processors/rate"
	"github.com/weir-metrics/weir/test/transcript"
)

func TestTranscripts(t *testing.T) {
	transcript.Run(t, "testdata", func() []transcript.Processor {
		p := processors.New(processors.Options{})
		return []transcript.Processor{p.Identity, p.Rate}
	})
}

// A node may report a rate of its own beside pressure counters. The rate is served as reported,
// and the missing usage counter does not affect other entities.
func TestARateGivenBesideOtherCounters(t *testing.T) {
	s := rate.New(rate.Options{})
	b := &metric.Batch{Node: "n1", Interval: 15 * time.Second, Resolution: time.Millisecond, Cores: 4}
	container := func(name string, now time.Time) *metric.Sample {
		sample := b.Add(metric.Entity{Kind: metric.Container, Node: "n1", Namespace: "shop", Pod: "web", Name: name})
		sample.Times[metric.CPU] = now.UnixNano()
		return sample
	}
	for round := range 8 {
		b.Reset()
		now := transcript.Epoch.Add(time.Duration(round) * b.Interval)
		given := container("given", now)
		given.Values.Set(metric.CPUPressureSome, float64(round)*1e9)
		given.Values.Set(metric.CPUUsageRate, 5e8)
		given.Rates[metric.CPU] = metric.Window{End: now.UnixNano()}
		container("counted", now).Values.Set(metric.CPUUsage, float64(round)*3e9)
		s.Process(nil, b, now)
		for i, want := range []float64{5e8, 2e8} {
			if round == 0 && i == 1 {
				continue // its first sample
			}
			sample := &b.Samples[i]
			if got, _ := sample.Values.Get(metric.CPUUsageRate); got != want || !sample.Servable(metric.CPU) {
				t.Errorf("round %d: %v uses %v nanocores (%v), want %v", round, sample.Entity, got, sample.Reasons[metric.CPU], want)
			}
		}
	}
}
