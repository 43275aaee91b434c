package autoscaler

import (
	"cmp"
	"errors"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/weir-metrics/weir/cluster"
)

// podMetric computes a metric with a sample for each pod: Resource, ContainerResource or Pods.
//
// The pods with counted samples give a first ratio. Then pods without a sample get an assumed usage
// that damps the change, and the ratio is computed again. When scaling up, unready pods get one,
// too. If the second ratio has the opposite direction, the count stays.
type podMetric struct {
	*calculation
	resource  corev1.ResourceName // empty for a Pods metric
	container string              // empty for whole pods

	total       int64 // usage of the samples that count
	requests    int64 // of the counted pods, if the target is a percentage
	counted     int
	notInTarget int
	unready     int
	missing     int
}

var errNoSamples = errors.New("no pod of the target has a number that counts")

func (pm *podMetric) compute(m *MetricDecision) error {
	r, err := pm.readMetric(m)
	if err != nil {
		// The report also shows which pods the metric is for if it cannot be read.
		_ = pm.classify(m, nil)
		return err
	}
	if err := pm.checkPods(); err != nil {
		return err
	}
	requestErr := pm.classify(m, r.Samples)
	m.Count = pm.counted
	if pm.counted+pm.notInTarget == 0 {
		return errNoSamples
	}
	if requestErr != nil {
		return requestErr
	}
	if m.Ratio, m.Usage, m.Utilization, err = pm.ratio(m, pm.counted); err != nil {
		return err
	}

	current := pm.in.Scale.SpecReplicas
	withUnready := pm.unready > 0 && m.Ratio > 1
	if !withUnready && pm.missing == 0 {
		if pm.withinTolerance(m.Ratio) {
			m.Proposal, m.Outcome = current, WithinTolerance
			return nil
		}
		m.Proposal, m.Outcome = toInt32(math.Ceil(m.Ratio*float64(pm.counted))), Scaled
		return nil
	}

	return pm.recount(m, withUnready)
}

// recount computes the ratio again with an assumed usage for the pods without a sample. With
// withUnready the unready pods get one, too.
func (pm *podMetric) recount(m *MetricDecision, withUnready bool) (err error) {
	current := pm.in.Scale.SpecReplicas
	m.Recounted = true
	assumed := pm.assumeUsage(m, withUnready)
	m.RecountedPods = pm.counted + pm.notInTarget + assumed
	if m.RecountedRatio, _, _, err = pm.ratio(m, pm.counted+assumed); err != nil {
		return err
	}
	if pm.withinTolerance(m.RecountedRatio) {
		m.Proposal, m.Outcome = current, WithinTolerance
		return nil
	}
	proposal := toInt32(math.Ceil(m.RecountedRatio * float64(m.RecountedPods)))
	if oppositeDirections(m.Ratio, m.RecountedRatio) || m.RecountedRatio < 1 && proposal > current || m.RecountedRatio > 1 && proposal < current {
		m.Proposal, m.Outcome = current, WouldReverse
		return nil
	}
	m.Proposal, m.Outcome = proposal, Scaled
	return nil
}

// oppositeDirections reports whether two ratios require changes in opposite directions.
func oppositeDirections(a, b float64) bool { return a < 1 && b > 1 || a > 1 && b < 1 }

// ratio returns usage divided by target, the average usage and, for a percentage, the utilization.
// The utilization is the percentage of the sum of all requests, rounded down before it is divided
// by the target. Samples of pods that are not in the target have no request; they are part of an
// average, but not of a percentage. known is the number of samples, measured or assumed, of the
// target's pods.
func (pm *podMetric) ratio(m *MetricDecision, known int) (ratio float64, usage int64, utilization int32, err error) {
	if m.Percent {
		if pm.requests == 0 {
			return 0, 0, 0, errors.New("the pods that count request nothing: set requests in their containers")
		}
		utilization = int32(pm.total * 100 / pm.requests)
		return float64(utilization) / float64(m.Target), pm.total / int64(known), utilization, nil
	}
	usage = pm.total / int64(known+pm.notInTarget)
	return float64(usage) / float64(m.Target), usage, 0, nil
}

// assumeUsage gives pods without a number an assumed usage, and returns the number of these pods.
// With a ratio of exactly 1 there is no change to damp.
func (pm *podMetric) assumeUsage(m *MetricDecision, withUnready bool) int {
	n := 0
	fallback := max(100, m.Target) // percent
	for i := range m.Pods {
		p := &m.Pods[i]
		switch {
		case p.Class == Unready && withUnready, p.Class == Missing && m.Ratio > 1:
			p.Assumed = 0
		case p.Class == Missing && m.Ratio < 1 && m.Percent:
			p.Assumed = p.Request * fallback / 100
		case p.Class == Missing && m.Ratio < 1:
			p.Assumed = m.Target
		default:
			continue
		}
		p.HasAssumed = true
		n++
		pm.total += p.Assumed
		if m.Percent {
			pm.requests += p.Request
		}
	}
	return n
}

