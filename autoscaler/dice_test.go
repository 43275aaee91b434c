package autoscaler

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/test/dice"
)

// random builds an input from bytes.
type random struct{ dice.Dice }

func newRandom(bytes []byte) *random { return &random{dice.Dice{Bytes: bytes}} }

// milli returns a number of thousandths; some of them overflow.
func (d *random) milli() int64 {
	return dice.Pick(&d.Dice, int64(d.Roll(256))*10, 500, 0, 1, 1e6, -250, math.MaxInt64, math.MinInt64, math.MaxInt64/100, math.MaxInt32)
}

func (d *random) ago() time.Time { return t0.Add(-time.Duration(d.Roll(256)*d.Roll(8)) * time.Second) }

// input returns an input with a specification that an API server would store, and with pods in any
// state.
func (d *random) input() *Input {
	settings := DefaultSettings()
	settings.ScaleToZero = d.Chance(3)
	settings.PodLevelResources = !d.Chance(4)
	settings.ConfigurableTolerance = !d.Chance(4)
	in := &Input{
		Now:      t0,
		Settings: &settings,
		Object:   types.NamespacedName{Namespace: "shop", Name: "web"},
		Spec:     d.spec(&settings),
		Status:   &autoscalingv2.HorizontalPodAutoscalerStatus{DesiredReplicas: int32(d.Roll(20))},
		Memory:   d.memory(),
		Scale:    Scale{SpecReplicas: int32(d.Roll(24)), StatusReplicas: int32(d.Roll(24)), Selector: dice.Pick(&d.Dice, "app=web", "app=web", "app=web", "", "a b c")},
	}
	if d.Chance(3) {
		in.Status.Conditions = append(in.Status.Conditions, autoscalingv2.HorizontalPodAutoscalerCondition{
			Type: autoscalingv2.ScaledToZero, Status: dice.Pick(&d.Dice, corev1.ConditionTrue, corev1.ConditionFalse)})
	}
	if d.Chance(12) {
		in.ScaleErr = errors.New("no scale")
	}
	if d.Chance(12) {
		in.PodsErr = errors.New("no pods")
	}
	if d.Chance(12) {
		in.Overlapping = []types.NamespacedName{in.Object, {Namespace: "shop", Name: "other"}}
	}
	for i := range d.Roll(9) {
		in.Pods = append(in.Pods, d.pod(i))
	}
	readings := make([]Reading, len(in.Spec.Metrics))
	for i := range readings {
		readings[i] = d.reading(in.Spec.Metrics[i].Type)
	}
	in.ReadMetric = func(i int) Reading { return readings[i] }
	return in
}

func (d *random) spec(s *Settings) *autoscalingv2.HorizontalPodAutoscalerSpec {
	lowest := int32(d.Roll(6))
	spec := &autoscalingv2.HorizontalPodAutoscalerSpec{
		ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"},
		MinReplicas:    &lowest,
		MaxReplicas:    max(1, lowest) + int32(d.Roll(20)),
	}
	outside := false
	for range 1 + d.Roll(3) {
		m := d.metric()
		outside = outside || m.Object != nil || m.External != nil
		spec.Metrics = append(spec.Metrics, m)
	}
	if !s.ScaleToZero || !outside {
		lowest = max(1, lowest)
	}
	if d.Chance(2) {
		spec.Behavior = &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: d.rules(), ScaleDown: d.rules()}
	}
	Default(spec)
	return spec
}

func (d *random) rules() *autoscalingv2.HPAScalingRules {
	if d.Chance(4) {
		return nil
	}
	r := &autoscalingv2.HPAScalingRules{SelectPolicy: dice.Pick(&d.Dice, nil, new(autoscalingv2.MinChangePolicySelect), new(autoscalingv2.DisabledPolicySelect))}
	if d.Chance(2) {
		r.StabilizationWindowSeconds = new(int32(d.Roll(256)))
	}
	if d.Chance(3) {
		r.Tolerance = resource.NewMilliQuantity(int64(d.Roll(256)), resource.DecimalSI)
	}
	for range d.Roll(4) {
		r.Policies = append(r.Policies, autoscalingv2.HPAScalingPolicy{
			Type:          dice.Pick(&d.Dice, autoscalingv2.PodsScalingPolicy, autoscalingv2.PercentScalingPolicy),
			Value:         dice.Pick(&d.Dice, 1+int32(d.Roll(200)), math.MaxInt32),
			PeriodSeconds: 1 + int32(d.Roll(256)),
		})
	}
	return r
}

