package estimate

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/weir-metrics/weir/resize"
)

// AdaptiveOptions configures Adaptive. Start with AdaptiveDefaults.
type AdaptiveOptions struct {
	// CPUPercentile is the share of samples, in percent, that the CPU request covers, CPUHalfLife the age
	// at which a sample has half the weight, and CPUMargin the share that is added.
	CPUPercentile float64
	CPUHalfLife   time.Duration
	CPUMargin     float64
	// PeakInterval is the time that has one peak of memory, and Peaks the number of intervals that count.
	PeakInterval time.Duration
	Peaks        int
	// The highest peak of memory gets a margin: SpreadFactor times the standard deviation of the peaks,
	// but at least and at most these shares of the highest.
	LeastMargin, MostMargin, SpreadFactor float64
	// OOMRatio is the peak that an OOM kill counts as, as a multiple of the limit or, without one, of the
	// request.
	OOMRatio float64
	// CPUHold and MemoryHold are the least shares by which a recommendation falls.
	CPUHold, MemoryHold float64
}

// AdaptiveDefaults returns the values that docs/resize-evaluation.md evaluates. They were chosen on the
// first third of each trace there, which the page does not score: among those with no more slack than
// VPA and about its overrun and OOM kills, they have few changes.
func AdaptiveDefaults() AdaptiveOptions {
	return AdaptiveOptions{
		CPUPercentile: 90, CPUHalfLife: 24 * time.Hour, CPUMargin: 0.15,
		PeakInterval: 15 * time.Minute, Peaks: 7 * 24 * 4, LeastMargin: 0.15, MostMargin: 0.5, SpreadFactor: 2.5,
		OOMRatio: 1.25, CPUHold: 0.15, MemoryHold: 0.1,
	}
}

// Adaptive is an estimator of weir's own:
//
//	CPU    = percentile of the samples, which old ones count less for, plus a margin
//	memory = highest peak + a margin that grows with the standard deviation of the peaks
//
// So restless memory has more room than steady memory. A recommendation grows at once, and falls only
// by a least share, so that requests change seldom. Percentiles of CPU are those of a histogram that
// reaches to 500 cores.
type Adaptive struct {
	options AdaptiveOptions
	cpu     decayingHistogram
	// peaks are those of the last intervals, of all pods together. lastInterval is the number of the last
	// interval with a sample.
	peaks        []float64
	lastInterval int64
	last         resize.Amounts // recommendation
}

// NewAdaptive returns an estimator without history.
func NewAdaptive(o AdaptiveOptions) *Adaptive {
	return &Adaptive{options: o, cpu: decayingHistogram{firstBucket: 0.005, halfLife: o.CPUHalfLife}}
}

// Observe implements Estimator.
func (a *Adaptive) Observe(s Sample) {
	switch {
	case !s.isPossible():
	case s.Resource == resize.CPU:
		a.cpu.add(s.Value, 1, s.At)
	case s.Resource == resize.Memory:
		a.addPeak(s.At, s.Value)
	}
}

// ObserveOOMKill implements Estimator.
func (a *Adaptive) ObserveOOMKill(k OOMKill) {
	used := cmp.Or(k.Limit, k.Request)
	a.addPeak(k.At, float64(used)*a.options.OOMRatio)
}

func (a *Adaptive) addPeak(at time.Time, value float64) {
	number := at.UnixNano() / int64(a.options.PeakInterval)
	if number > a.lastInterval || len(a.peaks) == 0 {
		a.peaks = append(a.peaks, 0)
		a.peaks = a.peaks[max(0, len(a.peaks)-a.options.Peaks):]
		a.lastInterval = number
	}
	newest := &a.peaks[len(a.peaks)-1]
	*newest = max(*newest, value)
}

// Recommend implements Estimator.
func (a *Adaptive) Recommend(time.Time) resize.Amounts {
	o := &a.options
	if a.cpu.total > 0 {
		used := a.cpu.percentile(o.CPUPercentile / 100)
		a.last.CPU = hold(a.last.CPU, roundUp(resize.CPU, used*(1+o.CPUMargin)), o.CPUHold)
	}
	if len(a.peaks) > 0 {
		peak := slices.Max(a.peaks)
		margin := min(max(o.SpreadFactor*deviation(a.peaks), o.LeastMargin*peak), o.MostMargin*peak)
		a.last.Memory = hold(a.last.Memory, roundUp(resize.Memory, peak+margin), o.MemoryHold)
	}
	return a.last
}

// hold returns the last recommendation unless next is larger, or smaller by a share.
func hold(last, next resize.Amount, share float64) resize.Amount {
	if last.Set && next.Value < last.Value && float64(next.Value) > float64(last.Value)*(1-share) {
		return last
	}
	return next
}

// deviation returns the standard deviation. Values must not be empty.
func deviation(values []float64) float64 {
	var mean, squares float64
	for _, v := range values {
		mean += v / float64(len(values))
	}
	for _, v := range values {
		squares += (v - mean) * (v - mean) / float64(len(values))
	}
	return math.Sqrt(squares)
}