// classify fills m.Pods from the samples and adds up those that are counted. If requests are needed
// and one is missing, the error says which one. Like Kubernetes it also needs the requests of
// ignored pods.
func (pm *podMetric) classify(m *MetricDecision, samples []PodSample) (requestErr error) {
	pm.sortPods()
	if !sortedByPod(samples) {
		samples = sortByPod(samples)
	}
	var others []ClassifiedPod // the samples of pods that are not in the target
	m.Pods = pm.reusablePods(m.Index)
	for i := range pm.pods {
		pod, p := &pm.pods[i], &m.Pods[i]
		for len(samples) > 0 && samples[0].Pod < pod.Name {
			others, samples = append(others, notInTargetPod(&samples[0])), samples[1:]
		}
		*p = ClassifiedPod{Pod: pod.Name}
		var sample *PodSample
		if len(samples) > 0 && samples[0].Pod == pod.Name {
			sample, samples = &samples[0], samples[1:]
			p.setSample(sample)
		}
		if m.Percent && requestErr == nil {
			p.Request, requestErr = RequestOf(pod, pm.container, pm.resource, pm.in.Settings.PodLevelResources)
		}
		p.Class, p.Reason = pm.classifyPod(pod, sample)
		pm.count(p)
	}
	for i := range samples {
		others = append(others, notInTargetPod(&samples[i]))
	}
	pm.notInTarget = len(others)
	for i := range others {
		if !m.Percent {
			pm.total += others[i].Usage
		}
	}
	m.Pods = append(m.Pods, others...)
	return requestErr
}

// count adds a pod of the target to the sums of its class.
func (pm *podMetric) count(p *ClassifiedPod) {
	switch p.Class {
	case Counted:
		pm.counted++
		pm.total += p.Usage
		pm.requests += p.Request
	case Unready:
		pm.unready++
	case Missing:
		pm.missing++
	}
}

// reusablePods returns a slice with one element for each pod, with arbitrary contents. It uses the
// slice of Input.Reuse if that is large enough.
func (c *calculation) reusablePods(metric int) []ClassifiedPod {
	if old := c.in.Reuse; old != nil && metric < len(old.Metrics) {
		if pods := old.Metrics[metric].Pods; cap(pods) >= len(c.pods) {
			return pods[:len(c.pods)]
		}
	}
	return make([]ClassifiedPod, len(c.pods))
}

// setSample copies a sample.
func (p *ClassifiedPod) setSample(s *PodSample) {
	p.HasSample, p.Usage, p.Window = true, s.Milli, s.Window
	if !s.At.IsZero() {
		p.End = s.At.UnixNano()
	}
}

func notInTargetPod(s *PodSample) ClassifiedPod {
	p := ClassifiedPod{Pod: s.Pod, Class: NotInTarget, Reason: ReasonNotInTarget}
	p.setSample(s)
	return p
}

// classifyPod returns the class of a pod and the reason. Only CPU metrics consider readiness,
// because the CPU of a starting pod does not show what it will need.
func (pm *podMetric) classifyPod(p *PodInput, sample *PodSample) (PodClass, ClassReason) {
	switch {
	case p.Terminating:
		return Ignored, ReasonTerminating
	case p.Phase == cluster.Failed:
		return Ignored, ReasonFailed
	case p.Phase == cluster.Pending:
		return Unready, ReasonPending
	case sample == nil:
		return Missing, ReasonNoSample
	case pm.resource != corev1.ResourceCPU:
		return Counted, ReasonReady
	case p.Ready == cluster.ReadyAbsent || p.Started.IsZero():
		return Unready, ReasonNoCondition
	case p.Started.After(pm.startedAfter):
		if p.Ready == cluster.ReadyFalse {
			return Unready, ReasonStarting
		}
		if sample.At.Before(p.ReadySince.Add(sample.Window)) {
			return Unready, ReasonWindowTooEarly
		}
	case p.Ready == cluster.ReadyFalse && p.Started.Add(pm.in.Settings.InitialReadinessDelay).After(p.ReadySince):
		return Unready, ReasonNeverReady
	}
	return Counted, ReasonReady
}

// sortedByPod reports whether samples are sorted by pod without duplicates.
func sortedByPod(samples []PodSample) bool {
	for i := 1; i < len(samples); i++ {
		if samples[i-1].Pod >= samples[i].Pod {
			return false
		}
	}
	return true
}

// sortByPod returns the samples sorted by pod. If there are several for one pod, it keeps the last.
func sortByPod(samples []PodSample) []PodSample {
	samples = slices.Clone(samples)
	slices.SortStableFunc(samples, func(a, b PodSample) int { return cmp.Compare(a.Pod, b.Pod) })
	n := 0
	for i := range samples {
		if i+1 < len(samples) && samples[i].Pod == samples[i+1].Pod {
			continue
		}
		samples[n] = samples[i]
		n++
	}
	return samples[:n]
}
