package parity

import (
	"math"
	"slices"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-metrics/weir/autoscaler"
)

// plot makes the steps of a sequence one by one, because the next step depends
// on the last decision. The target usually has the number of replicas that was
// written, and a step often comes exactly when something remembered is about to
// be forgotten.
type plot struct {
	*scene
	steps  int // the number of steps that follow
	simple bool
	spec   autoscalingv2.HorizontalPodAutoscalerSpec
	wanted int32 // approximately what the first metric should propose
	count  int32 // replicas of the target
	past   []time.Time
	others []otherTarget
}

// newPlot returns a sequence that starts at now.
func newPlot(r random, now time.Time, gates autoscaler.Settings) (*sequence, *plot) {
	q := &sequence{Config: newConfig(r, gates), Reuse: r.percent(50)}
	p := &plot{scene: newScene(r, now, q.Config), steps: r.between(1, 16), simple: r.percent(45)}
	p.messy, p.gaps = p.messy && !p.simple, p.gaps && !p.simple
	p.spec.ScaleTargetRef = autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: name}
	p.bounds()
	p.metrics()
	p.behavior()
	p.count = int32(r.between(1, 12))
	if r.percent(5) {
		p.count = 0
	}
	p.wanted = p.count
	if r.percent(40) {
		q.Status = p.status()
	}
	if gates.ScaleToZero && r.percent(12) { // an earlier controller scaled it to zero
		p.count = 0
		q.Status.Conditions = []autoscalingv2.HorizontalPodAutoscalerCondition{{
			Type: autoscalingv2.ScaledToZero, Status: corev1.ConditionTrue, Reason: "ScaledToZero", LastTransitionTime: metav1.NewTime(now.Add(-time.Hour)),
		}}
	}
	if r.percent(6) {
		p.others = []otherTarget{{Namespace: one(r, namespace, "elsewhere"), Name: "api", Selector: one(r, "app=web", "app=other", "app")}}
	}
	return q, p
}

// status returns a status that an earlier controller may have left.
func (p *plot) status() autoscalingv2.HorizontalPodAutoscalerStatus {
	since := metav1.NewTime(p.now.Add(-time.Hour))
	s := autoscalingv2.HorizontalPodAutoscalerStatus{CurrentReplicas: p.count, DesiredReplicas: int32(p.IntN(10))}
	if p.percent(50) {
		s.LastScaleTime = &since
	}
	for _, kind := range []autoscalingv2.HorizontalPodAutoscalerConditionType{autoscalingv2.ScaledToZero, autoscalingv2.AbleToScale, autoscalingv2.ScalingActive, autoscalingv2.ScalingLimited} {
		if p.percent(60) {
			s.Conditions = append(s.Conditions, autoscalingv2.HorizontalPodAutoscalerCondition{
				Type: kind, Status: one(p.random, corev1.ConditionTrue, corev1.ConditionFalse), Reason: "Earlier", LastTransitionTime: since,
			})
		}
	}
	return s
}

func (p *plot) bounds() {
	p.spec.MinReplicas = nil
	least := int32(1)
	if !p.percent(25) {
		least = one[int32](p.random, 1, 1, 2, 3, 5)
		if p.config.ScaleToZero && p.percent(50) || p.percent(2) {
			least = 0
		}
		p.spec.MinReplicas = &least
	}
	p.spec.MaxReplicas = max(1, least) + one[int32](p.random, 0, 1, 4, 9, 9, 30, 100, math.MaxInt32-10)
}

func (p *plot) metrics() {
	p.spec.Metrics = nil
	if p.simple { // one metric that proposes exactly what is wanted
		average := resource.MustParse("1")
		p.spec.Metrics = []autoscalingv2.MetricSpec{{Type: autoscalingv2.ExternalMetricSourceType, External: &autoscalingv2.ExternalMetricSource{
			Metric: autoscalingv2.MetricIdentifier{Name: "m0"},
			Target: autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: &average},
		}}}
		return
	}
	for i := range one(p.random, 1, 1, 1, 2, 2, 3) {
		p.spec.Metrics = append(p.spec.Metrics, p.metric(i))
	}
	if p.percent(1) {
		p.spec.Metrics = nil // an API server would not accept it
	}
	if p.percent(2) {
		p.spec.Metrics = append(p.spec.Metrics, autoscalingv2.MetricSpec{Type: "Weather"})
	}
}

func (p *plot) behavior() {
	p.spec.Behavior = nil
	if p.percent(35) {
		return
	}
	p.spec.Behavior = &autoscalingv2.HorizontalPodAutoscalerBehavior{
		ScaleUp: newRules(p.random, p.between(1, 3)), ScaleDown: newRules(p.random, p.between(1, 3)),
	}
	if p.percent(40) {
		p.spec.Behavior.ScaleDown.StabilizationWindowSeconds = nil
	}
	if p.percent(1) {
		one(p.random, p.spec.Behavior.ScaleUp, p.spec.Behavior.ScaleDown).Policies = []autoscalingv2.HPAScalingPolicy{} // an API server would not accept it
	}
}

