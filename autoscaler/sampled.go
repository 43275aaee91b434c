package autoscaler

import (
	"cmp"
	"errors"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/weir-metrics/weir/cluster"
)

// sampled computes a metric that has a sample for each pod: Resource,
// ContainerResource and Pods.
//
// Pods whose samples count give a first ratio. Pods that have none, and, on the way
// up, pods that are not ready, are then given usage that holds the change back, and
// the ratio is computed anew; if it now points the other way, nothing changes.
type sampled struct {
	*calculation
	resource  corev1.ResourceName // empty for a Pods metric
	container string              // empty for whole pods

	total    int64 // usage of the samples that count
	requests int64 // of the counted pods, where it is percent
	counted  int
	strange  int
	unready  int
	missing  int
}

var errNoSamples = errors.New("no pod of the target has a number that counts")

func (s *sampled) decide(m *MetricDecision) error {
	r, err := s.read(m)
	if err != nil {
		// Which pods the number is wanted for is worth knowing even so.
		_ = s.classify(m, nil)
		return err
	}
	if err := s.listed(); err != nil {
		return err
	}
	requestErr := s.classify(m, r.Samples)
	m.Count = s.counted
	if s.counted+s.strange == 0 {
		return errNoSamples
	}
	if requestErr != nil {
		return requestErr
	}
	if m.Ratio, m.Usage, m.Utilization, err = s.ratio(m, s.counted); err != nil {
		return err
	}

	current := s.in.Scale.Spec
	withUnready := s.unready > 0 && m.Ratio > 1
	if !withUnready && s.missing == 0 {
		if s.near(m.Ratio) {
			m.Proposal, m.Outcome = current, WithinTolerance
			return nil
		}
		m.Proposal, m.Outcome = toInt32(math.Ceil(m.Ratio*float64(s.counted))), Scaled
		return nil
	}

	m.Recounted = true
	assumed := s.assume(m, withUnready)
	m.Count2 = s.counted + s.strange + assumed
	if m.Ratio2, _, _, err = s.ratio(m, s.counted+assumed); err != nil {
		return err
	}
	if s.near(m.Ratio2) {
		m.Proposal, m.Outcome = current, WithinTolerance
		return nil
	}
	proposal := toInt32(math.Ceil(m.Ratio2 * float64(m.Count2)))
	if turns(m.Ratio, m.Ratio2) || m.Ratio2 < 1 && proposal > current || m.Ratio2 > 1 && proposal < current {
		m.Proposal, m.Outcome = current, WouldTurn
		return nil
	}
	m.Proposal, m.Outcome = proposal, Scaled
	return nil
}

// turns reports whether two ratios ask for opposite directions.
func turns(a, b float64) bool { return a < 1 && b > 1 || a > 1 && b < 1 }

// ratio returns usage to target, the average usage and, in percent, the utilization:
// a whole percentage of all requests together, rounded down before it is divided by
// the target. Samples of strangers have no request and stay out of a percentage;
// they are part of an average. known is how many samples, taken or assumed, are of
// the target's pods.
func (s *sampled) ratio(m *MetricDecision, known int) (ratio float64, usage int64, utilization int32, err error) {
	if m.Percent {
		if s.requests == 0 {
			return 0, 0, 0, errors.New("the pods that count request nothing: set requests in their containers")
		}
		utilization = int32(s.total * 100 / s.requests)
		return float64(utilization) / float64(m.Target), s.total / int64(known), utilization, nil
	}
	usage = s.total / int64(known+s.strange)
	return float64(usage) / float64(m.Target), usage, 0, nil
}

// assume gives the pods without a number one, and returns how many it gave. With a
// ratio of exactly 1 there is no change to hold back.
func (s *sampled) assume(m *MetricDecision, withUnready bool) int {
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
		s.total += p.Assumed
		if m.Percent {
			s.requests += p.Request
		}
	}
	return n
}

