package estimate

import (
	"time"

	"github.com/weir-metrics/weir/resize"
)

// VPAOptions configures VPA. Each field has the flag of VPA's recommender, or the field of a
// VerticalPodAutoscaler, that sets the same. Start with VPADefaults.
type VPAOptions struct {
	CPU, Memory VPAResource
	// SafetyMargin is the share that is added to what was used: --recommendation-margin-fraction.
	SafetyMargin float64
	// PeakInterval is the time for which each pod adds one sample of memory, its peak:
	// --memory-aggregation-interval or memoryAggregationIntervalSeconds.
	PeakInterval time.Duration
	// OOMRatio and OOMLeast are how much more memory an OOM kill asks for, the larger of the two:
	// --oom-bump-up-ratio or oomBumpUpRatio, and --oom-min-bump-up-bytes or oomMinBumpUp.
	OOMRatio float64
	OOMLeast int64
}

// VPAResource configures VPA for one resource.
type VPAResource struct {
	// Target is the share of the samples that the recommendation covers: --target-cpu-percentile,
	// --target-memory-percentile.
	Target float64
	// HalfLife is the age at which a sample has half the weight: --cpu-histogram-decay-half-life,
	// --memory-histogram-decay-half-life.
	HalfLife time.Duration
}

// VPADefaults returns the defaults of VPA's recommender 1.8.1.
func VPADefaults() VPAOptions {
	resource := VPAResource{Target: 0.9, HalfLife: 24 * time.Hour}
	return VPAOptions{
		CPU: resource, Memory: resource, SafetyMargin: 0.15, PeakInterval: 24 * time.Hour,
		OOMRatio: 1.2, OOMLeast: 100 << 20,
	}
}

// VPA recommends as the recommender of the Vertical Pod Autoscaler does
// (k8s.io/autoscaler/vertical-pod-autoscaler v1.8.1, pkg/recommender/model and pkg/recommender/logic).
//
// Each sample of CPU goes into a histogram. Of memory, only each pod's peak in each PeakInterval does.
// An OOM kill counts as a peak above the larger of the memory request and the peak so far. A
// recommendation is a percentile of the histogram plus the safety margin.
//
// Four things that VPA's process does around this are left to the caller. It has a floor for each pod,
// and bounds of the recommendation outside of which it evicts a pod. It starts again when a
// workload had no sample for eight days. It restores the histograms from checkpoints, rounded. And it
// has a histogram for each set of pod labels and adds them up in a random order, where this has one
// histogram: sums may differ in their last bit.
type VPA struct {
	options     VPAOptions
	cpu, memory decayingHistogram
	pods        map[string]*vpaPod
}

// vpaPod is what VPA keeps of one pod.
type vpaPod struct {
	lastCPU, lastMemory time.Time
	// peak is the highest sample of memory in the current interval, oomPeak what an OOM kill asked for.
	peak, oomPeak int64
	intervalEnd   time.Time
}

// NewVPA returns an estimator without history.
func NewVPA(o VPAOptions) *VPA {
	return &VPA{
		options: o, pods: map[string]*vpaPod{},
		cpu:    decayingHistogram{firstBucket: 0.01, halfLife: o.CPU.HalfLife},
		memory: decayingHistogram{firstBucket: 1e7, halfLife: o.Memory.HalfLife},
	}
}

// Observe implements Estimator. VPA ignores samples of a pod that come out of order.
func (v *VPA) Observe(s Sample) {
	switch {
	case !s.isPossible():
	case s.Resource == resize.CPU:
		v.observeCPU(v.pod(s.Pod), s.At, resize.WholeUnits(s.Resource, s.Value))
	case s.Resource == resize.Memory:
		if p := v.pod(s.Pod); !s.At.Before(p.lastMemory) {
			v.observeMemory(p, s.At, resize.WholeUnits(s.Resource, s.Value), &p.peak)
		}
	}
}

func (v *VPA) pod(name string) *vpaPod {
	p := v.pods[name]
	if p == nil {
		p = &vpaPod{}
		v.pods[name] = p
	}
	return p
}

// cpuSampleWeight is the weight of a sample of CPU that was taken at the reference time.
const cpuSampleWeight = 0.1

func (v *VPA) observeCPU(p *vpaPod, at time.Time, millicores int64) {
	if !at.After(p.lastCPU) {
		return
	}
	v.cpu.add(float64(millicores)/1000, cpuSampleWeight, at)
	p.lastCPU = at
}

// observeMemory adds memory that the pod needed. kind is the peak that it may replace, of samples or
// of OOM kills. In the histogram, a peak has the time of the end of its interval.
func (v *VPA) observeMemory(p *vpaPod, at time.Time, bytes int64, kind *int64) {
	p.lastMemory = at
	if p.intervalEnd.IsZero() {
		p.intervalEnd = at
	}
	if at.Before(p.intervalEnd) {
		old := max(p.peak, p.oomPeak)
		if old == 0 || bytes <= old { // VPA also keeps a first peak of zero for the whole interval
			return
		}
		v.memory.subtract(float64(old), 1, p.intervalEnd)
	} else {
		intervals := at.Sub(p.intervalEnd).Truncate(v.options.PeakInterval) + v.options.PeakInterval
		p.intervalEnd = p.intervalEnd.Add(intervals)
		p.peak, p.oomPeak = 0, 0
	}
	v.memory.add(float64(bytes), 1, p.intervalEnd)
	*kind = bytes
}

// ObserveOOMKill implements Estimator. VPA ignores an OOM kill that is older than the pod's last sample
// of memory by more than a PeakInterval.
func (v *VPA) ObserveOOMKill(k OOMKill) {
	p := v.pod(k.Pod)
	if !p.lastMemory.IsZero() && k.At.Before(p.lastMemory.Add(-v.options.PeakInterval)) {
		return
	}
	used := max(k.Request, p.peak) // without oomPeak, so that repeated kills do not add up
	v.observeMemory(p, k.At, max(used+v.options.OOMLeast, scale(used, v.options.OOMRatio)), &p.oomPeak)
}

// Recommend implements Estimator with the target of VPA.
func (v *VPA) Recommend(time.Time) resize.Amounts {
	request := func(h *decayingHistogram, unit float64, o *VPAResource) resize.Amount {
		if h.reference.IsZero() {
			return resize.Amount{}
		}
		amount := truncate(h.percentile(o.Target) * unit)
		return resize.Of(amount + scale(amount, v.options.SafetyMargin))
	}
	return resize.Amounts{CPU: request(&v.cpu, 1000, &v.options.CPU), Memory: request(&v.memory, 1, &v.options.Memory)}
}

// scale returns an amount multiplied by a factor.
func scale(amount int64, factor float64) int64 { return truncate(float64(amount) * factor) }

// truncate returns the whole part of an amount, from zero to VPA's largest amount. It returns zero for
// NaN, which nothing times infinity is.
func truncate(amount float64) int64 {
	const most = 1e14
	switch {
	case amount > most:
		return most
	case amount > 0:
		return int64(amount)
	}
	return 0
}
