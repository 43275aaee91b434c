package estimate

import (
	"math"
	"slices"
	"sort"
	"time"

	"github.com/weir-metrics/weir/resize"
)

// AutopilotOptions configures Autopilot. Start with AutopilotDefaults.
type AutopilotOptions struct {
	CPU, Memory AutopilotResource
	// SafetyMargin is the share that is added to the percentile of load.
	SafetyMargin float64
	// Stabilization is the time of which the highest recommendation counts.
	Stabilization time.Duration
}

// AutopilotResource configures Autopilot for one resource.
type AutopilotResource struct {
	// LoadPercentile is the percentile of load that is recommended, the paper's S_pj, where a sample counts as
	// much as it used. If a limit is S_p95, 95% of all CPU time was used at or below it.
	LoadPercentile float64
	// HalfLife is the age at which a sample has half the weight.
	HalfLife time.Duration
}

// AutopilotDefaults returns what the paper uses for a serving job of normal latency sensitivity with a
// low tolerance of OOM kills: 95% of the load for CPU, and 98% for memory, with half-lives of 12 and 48
// hours. The paper adds 10 to 15%, less for large requests (here always 15%).
func AutopilotDefaults() AutopilotOptions {
	return AutopilotOptions{
		CPU:          AutopilotResource{LoadPercentile: 95, HalfLife: 12 * time.Hour},
		Memory:       AutopilotResource{LoadPercentile: 98, HalfLife: 48 * time.Hour},
		SafetyMargin: 0.15, Stabilization: time.Hour,
	}
}

// Autopilot recommends as the moving windows of Google's Autopilot do (Rzadca et al., "Autopilot:
// workload autoscaling at Google", EuroSys 2020, sections 3.2.1 and 3.2.2).
//
// The use is aggregated to a histogram for each window of five minutes: of all samples for CPU, of the
// peak of each pod for memory. A window of age τ has the weight 2^(-τ / half-life). When a window
// ends, a percentile of load over all windows plus the safety margin is recommended, and of the last hour the
// highest recommendation counts.
//
// The paper does not publish the bounds of its "about 400" buckets. Here they are 400 that grow
// evenly, by 3.5%: from a millicore to 1,000 cores, and from 1 MiB to 1 TiB. Windows without samples
// are left out. The moving windows do not use OOM kills. The recommenders that Google prefers learn
// their weights, which the paper does not publish either.
type Autopilot struct {
	options     AutopilotOptions
	cpu, memory movingWindow
}

// NewAutopilot returns an estimator without history.
func NewAutopilot(o AutopilotOptions) *Autopilot {
	a := &Autopilot{options: o}
	a.cpu = movingWindow{options: &a.options.CPU, bounds: cpuBounds}
	a.memory = movingWindow{options: &a.options.Memory, bounds: memoryBounds, podPeaks: map[string]float64{}}
	return a
}

// Observe implements Estimator. It ignores samples of a window that has ended.
func (a *Autopilot) Observe(s Sample) {
	if !s.isPossible() {
		return
	}
	switch s.Resource {
	case resize.CPU:
		if a.cpu.advance(s.At, a.options.SafetyMargin) {
			a.cpu.counts[a.cpu.bucketOf(s.Value)]++
			a.cpu.samples++
		}
	case resize.Memory:
		if a.memory.advance(s.At, a.options.SafetyMargin) {
			a.memory.podPeaks[s.Pod] = max(a.memory.podPeaks[s.Pod], s.Value)
		}
	}
}

// ObserveOOMKill implements Estimator. The moving windows do not use OOM kills.
func (a *Autopilot) ObserveOOMKill(OOMKill) {}

// Recommend implements Estimator.
func (a *Autopilot) Recommend(now time.Time) (requests resize.Amounts) {
	recommend := func(r resize.Resource, w *movingWindow) resize.Amount {
		w.advance(now, a.options.SafetyMargin)
		if len(w.recommended) == 0 {
			return resize.Amount{}
		}
		return roundUp(r, w.highest(now.Add(-a.options.Stabilization)))
	}
	return resize.Amounts{CPU: recommend(resize.CPU, &a.cpu), Memory: recommend(resize.Memory, &a.memory)}
}

