package parity

import (
	"fmt"
	"math"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-metrics/weir/autoscaler"
)

// scene says how the inputs of one case are made: the requests of its pods, how
// long a pod counts as young, and what may be wrong. Many scenes leave most
// faults out, because with faults the normal paths are seldom reached.
type scene struct {
	random
	now      time.Time
	config   config
	cpu      int64 // a container's request, in milli-cores
	memory   int64 // in milli-bytes
	messy    bool  // pods that are not simply ready
	gaps     bool  // samples and requests that are missing
	levels   bool  // pod-level requests and overhead
	extreme  bool  // numbers near the end of 64 bits
	sidecars bool
	even     bool // all pods use the same
}

func newScene(r random, now time.Time, c config) *scene {
	return &scene{
		random: r, now: now, config: c,
		cpu:      one[int64](r, 1, 3, 100, 100, 250, 333, 500, 1000, 2000, 64000),
		memory:   one[int64](r, 1000, 64<<20, 128<<20, 300e6, 1<<30, 5<<30) * one[int64](r, 1000, 1000, 1000, 1),
		messy:    r.percent(60),
		gaps:     r.percent(40),
		levels:   r.percent(15),
		extreme:  r.percent(4),
		sidecars: r.percent(25),
		even:     r.percent(40),
	}
}

// newConfig returns random flags of a controller. Feature gates are chosen once
// for a block of cases, because upstream's belong to the process.
func newConfig(r random, gates autoscaler.Settings) config {
	s := gates
	s.Tolerance = one(r, 0.1, 0.1, 0.1, 0.1, 0, 0.05, 0.3, 1)
	s.DownscaleStabilization = one(r, 5*time.Minute, 5*time.Minute, time.Minute, 15*time.Second, 0, 90500*time.Millisecond)
	s.CPUInitialization = one(r, 5*time.Minute, 5*time.Minute, 2*time.Minute, 30*time.Second, 0)
	s.InitialReadinessDelay = one(r, 30*time.Second, 30*time.Second, 10*time.Second, 0)
	return config{s}
}

// newGates returns random feature gates for a block.
func newGates(r random) autoscaler.Settings {
	return autoscaler.Settings{
		ConfigurableTolerance: true, // it cannot be off any more
		ScaleToZero:           r.percent(40),
		PodLevelResources:     r.percent(85),
	}
}

// edge returns a time equal to t, or very close to it.
func (s *scene) edge(t time.Time) time.Time {
	return t.Add(one(s.random, 0, 0, 0, -time.Second, time.Second, -time.Nanosecond, time.Nanosecond, 500*time.Millisecond))
}

// ratio returns a ratio of usage to target, mostly near one at which the
// decision changes.
func (s *scene) ratio() float64 {
	t := s.config.Tolerance
	switch s.IntN(12) {
	case 0:
		return 1
	case 1:
		return 1 + t
	case 2:
		return 1 - t
	case 3:
		return 1 + t + (s.Float64()-0.5)/50
	case 4:
		return 1 - t + (s.Float64()-0.5)/50
	case 5:
		return 0
	case 6:
		return math.Exp(s.Float64() * 9)
	case 7, 8:
		return s.Float64()
	}
	return s.Float64() * 3
}

// milli returns a quantity of about v milli-units, often with a fraction that
// needs rounding.
func (s *scene) milli(v int64) resource.Quantity {
	if v > math.MaxInt64/2_000_000 || v < math.MinInt64/2_000_000 || s.percent(50) {
		return *resource.NewMilliQuantity(v, resource.DecimalSI)
	}
	return *resource.NewScaledQuantity(v*1_000_000-one[int64](s.random, 0, 1, 499_999, 500_000, 999_999), resource.Nano)
}

// wild returns a quantity near a limit of 64 bits of thousandths.
func (s *scene) wild(negative bool) resource.Quantity {
	q := resource.MustParse(one(s.random, "9223372036854775807m", "9223372036854775m", "4611686018427387904m", "9E", "10E", "1P", "9P",
		"9223372036854775807", "9223372036854775807n", "92233720368547758m", "1n", "0", "3074457345618258603m", "18446744073709551616m", "12345678901234567890n"))
	if negative && s.percent(30) {
		q.Neg()
	}
	return q
}

// target returns a target value for a metric of type Pods, Object or External.
func (s *scene) target() *resource.Quantity {
	q := *resource.NewMilliQuantity(one[int64](s.random, 1, 10, 100, 333, 500, 1000, 1000, 10000, 123456, 1e9, 1e12), resource.DecimalSI)
	if s.extreme && s.percent(30) {
		q = s.wild(false)
	}
	return &q
}

