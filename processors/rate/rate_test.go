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

// Where times are cut to the second, the shortest window is an option.
func TestCoarseWindow(t *testing.T) {
	for window, want := range map[time.Duration]int{0: 2, 15 * time.Second: 1, time.Minute: 4} { // the first round with a rate
		s := rate.New(rate.Options{CoarseWindow: window})
		b := &metric.Batch{Node: "n1", Interval: 15 * time.Second, Resolution: time.Second, Cores: 4}
		for round := range 6 {
			b.Reset()
			now := transcript.Epoch.Add(time.Duration(round) * b.Interval)
			sample := b.Add(metric.Entity{Kind: metric.Container, Node: "n1", Namespace: "shop", Pod: "web", Name: "app"})
			sample.Times[metric.CPU] = now.UnixNano()
			sample.Values.Set(metric.CPUUsage, float64(round)*3e9)
			s.Process(nil, b, now)
			if got := sample.Servable(metric.CPU); got != (round >= want) {
				t.Errorf("window %v, round %d: served %v", window, round, got)
			}
			if w := sample.Rates[metric.CPU]; round >= want && w.Length < window {
				t.Errorf("window %v, round %d: measured over %v", window, round, w.Length)
			}
		}
	}
}