// windowLength is the length of a window, and bucketsOfWindow the number of buckets of its histogram.
const (
	windowLength    = 5 * time.Minute
	bucketsOfWindow = 400
)

// cpuBounds and memoryBounds are the upper bounds of the buckets, in cores and bytes.
var (
	cpuBounds    = bucketBounds(0.001, 1000)
	memoryBounds = bucketBounds(1<<20, 1<<40)
)

// bucketBounds returns bounds from first to last, each larger than the one before by the same share.
func bucketBounds(first, last float64) []float64 {
	bounds := make([]float64, bucketsOfWindow)
	for i := range bounds {
		bounds[i] = first * math.Pow(last/first, float64(i)/(bucketsOfWindow-1))
	}
	return bounds
}

// movingWindow aggregates the use of one resource, window by window.
type movingWindow struct {
	options *AutopilotResource
	bounds  []float64 // the paper's b
	// open is the number of the window that has not ended. counts is its histogram, the paper's s, of so
	// many samples. Of memory, podPeaks are counted when the window ends.
	open     int64
	counts   [bucketsOfWindow]float64
	samples  float64
	podPeaks map[string]float64
	// lastEnded is the number of the last window that had samples. decayed is the sum over all windows of
	// w·s at that time.
	lastEnded int64
	decayed   [bucketsOfWindow]float64
	// recommended are the recommendations of the last hour, or the last one if it is older.
	recommended []windowRecommendation
}

type windowRecommendation struct {
	at    time.Time // the end of the window
	value float64
}

// bucketOf returns the first bucket whose bound is above value. Values above all are in the last.
func (w *movingWindow) bucketOf(value float64) int {
	bucket := sort.Search(len(w.bounds), func(i int) bool { return w.bounds[i] > value })
	return min(bucket, len(w.bounds)-1)
}

// advance ends the open window if at is after it. It reports whether at is in the open window.
func (w *movingWindow) advance(at time.Time, margin float64) bool {
	number := at.UnixNano() / int64(windowLength)
	if number > w.open {
		w.end(margin)
		w.open = number
	}
	return number == w.open
}

// end adds the open window to the sums, and a recommendation, if it had samples.
func (w *movingWindow) end(margin float64) {
	for _, peak := range w.podPeaks {
		w.counts[w.bucketOf(peak)]++
		w.samples++
	}
	clear(w.podPeaks)
	if w.samples == 0 {
		return
	}
	age := time.Duration(w.open-w.lastEnded) * windowLength
	decay := math.Exp2(-float64(age) / float64(w.options.HalfLife))
	for bucket, count := range w.counts {
		w.decayed[bucket] = w.decayed[bucket]*decay + count
	}
	w.counts, w.samples, w.lastEnded = [bucketsOfWindow]float64{}, 0, w.open
	w.recommended = append(w.recommended, windowRecommendation{
		at: time.Unix(0, (w.open+1)*int64(windowLength)), value: w.loadPercentile(w.options.LoadPercentile) * (1 + margin),
	})
}

// loadPercentile returns the j-th percentile of load.
func (w *movingWindow) loadPercentile(j float64) float64 {
	var total, sum float64
	for bucket, bound := range w.bounds {
		total += bound * w.decayed[bucket]
	}
	for bucket, bound := range w.bounds {
		if sum += bound * w.decayed[bucket]; sum >= j/100*total {
			return bound
		}
	}
	return w.bounds[len(w.bounds)-1] // by a rounding error
}

// highest returns the highest recommendation after start, or the last one if none is after it.
func (w *movingWindow) highest(start time.Time) float64 {
	last := w.recommended[len(w.recommended)-1]
	w.recommended = slices.DeleteFunc(w.recommended, func(r windowRecommendation) bool {
		return r != last && !r.at.After(start)
	})
	value := 0.0
	for _, r := range w.recommended {
		value = max(value, r.value)
	}
	return value
}