func (d *random) metric() autoscalingv2.MetricSpec {
	positive := resource.NewMilliQuantity(dice.Pick(&d.Dice, 1+int64(d.Roll(256))*10, 1, math.MaxInt64), resource.DecimalSI)
	value := autoscalingv2.MetricTarget{Type: autoscalingv2.ValueMetricType, Value: positive}
	average := autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: positive}
	percent := autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: new(1 + int32(d.Roll(256)))}
	name := dice.Pick(&d.Dice, corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage)
	id := autoscalingv2.MetricIdentifier{Name: "m"}
	switch d.Roll(5) {
	case 0:
		return autoscalingv2.MetricSpec{Type: autoscalingv2.ResourceMetricSourceType,
			Resource: &autoscalingv2.ResourceMetricSource{Name: name, Target: dice.Pick(&d.Dice, percent, average)}}
	case 1:
		return autoscalingv2.MetricSpec{Type: autoscalingv2.ContainerResourceMetricSourceType,
			ContainerResource: &autoscalingv2.ContainerResourceMetricSource{Name: name, Container: "app", Target: dice.Pick(&d.Dice, percent, average)}}
	case 2:
		return autoscalingv2.MetricSpec{Type: autoscalingv2.PodsMetricSourceType,
			Pods: &autoscalingv2.PodsMetricSource{Metric: id, Target: average}}
	case 3:
		return autoscalingv2.MetricSpec{Type: autoscalingv2.ObjectMetricSourceType, Object: &autoscalingv2.ObjectMetricSource{
			DescribedObject: autoscalingv2.CrossVersionObjectReference{Kind: "Service", Name: "web"}, Metric: id, Target: dice.Pick(&d.Dice, value, average)}}
	default:
		return autoscalingv2.MetricSpec{Type: autoscalingv2.ExternalMetricSourceType,
			External: &autoscalingv2.ExternalMetricSource{Metric: id, Target: dice.Pick(&d.Dice, value, average)}}
	}
}

func (d *random) pod(i int) PodInput {
	p := PodInput{
		Name:        fmt.Sprintf("web-%d", i),
		Phase:       dice.Pick(&d.Dice, cluster.Running, cluster.Running, cluster.Running, cluster.Pending, cluster.Failed, cluster.Succeeded),
		Terminating: d.Chance(8),
		Started:     dice.Pick(&d.Dice, d.ago(), time.Time{}),
		Ready:       dice.Pick(&d.Dice, cluster.ReadyTrue, cluster.ReadyTrue, cluster.ReadyFalse, cluster.ReadyUnknown, cluster.ReadyAbsent),
		ReadySince:  d.ago(),
		Containers:  []ContainerInput{{"app", cluster.Regular, d.requests()}},
	}
	if d.Chance(3) {
		p.Containers = append(p.Containers, ContainerInput{"side", dice.Pick(&d.Dice, cluster.Sidecar, cluster.Init, cluster.Regular), d.requests()})
	}
	if d.Chance(5) {
		p.Requests, p.Overhead, p.PodLevel = d.requests(), d.requests(), true
	}
	return p
}

func (d *random) requests() Requests {
	amount := func() MilliQuantity {
		return MilliQuantity{Milli: dice.Pick(&d.Dice, 100, 1000, 0, int64(d.Roll(256)), math.MaxInt64), Set: !d.Chance(16)}
	}
	return Requests{CPU: amount(), Memory: amount()}
}

func (d *random) reading(kind autoscalingv2.MetricSourceType) Reading {
	if d.Chance(8) {
		return Reading{Err: errAPI}
	}
	r := Reading{At: d.ago()}
	switch kind {
	case autoscalingv2.ObjectMetricSourceType:
		r.Values = []int64{d.milli()}
	case autoscalingv2.ExternalMetricSourceType:
		for range 1 + d.Roll(3) {
			r.Values = append(r.Values, d.milli())
		}
	default:
		for i := range 9 {
			if !d.Chance(5) {
				r.Samples = append(r.Samples, PodSample{fmt.Sprintf("web-%d", i), d.milli(), d.ago(), time.Duration(d.Roll(60)) * time.Second})
			}
		}
	}
	return r
}

// memory returns a memory with unused capacity, which a decision must not overwrite.
func (d *random) memory() Memory {
	var m Memory
	for range d.Roll(5) {
		m.Recommendations = append(m.Recommendations, ReplicaRecommendation{int32(d.Roll(24)), d.ago()})
	}
	change := func() (list []ReplicaChange) {
		for range d.Roll(4) {
			list = append(list, ReplicaChange{int32(d.Roll(24)), d.ago(), d.Chance(4)})
		}
		return list
	}
	m.Ups, m.Downs = change(), change()
	m.Recommendations = slices.Grow(m.Recommendations, 2)
	m.Ups, m.Downs = slices.Grow(m.Ups, 2), slices.Grow(m.Downs, 2)
	return m
}