// periods returns the times for which something is remembered.
func (p *plot) periods() []time.Duration {
	list := []time.Duration{p.config.DownscaleStabilization}
	if b := p.spec.Behavior; b != nil {
		for _, rules := range []*autoscalingv2.HPAScalingRules{b.ScaleUp, b.ScaleDown} {
			if w := rules.StabilizationWindowSeconds; w != nil {
				list = append(list, time.Duration(*w)*time.Second)
			}
			for _, policy := range rules.Policies {
				list = append(list, time.Duration(policy.PeriodSeconds)*time.Second)
			}
		}
	}
	return list
}

// after returns the time until the next step.
func (p *plot) after() time.Duration {
	if len(p.past) > 0 && p.percent(45) {
		edge := p.edge(one(p.random, p.past...).Add(one(p.random, p.periods()...)))
		if edge.After(p.now) {
			return edge.Sub(p.now)
		}
	}
	return time.Duration(one(p.random, 15, 15, 15, 15, 1, 30, 30, 60, p.between(1, 400))) * time.Second
}

// next returns the next step; ok is false if there is none. last is the outcome
// of the previous step.
func (p *plot) next(last *outcome, fell *faults) (s step, ok bool) {
	if p.steps--; p.steps < 0 {
		return step{}, false
	}
	s.After = p.after()
	p.now = p.now.Add(s.After)
	if len(p.past) > 0 && p.percent(4) {
		s.Action = one(p.random, deletion, restart)
		return s, true
	}
	s.Action = reconcile
	p.past = append(p.past, p.now)

	if p.percent(10) {
		one(p.random, p.bounds, p.metrics, p.behavior, p.behavior, p.windows)()
	}
	p.moved(last, fell)
	p.want()
	s.Spec = *p.spec.DeepCopy()
	s.Target = p.target()
	s.Others = slices.Clone(p.others)
	s.Input.Pods = p.podList(int(min(s.Target.StatusReplicas, one[int32](p.random, 1, 3, 5))))
	s.Input.PodsFail = p.gaps && p.percent(2)
	current := float64(max(1, s.Target.SpecReplicas))
	p.answer(&s.Input, s.Spec.Metrics, len(s.Input.Pods), s.Target, func(i int) float64 {
		if i == 0 && !p.percent(15) {
			if p.simple {
				return float64(p.wanted) / float64(max(1, s.Target.StatusReplicas))
			}
			return float64(p.wanted) / current
		}
		return p.ratio()
	})
	s.Faults = p.faults()
	return s, true
}

// windows changes only how long recommendations are kept.
func (p *plot) windows() {
	if b := p.spec.Behavior; b != nil {
		up, down := one[int32](p.random, 0, 15, 60, 300), one[int32](p.random, 0, 15, 60, 300)
		b.ScaleUp.StabilizationWindowSeconds, b.ScaleDown.StabilizationWindowSeconds = &up, &down
	}
}

// moved sets the target to the number of replicas it was last scaled to, or to
// another.
func (p *plot) moved(last *outcome, fell *faults) {
	if last != nil && len(last.Updates) > 0 && fell.scaleUpdate(len(last.Updates)-1) == nil && !p.percent(4) {
		p.count = max(0, last.Updates[0]) // an API server accepts no negative number
	}
	if p.percent(6) { // somebody scales by hand
		p.count = one(p.random, 0, 1, p.spec.MaxReplicas, min(p.spec.MaxReplicas, math.MaxInt32-1)+1, int32(p.between(0, 20)))
		if least := p.spec.MinReplicas; least != nil && p.percent(50) {
			p.count = max(0, *least-1)
		}
	}
	if p.count > 1e6 && !p.percent(10) {
		p.count = int32(p.between(1, 20))
	}
}

// want changes the load.
func (p *plot) want() {
	least := int32(1)
	if p.spec.MinReplicas != nil {
		least = *p.spec.MinReplicas
	}
	switch p.IntN(10) {
	case 0, 1, 2: // no change
	case 3:
		p.wanted = least + int32(p.between(-1, 1))
	case 4:
		p.wanted = min(p.spec.MaxReplicas, math.MaxInt32-1) + int32(p.between(-1, 1))
	case 5:
		p.wanted *= int32(p.between(2, 4))
	case 6:
		p.wanted /= 2
	case 7:
		p.wanted = p.count
	default:
		p.wanted += int32(p.between(-3, 3))
	}
	p.wanted = min(max(p.wanted, 0), 1e6)
}

func (p *plot) target() autoscaler.Scale {
	t := autoscaler.Scale{SpecReplicas: p.count, StatusReplicas: p.count, Selector: "app=web"}
	if p.percent(12) {
		t.StatusReplicas = max(0, p.count+int32(p.between(-3, 3)))
	}
	if p.percent(1) {
		t.Selector = one(p.random, "", "app in (")
	}
	return t
}

func (p *plot) faults() (f faults) {
	if !p.percent(12) {
		return f
	}
	switch p.IntN(4) {
	case 0:
		f.Scale = one(p.random, "version", "kind", "mappings", "get", "first")
	case 1, 2:
		for range p.between(1, 6) {
			f.ScaleUpdates = append(f.ScaleUpdates, one(p.random, conflict, conflict, conflict, conflict, refused))
		}
		f.ScaleRefresh = p.percent(30)
	default:
		f.Status = true
	}
	return f
}