// classify fills in m.Pods from the samples, and adds up those that count. The error
// is why a request is not known, if it is asked for: of any pod, for Kubernetes wants
// those of pods it leaves out as well.
//
// Pods and samples are walked side by side, in the order of names. As long as each
// sample meets its pod, that of the samples needs no other proof.
func (s *sampled) classify(m *MetricDecision, samples []Sample) error {
	var (
		requestErr error
		strangers  []PodCase
		next       int // of the samples
	)
	m.Pods = s.room(m.Index)
	for i := range s.pods {
		pod, p := &s.pods[i], &m.Pods[i]
		if i > 0 && pod.Name < s.pods[i-1].Name {
			return s.reorder(m, samples)
		}
		var sample *Sample
		for ; next < len(samples); next++ {
			candidate := &samples[next]
			if candidate.Pod == pod.Name {
				sample = candidate
				next++
				break
			}
			if candidate.Pod > pod.Name {
				break
			}
			strangers = append(strangers, stranger(candidate))
		}
		*p = PodCase{Pod: pod.Name}
		if sample != nil {
			p.measured(sample)
		}
		if m.Percent && requestErr == nil {
			p.Request, requestErr = requestOf(pod, s.container, s.resource, s.in.Settings.PodLevelResources)
		}
		p.Class, p.Why = s.class(pod, sample)
		switch p.Class {
		case Counted:
			s.counted++
			s.total += p.Usage
			s.requests += p.Request
		case Unready:
			s.unready++
		case Missing:
			s.missing++
		}
	}
	for ; next < len(samples); next++ {
		strangers = append(strangers, stranger(&samples[next]))
	}
	if len(strangers) == 0 {
		return requestErr
	}
	if !inOrder(samples) {
		return s.reorder(m, samples)
	}
	s.strange = len(strangers)
	if !m.Percent {
		for i := range strangers {
			s.total += strangers[i].Usage
		}
	}
	m.Pods = append(m.Pods, strangers...)
	return requestErr
}

// room returns a case for each pod, whatever is in it: of the decision to be reused,
// if it has as many.
func (c *calculation) room(metric int) []PodCase {
	if old := c.in.Reuse; old != nil && metric < len(old.Metrics) {
		if pods := old.Metrics[metric].Pods; cap(pods) >= len(c.pods) {
			return pods[:len(c.pods)]
		}
	}
	return make([]PodCase, len(c.pods))
}

// measured fills in what a sample says.
func (p *PodCase) measured(s *Sample) {
	p.HasSample, p.Usage, p.Window = true, s.Milli, s.Window
	if !s.At.IsZero() {
		p.End = s.At.UnixNano()
	}
}

func stranger(s *Sample) PodCase {
	p := PodCase{Pod: s.Pod, Class: Stranger, Why: WhyUnknown}
	p.measured(s)
	return p
}

// class says how a pod counts and why. Only CPU looks at readiness: a starting pod's
// CPU says nothing of what it will need, its memory does.
func (s *sampled) class(p *Pod, sample *Sample) (Class, Why) {
	switch {
	case p.Terminating:
		return Ignored, WhyTerminating
	case p.Phase == cluster.Failed:
		return Ignored, WhyFailed
	case p.Phase == cluster.Pending:
		return Unready, WhyPending
	case sample == nil:
		return Missing, WhyNoSample
	case s.resource != corev1.ResourceCPU:
		return Counted, WhyReady
	case p.Ready == cluster.ReadyAbsent || p.Started.IsZero():
		return Unready, WhyNoCondition
	case p.Started.After(s.starting):
		if p.Ready == cluster.ReadyFalse {
			return Unready, WhyStarting
		}
		if sample.At.Before(p.ReadySince.Add(sample.Window)) {
			return Unready, WhyWindowTooEarly
		}
	case p.Ready == cluster.ReadyFalse && p.Started.Add(s.in.Settings.InitialReadinessDelay).After(p.ReadySince):
		return Unready, WhyNeverReady
	}
	return Counted, WhyReady
}

// reorder classifies again, with pods and samples in order.
func (s *sampled) reorder(m *MetricDecision, samples []Sample) error {
	s.order()
	*s = sampled{calculation: s.calculation, resource: s.resource, container: s.container}
	if !inOrder(samples) {
		samples = byPod(samples)
	}
	return s.classify(m, samples)
}

// inOrder reports whether samples come by the names of their pods, one a pod.
func inOrder(samples []Sample) bool {
	for i := 1; i < len(samples); i++ {
		if samples[i-1].Pod >= samples[i].Pod {
			return false
		}
	}
	return true
}

// byPod returns samples by the names of their pods, one a pod: the last where there
// are several.
func byPod(samples []Sample) []Sample {
	samples = slices.Clone(samples)
	slices.SortStableFunc(samples, func(a, b Sample) int { return cmp.Compare(a.Pod, b.Pod) })
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
