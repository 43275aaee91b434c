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

// formulas are the statistics of the paper, over the signal until a window.
type formulas struct {
	signal   []counted // of windows until the last
	last     int64
	halfLife time.Duration
	windows  int // of the peak
}

func (f *formulas) weight(window int64) float64 {
	return math.Pow(0.5, float64((f.last-window)*300)/f.halfLife.Seconds())
}

func (f *formulas) peak() (highest float64) {
	for _, c := range f.signal {
		if c.window > f.last-int64(f.windows) {
			highest = max(highest, c.bound)
		}
	}
	return highest
}

func (f *formulas) average() float64 {
	var sum, weights float64
	for i := 0; i < len(f.signal); {
		window, total, n := f.signal[i].window, 0.0, 0
		for ; i < len(f.signal) && f.signal[i].window == window; i++ {
			total += f.signal[i].bound
			n++
		}
		sum += f.weight(window) * total / float64(n)
		weights += f.weight(window)
	}
	return sum / weights
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
func (f formulas) recommended(now time.Time, statistic func(*formulas) float64) (highest float64) {
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
		highest = max(highest, statistic(&f)*1.15)
	}
	return highest
}

func TestAutopilotIsItsFormulas(t *testing.T) {
	statistics := []struct {
		name string
		got  estimate.Statistic
		want func(*formulas) float64
	}{
		{"peak", estimate.Peak, (*formulas).peak},
		{"average", estimate.Average, (*formulas).average},
		{"p98", estimate.LoadPercentile(98), func(f *formulas) float64 { return f.loadPercentile(98) }},
		{"p90", estimate.LoadPercentile(90), func(f *formulas) float64 { return f.loadPercentile(90) }},
		{"partial peak", estimate.PartialPeak, func(f *formulas) float64 { return max(f.loadPercentile(60), f.peak()/2) }},
	}
	r := rand.New(rand.NewPCG(5, 6))
	for n := range 100 {
		samples, end := randomHistory(r)
		for _, s := range statistics {
			o := estimate.AutopilotDefaults()
			o.CPU.Statistic, o.Memory.Statistic = s.got, s.got
			o.CPU.HalfLife = []time.Duration{o.CPU.HalfLife, time.Hour, 24 * time.Hour}[n%3]
			o.CPU.PeakWindows = []int{o.CPU.PeakWindows, 12, 1}[n%3]
			o.CPU.Floor, o.Memory.Floor = 1, 1
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
				f := formulas{signal: expand(samples, what.resource), halfLife: what.options.HalfLife, windows: what.options.PeakWindows}
				want := f.recommended(now, s.want) * what.unit
				// The bounds here are computed in another way, so their last bits differ.
				if amount := got.Get(what.resource); !amount.Set || float64(amount.Value) < want*(1-1e-9) || float64(amount.Value) > want*(1+1e-9)+1 {
					t.Fatalf("history %d, %s of %s: got %+v, want %v rounded up", n, s.name, what.resource, amount, want)
				}
			}
		}
	}
}

// Samples of a window that has ended are ignored: its recommendation has been made.
func TestAutopilotIgnoresLateSamples(t *testing.T) {
	o := estimate.AutopilotDefaults()
	o.CPU.Statistic = estimate.Peak
	e := estimate.NewAutopilot(o)
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
