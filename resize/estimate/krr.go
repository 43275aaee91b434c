package estimate

import (
	"math"
	"slices"
	"time"

	"github.com/weir-metrics/weir/resize"
)

// KRROptions configures KRR. Each field has the flag of `krr simple` that sets the same. Start with
// KRRDefaults.
type KRROptions struct {
	// CPUPercentile is the share of samples, in percent, that the CPU request covers: --cpu_percentile.
	CPUPercentile float64
	// MemoryBuffer is the share that is added to the highest use of memory: --memory_buffer_percentage.
	MemoryBuffer float64
	// History is the time that the recommendation looks back: --history_duration.
	History time.Duration
	// MinSamples is the number of samples, of all pods, that a recommendation needs: --points_required.
	MinSamples int
}

// KRRDefaults returns the defaults of KRR.
func KRRDefaults() KRROptions {
	return KRROptions{CPUPercentile: 95, MemoryBuffer: 0.15, History: 14 * 24 * time.Hour, MinSamples: 100}
}

// KRR recommends as the simple strategy of Robusta's Kubernetes Resource Recommender does
// (github.com/robusta-dev/krr at d6baa7453eff: robusta_krr/strategies/simple.py, the PromQL in
// core/integrations/prometheus/metrics, and the rounding in core/runner.py):
//
//	CPU    = max over pods of quantile_over_time(percentile, use of the pod)
//	memory = highest use × (1 + buffer)
//
// KRR reads its samples from a Prometheus in steps of 75 seconds: the mean of a step for CPU, and its
// last value for memory. It rounds CPU up to a millicore and memory up to a MiB. Its floors, and its
// option to use OOM kills, are left out.
type KRR struct {
	options KRROptions
	pods    map[string]*krrPod
}

// krrPod has the samples of one pod.
type krrPod struct{ cpu, memory []resize.UsagePoint }

// NewKRR returns an estimator without history.
func NewKRR(o KRROptions) *KRR { return &KRR{options: o, pods: map[string]*krrPod{}} }

// Observe implements Estimator.
func (k *KRR) Observe(s Sample) {
	if !s.isPossible() {
		return
	}
	p := k.pods[s.Pod]
	if p == nil {
		p = &krrPod{}
		k.pods[s.Pod] = p
	}
	switch s.Resource {
	case resize.CPU:
		p.cpu = append(p.cpu, s.UsagePoint)
	case resize.Memory:
		p.memory = append(p.memory, s.UsagePoint)
	}
}

// ObserveOOMKill implements Estimator. KRR does not use OOM kills by default.
func (k *KRR) ObserveOOMKill(OOMKill) {}

// Recommend implements Estimator. It forgets what is older than the history.
func (k *KRR) Recommend(now time.Time) (requests resize.Amounts) {
	k.forget(now.Add(-k.options.History))
	var cpuSamples, memorySamples int
	var cpu, memory float64
	for _, p := range k.pods {
		cpuSamples += len(p.cpu)
		memorySamples += len(p.memory)
		if len(p.cpu) > 0 {
			cpu = max(cpu, quantile(p.cpu, k.options.CPUPercentile/100))
		}
		for _, point := range p.memory {
			memory = max(memory, point.Value*(1+k.options.MemoryBuffer))
		}
	}
	if cpuSamples >= max(1, k.options.MinSamples) {
		requests.CPU = roundUp(resize.CPU, cpu)
	}
	if memorySamples >= max(1, k.options.MinSamples) {
		const mebibyte = 1 << 20
		requests.Memory = roundUp(resize.Memory, ceil(memory/mebibyte)*mebibyte)
	}
	return requests
}

// forget removes what is not after start.
func (k *KRR) forget(start time.Time) {
	old := func(point resize.UsagePoint) bool { return !point.At.After(start) }
	for name, p := range k.pods {
		p.cpu, p.memory = slices.DeleteFunc(p.cpu, old), slices.DeleteFunc(p.memory, old)
		if len(p.cpu)+len(p.memory) == 0 {
			delete(k.pods, name)
		}
	}
}

// quantile returns what PromQL's quantile_over_time returns: between two values it interpolates.
// Points must not be empty.
func quantile(points []resize.UsagePoint, share float64) float64 {
	values := make([]float64, len(points))
	for i := range points {
		values[i] = points[i].Value
	}
	slices.Sort(values)
	below, fraction := math.Modf(share * float64(len(values)-1))
	i := int(below)
	return values[i]*(1-fraction) + values[min(i+1, len(values)-1)]*fraction
}