// metric returns a random metric with that number in its name.
func (s *scene) metric(number int) autoscalingv2.MetricSpec {
	id := autoscalingv2.MetricIdentifier{Name: fmt.Sprintf("m%d", number)}
	if s.percent(10) {
		id.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"queue": "q", "zone": "z"}}
	}
	if s.gaps && s.percent(2) {
		id.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "queue", Operator: "Near"}}}
	}
	average := autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: s.target()}
	value := autoscalingv2.MetricTarget{Type: autoscalingv2.ValueMetricType, Value: s.target()}
	percent := one[int32](s.random, 1, 10, 30, 50, 50, 60, 66, 80, 80, 100, 150, 500)
	if s.extreme && s.percent(20) {
		percent = one[int32](s.random, math.MaxInt32, 0)
	}
	utilization := autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: &percent}
	if s.percent(1) {
		none := autoscalingv2.MetricTarget{Type: one(s.random, autoscalingv2.ValueMetricType, autoscalingv2.AverageValueMetricType)}
		value, utilization = none, none
	}
	resource := one(s.random, corev1.ResourceCPU, corev1.ResourceCPU, corev1.ResourceMemory)
	if s.gaps && s.percent(2) {
		resource = corev1.ResourceEphemeralStorage // no metrics API measures it
	}
	object := autoscalingv2.CrossVersionObjectReference{APIVersion: "networking.k8s.io/v1", Kind: "Ingress", Name: "front"}
	if s.percent(10) {
		object = autoscalingv2.CrossVersionObjectReference{APIVersion: "v1", Kind: "Namespace", Name: "elsewhere"}
	}

	switch s.IntN(9) {
	case 0, 1:
		return autoscalingv2.MetricSpec{Type: autoscalingv2.ResourceMetricSourceType,
			Resource: &autoscalingv2.ResourceMetricSource{Name: resource, Target: utilization}}
	case 2:
		average := autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: s.share(resource)}
		return autoscalingv2.MetricSpec{Type: autoscalingv2.ResourceMetricSourceType,
			Resource: &autoscalingv2.ResourceMetricSource{Name: resource, Target: average}}
	case 3:
		target := utilization
		if s.percent(50) {
			target = autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: s.share(resource)}
		}
		return autoscalingv2.MetricSpec{Type: autoscalingv2.ContainerResourceMetricSourceType,
			ContainerResource: &autoscalingv2.ContainerResourceMetricSource{Name: resource, Container: one(s.random, "app", "app", "app", "log", "proxy"), Target: target}}
	case 4:
		return autoscalingv2.MetricSpec{Type: autoscalingv2.PodsMetricSourceType, Pods: &autoscalingv2.PodsMetricSource{Metric: id, Target: average}}
	case 5:
		return autoscalingv2.MetricSpec{Type: autoscalingv2.ObjectMetricSourceType,
			Object: &autoscalingv2.ObjectMetricSource{DescribedObject: object, Metric: id, Target: value}}
	case 6:
		return autoscalingv2.MetricSpec{Type: autoscalingv2.ObjectMetricSourceType,
			Object: &autoscalingv2.ObjectMetricSource{DescribedObject: object, Metric: id, Target: average}}
	case 7:
		return autoscalingv2.MetricSpec{Type: autoscalingv2.ExternalMetricSourceType, External: &autoscalingv2.ExternalMetricSource{Metric: id, Target: value}}
	}
	return autoscalingv2.MetricSpec{Type: autoscalingv2.ExternalMetricSourceType, External: &autoscalingv2.ExternalMetricSource{Metric: id, Target: average}}
}

// share returns an average-value target that is a fraction of a container's
// request.
func (s *scene) share(name corev1.ResourceName) *resource.Quantity {
	q := *resource.NewMilliQuantity(max(1, whole(s.request(name)*one(s.random, 0.1, 0.5, 0.8, 1))), resource.DecimalSI)
	if s.extreme && s.percent(30) {
		q = s.wild(false)
	}
	return &q
}

// newCall returns a random call of the calculator.
func newCall(r random, now time.Time, gates autoscaler.Settings) *call {
	c := &call{Config: newConfig(r, gates), Selector: one(r, "app=web", "app=web", "app=web", "app in (web,other)")}
	s := newScene(r, now, c.Config)
	n := one(r, 1, 1, 2, 2, 3, 4, 5, 7, 10, 20)
	if r.percent(1) {
		n = 0
	}
	c.Input.Pods = s.podList(n)
	c.Current = int32(n)
	if r.percent(30) {
		c.Current = one(r, 0, 1, int32(n)+1, max(0, int32(n)-1), int32(r.IntN(1000)), int32(r.IntN(1e6)), math.MaxInt32)
	}
	if r.percent(50) {
		c.Behavior = &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: newRules(r, 1), ScaleDown: newRules(r, 1)}
	}
	c.Metric = s.metric(0)
	if c.Behavior != nil && gates.ConfigurableTolerance {
		if t := one(r, c.Behavior.ScaleUp.Tolerance, c.Behavior.ScaleDown.Tolerance); t != nil {
			s.config.Tolerance = t.AsApproximateFloat64() // ratio uses it
		}
	}
	s.answer(&c.Input, []autoscalingv2.MetricSpec{c.Metric}, n, autoscaler.Scale{SpecReplicas: c.Current, StatusReplicas: c.Current}, func(int) float64 { return s.ratio() })
	return c
}

// newTolerance returns a random tolerance for a specification.
func newTolerance(r random) *resource.Quantity {
	if r.percent(40) {
		return nil
	}
	q := resource.MustParse(one(r, "0", "50m", "100m", "100m", "0.1", "5e-2", "333m", "1", "200m", "0.15", "12345u", "2"))
	return &q
}

// newRules returns random scaling rules with this many policies.
func newRules(r random, policies int) *autoscalingv2.HPAScalingRules {
	selected := one(r, autoscalingv2.MaxChangePolicySelect, autoscalingv2.MaxChangePolicySelect, autoscalingv2.MinChangePolicySelect)
	if r.percent(5) {
		selected = autoscalingv2.DisabledPolicySelect
	}
	window := one[int32](r, 0, 0, 15, 60, 60, 120, 300)
	rules := &autoscalingv2.HPAScalingRules{SelectPolicy: &selected, StabilizationWindowSeconds: &window, Tolerance: newTolerance(r)}
	for range policies {
		rules.Policies = append(rules.Policies, autoscalingv2.HPAScalingPolicy{
			Type:          one(r, autoscalingv2.PodsScalingPolicy, autoscalingv2.PercentScalingPolicy),
			Value:         one[int32](r, 1, 1, 2, 3, 4, 5, 10, 33, 50, 100, 100, 900),
			PeriodSeconds: one[int32](r, 1, 15, 15, 30, 60, 60, 120, 300, 1800),
		})
	}
	return rules
}
