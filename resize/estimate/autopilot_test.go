package estimate_test

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weir-metrics/weir/resize"
	"github.com/weir-metrics/weir/resize/estimate"
)

// boundOf returns the upper bound of the bucket of a value: bounds grow evenly from first in 399 steps.
func boundOf(value, first, growth float64) float64 {
	b := first
	for range 399 {
		if b > value {
			break
		}
		b *= growth
	}
	return b
}

// counted is a value of the aggregated signal: the bound of a bucket that a sample of CPU, or the peak
// of a pod, is in.
type counted struct {
	window int64
	bound  float64
}

// expand returns the aggregated signal, with one element for each count of a histogram.
func expand(samples []estimate.Sample, r resize.Resource) (signal []counted) {
	cpuGrowth, memoryGrowth := math.Exp(math.Log(1e6)/399), math.Exp2(20.0/399) // to 1,000 cores, to 1 TiB
	type podWindow struct {
		pod    string
		window int64
	}
	peaks := map[podWindow]float64{}
	for _, s := range samples {
		window := s.At.Unix() / 300
		switch {
		case s.Resource != r:
		case r == resize.CPU:
			signal = append(signal, counted{window, boundOf(s.Value, 0.001, cpuGrowth)})
		default:
			peaks[podWindow{s.Pod, window}] = max(peaks[podWindow{s.Pod, window}], s.Value)
		}
	}
	for k, peak := range peaks {
		signal = append(signal, counted{k.window, boundOf(peak, 1<<20, memoryGrowth)})
	}
	slices.SortFunc(signal, func(a, b counted) int { return cmp.Or(cmp.Compare(a.window, b.window), cmp.Compare(a.bound, b.bound)) })
	return signal
}

// formulas are those of the paper, over the signal until a window.
type formulas struct {
	signal   []counted // of windows until the last
	last     int64
	halfLife time.Duration
}

func (f *formulas) weight(window int64) float64 {
	return math.Pow(0.5, float64((f.last-window)*300)/f.halfLife.Seconds())
}

// loadPercentile sorts all samples by their value. Each counts its value times its weight.
func (f *formulas) loadPercentile(percent float64) float64 {
	sorted := slices.SortedFunc(slices.Values(f.signal), func(a, b counted) int { return cmp.Compare(a.bound, b.bound) })
	var total, sum float64
	for _, c := range sorted {
		total += c.bound * f.weight(c.window)
	}
	for _, c := range sorted {
		if sum += c.bound * f.weight(c.window); sum >= percent/100*total {
			return c.bound
		}
	}
	return 0
}

// recommended returns the highest recommendation of the last hour before now, or the last one.
func (f formulas) recommended(now time.Time, percent float64) (highest float64) {
	all := f.signal
	for i := len(all); i > 0; i-- {
		if i < len(all) && all[i].window == all[i-1].window {
			continue // not the end of a window
		}
		end := time.Unix((all[i-1].window+1)*300, 0)
		if end.After(now) {
			continue
		}
		if highest > 0 && !end.After(now.Add(-time.Hour)) {
			break
		}
		f.signal, f.last = all[:i], all[i-1].window
		highest = max(highest, f.loadPercentile(percent)*1.15)
	}
	return highest
}

func TestAutopilotIsItsFormulas(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for n := range 100 {
		samples, end := randomHistory(r)
		for _, percent := range []float64{98, 90, 60} {
			o := estimate.AutopilotDefaults()
			o.CPU.LoadPercentile, o.Memory.LoadPercentile = percent, percent
			o.CPU.HalfLife = []time.Duration{o.CPU.HalfLife, time.Hour, 24 * time.Hour}[n%3]
			e := estimate.NewAutopilot(o)
			for i, sample := range samples {
				e.Observe(sample)
				if i == len(samples)/2 {
					e.Recommend(sample.At)
				}
			}
			now := end.Add(time.Duration(r.IntN(90)) * time.Minute)
			got := e.Recommend(now)
			for _, what := range []struct {
				resource resize.Resource
				options  *estimate.AutopilotResource
				unit     float64
			}{{resize.CPU, &o.CPU, 1000}, {resize.Memory, &o.Memory, 1}} {
				f := formulas{signal: expand(samples, what.resource), halfLife: what.options.HalfLife}
				want := f.recommended(now, percent) * what.unit
				// The bounds here are computed in another way, so their last bits differ.
				if amount := got.Get(what.resource); !amount.Set || float64(amount.Value) < want*(1-1e-9) || float64(amount.Value) > want*(1+1e-9)+1 {
					t.Fatalf("history %d, p%v of %s: got %+v, want %v rounded up", n, percent, what.resource, amount, want)
				}
			}
		}
	}
}

// Samples of a window that has ended are ignored: its recommendation has been made.
func TestAutopilotIgnoresLateSamples(t *testing.T) {
	e := estimate.NewAutopilot(estimate.AutopilotDefaults())
	observe := func(after time.Duration, cores float64) {
		e.Observe(estimate.Sample{Pod: "web-1", Resource: resize.CPU, UsagePoint: resize.UsagePoint{At: begin.Add(after), Value: cores}})
	}
	observe(0, 0.1)
	want := e.Recommend(begin.Add(5 * time.Minute))
	observe(time.Minute, 50)
	if got := e.Recommend(begin.Add(20 * time.Minute)); got != want || !got.CPU.Set {
		t.Errorf("after a late sample: got %+v, want %+v", got, want)
	}
}
