package autoscaler

import (
	"errors"
	"strings"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-metrics/weir/cluster"
)

// vector is a line of testdata/hpa. An absent key has its zero value. The key platformDependent
// lists results that depend on the processor. It is not needed here, because toInt32 and toInt64
// convert as amd64 does, where the vectors were made.
type vector struct {
	ID        string
	Release   string // of Kubernetes, if it is not 1.37
	Family    string // replicas: one call; reconcile: a sequence of steps
	APIValid  bool   // an API server stores every spec without a change
	Config    vectorConfig
	Namespace string

	// The following fields are for the family replicas.
	Call        vectorCall
	PodSelector string
	Pods        []vectorPod
	Metrics     vectorMetrics
	Faults      vectorFaults
	Expected    vectorProposal

	// The following fields are for the family reconcile.
	Name          string
	InitialStatus *vectorStatus
	Steps         []vectorStep
}

// observesGeneration reports whether the status has the observed generation: since 1.37. There,
// HPAConfigurableTolerance cannot be off, so vectors without it are of an earlier release.
func (v *vector) observesGeneration() bool {
	return v.Release == "" && v.Config.FeatureGates.HPAConfigurableTolerance
}

type vectorConfig struct {
	FeatureGates struct {
		HPAConfigurableTolerance, HPAScaleToZero, PodLevelResources bool
	}
	Tolerance                      float64
	DownscaleStabilizationSeconds  int64
	CPUInitializationPeriodSeconds int64
	InitialReadinessDelaySeconds   int64
}

func (c vectorConfig) settings() *Settings {
	s := func(n int64) time.Duration { return time.Duration(n) * time.Second }
	return &Settings{
		Tolerance:              c.Tolerance,
		DownscaleStabilization: s(c.DownscaleStabilizationSeconds),
		CPUInitialization:      s(c.CPUInitializationPeriodSeconds),
		InitialReadinessDelay:  s(c.InitialReadinessDelaySeconds),
		ConfigurableTolerance:  c.FeatureGates.HPAConfigurableTolerance,
		ScaleToZero:            c.FeatureGates.HPAScaleToZero,
		PodLevelResources:      c.FeatureGates.PodLevelResources,
	}
}

type vectorCall struct {
	Method          string
	CurrentReplicas int32
	Target          int64 // in percent for resourceUtilization, else in thousandths
	Tolerances      struct{ ScaleUp, ScaleDown float64 }
	Resource        corev1.ResourceName
	Container       string
	Metric          autoscalingv2.MetricIdentifier
	DescribedObject autoscalingv2.CrossVersionObjectReference
}

// spec returns the metric of the call.
func (c *vectorCall) spec() autoscalingv2.MetricSpec {
	milli := resource.NewMilliQuantity(c.Target, resource.DecimalSI)
	value := autoscalingv2.MetricTarget{Type: autoscalingv2.ValueMetricType, Value: milli}
	average := autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: milli}
	percent := autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: new(int32(c.Target))}
	ofResource := func(t autoscalingv2.MetricTarget) autoscalingv2.MetricSpec {
		if c.Container == "" {
			return autoscalingv2.MetricSpec{Type: autoscalingv2.ResourceMetricSourceType,
				Resource: &autoscalingv2.ResourceMetricSource{Name: c.Resource, Target: t}}
		}
		return autoscalingv2.MetricSpec{Type: autoscalingv2.ContainerResourceMetricSourceType,
			ContainerResource: &autoscalingv2.ContainerResourceMetricSource{Name: c.Resource, Container: c.Container, Target: t}}
	}
	object := func(t autoscalingv2.MetricTarget) autoscalingv2.MetricSpec {
		return autoscalingv2.MetricSpec{Type: autoscalingv2.ObjectMetricSourceType,
			Object: &autoscalingv2.ObjectMetricSource{DescribedObject: c.DescribedObject, Metric: c.Metric, Target: t}}
	}
	external := func(t autoscalingv2.MetricTarget) autoscalingv2.MetricSpec {
		return autoscalingv2.MetricSpec{Type: autoscalingv2.ExternalMetricSourceType,
			External: &autoscalingv2.ExternalMetricSource{Metric: c.Metric, Target: t}}
	}
	switch c.Method {
	case "resourceUtilization":
		return ofResource(percent)
	case "resourceAverageValue":
		return ofResource(average)
	case "pods":
		return autoscalingv2.MetricSpec{Type: autoscalingv2.PodsMetricSourceType,
			Pods: &autoscalingv2.PodsMetricSource{Metric: c.Metric, Target: average}}
	case "objectValue":
		return object(value)
	case "objectAverageValue":
		return object(average)
	case "externalValue":
		return external(value)
	case "externalAverageValue":
		return external(average)
	}
	return autoscalingv2.MetricSpec{}
}

type vectorProposal struct {
	Error       bool
	Replicas    int32
	Usage       int64
	Utilization *int32
}

type vectorPod struct {
	Name, Namespace string
	Labels          map[string]string
	Phase           cluster.Phase
	Terminating     bool
	StartTime       *int64
	Ready           *struct {
		Status             corev1.ConditionStatus
		LastTransitionTime int64
	}
	Resources                  corev1.ResourceRequirements
	Overhead                   corev1.ResourceList
	Containers, InitContainers []corev1.Container
}

// t0 is time zero.
var t0 = time.Unix(1_700_000_000, 0).UTC()

func at(offset int64) time.Time { return t0.Add(time.Duration(offset) * time.Second) }

// selected returns the pods of a namespace that a selector matches.
func selected(pods []vectorPod, namespace, selector string) []PodInput {
	sel, err := labels.Parse(selector)
	if err != nil {
		return nil // the decision reports the error
	}
	var list []PodInput
	for i := range pods {
		p := &pods[i]
		if p.Namespace != "" && p.Namespace != namespace || !sel.Matches(labels.Set(p.Labels)) {
			continue
		}
		list = append(list, p.pod())
	}
	return list
}

func (p *vectorPod) pod() PodInput {
	q := PodInput{
		Name:        p.Name,
		Phase:       p.Phase,
		Terminating: p.Terminating,
		Requests:    requests(p.Resources.Requests),
		Overhead:    requests(p.Overhead),
	}
	if p.StartTime != nil {
		q.Started = at(*p.StartTime)
	}
	if p.Ready != nil {
		q.ReadySince = at(p.Ready.LastTransitionTime)
		q.Ready = map[corev1.ConditionStatus]cluster.Readiness{
			corev1.ConditionTrue: cluster.ReadyTrue, corev1.ConditionFalse: cluster.ReadyFalse, corev1.ConditionUnknown: cluster.ReadyUnknown,
		}[p.Ready.Status]
	}
	for name := range p.Resources.Requests {
		if name == corev1.ResourceCPU || name == corev1.ResourceMemory || strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) {
			q.PodLevel = true
		}
	}
	for _, c := range p.Containers {
		q.Containers = append(q.Containers, ContainerInput{c.Name, cluster.Regular, requests(c.Resources.Requests)})
	}
	for _, c := range p.InitContainers {
		role := cluster.Init
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			role = cluster.Sidecar
		}
		q.Containers = append(q.Containers, ContainerInput{c.Name, role, requests(c.Resources.Requests)})
	}
	return q
}

func requests(list corev1.ResourceList) Requests {
	amount := func(name corev1.ResourceName) MilliQuantity {
		q, set := list[name]
		return MilliQuantity{q.MilliValue(), set}
	}
	return Requests{CPU: amount(corev1.ResourceCPU), Memory: amount(corev1.ResourceMemory)}
}

// vectorMetrics has the answers of the metrics APIs. An API without an entry for a request returns
// an error.
type vectorMetrics struct {
	Resource *struct {
		Error bool
		Items []struct {
			Pod               string
			Timestamp, Window int64
			Containers        []struct {
				Name  string
				Usage corev1.ResourceList
			}
		}
	}
	Pods []struct {
		Metric autoscalingv2.MetricIdentifier
		Error  bool
		Items  []struct {
			Pod       string
			Timestamp int64
			Window    *int64
			Value     resource.Quantity
		}
	}
	Object []struct {
		Metric          autoscalingv2.MetricIdentifier
		DescribedObject autoscalingv2.CrossVersionObjectReference
		Error           bool
		Timestamp       int64
		Value           resource.Quantity
	}
	External []struct {
		Metric autoscalingv2.MetricIdentifier
		Error  bool
		Items  []struct {
			Timestamp int64
			Value     resource.Quantity
		}
	}
}

var errAPI = errors.New("the metrics API answers with an error")

func (v *vectorMetrics) read(spec *autoscalingv2.MetricSpec) Reading {
	switch spec.Type {
	case autoscalingv2.ResourceMetricSourceType:
		return v.resource(spec.Resource.Name, "")
	case autoscalingv2.ContainerResourceMetricSourceType:
		return v.resource(spec.ContainerResource.Name, spec.ContainerResource.Container)
	case autoscalingv2.PodsMetricSourceType:
		return v.pods(&spec.Pods.Metric)
	case autoscalingv2.ObjectMetricSourceType:
		return v.object(spec.Object)
	default:
		return v.external(&spec.External.Metric)
	}
}

func (v *vectorMetrics) resource(name corev1.ResourceName, container string) Reading {
	if v.Resource == nil || v.Resource.Error || len(v.Resource.Items) == 0 {
		return Reading{Err: errAPI}
	}
	r := Reading{At: at(v.Resource.Items[0].Timestamp)}
	for _, item := range v.Resource.Items {
		s := PodSample{Pod: item.Pod, At: at(item.Timestamp), Window: time.Duration(item.Window) * time.Second}
		found := container == "" && len(item.Containers) > 0
		for _, c := range item.Containers {
			if container != "" && c.Name != container {
				continue
			}
			q, ok := c.Usage[name]
			if found = ok; !ok {
				break
			}
			s.Milli += q.MilliValue()
			if container != "" {
				break
			}
		}
		if found {
			r.Samples = append(r.Samples, s)
		}
	}
	return r
}

func (v *vectorMetrics) pods(id *autoscalingv2.MetricIdentifier) Reading {
	for _, m := range v.Pods {
		if !equality.Semantic.DeepEqual(&m.Metric, id) || m.Error || len(m.Items) == 0 {
			continue
		}
		r := Reading{At: at(m.Items[0].Timestamp)}
		for _, item := range m.Items {
			window := time.Minute
			if item.Window != nil {
				window = time.Duration(*item.Window) * time.Second
			}
			r.Samples = append(r.Samples, PodSample{item.Pod, item.Value.MilliValue(), at(item.Timestamp), window})
		}
		return r
	}
	return Reading{Err: errAPI}
}

func (v *vectorMetrics) object(spec *autoscalingv2.ObjectMetricSource) Reading {
	groupKind := func(r autoscalingv2.CrossVersionObjectReference) schema.GroupKind {
		return schema.FromAPIVersionAndKind(r.APIVersion, r.Kind).GroupKind()
	}
	want := groupKind(spec.DescribedObject)
	for _, m := range v.Object {
		// An object of kind Namespace is always the autoscaler's own namespace; its name is ignored.
		same := groupKind(m.DescribedObject) == want &&
			(m.DescribedObject.Name == spec.DescribedObject.Name || want == schema.GroupKind{Kind: "Namespace"})
		if same && equality.Semantic.DeepEqual(m.Metric, spec.Metric) && !m.Error {
			return Reading{At: at(m.Timestamp), Values: []int64{m.Value.MilliValue()}}
		}
	}
	return Reading{Err: errAPI}
}

func (v *vectorMetrics) external(id *autoscalingv2.MetricIdentifier) Reading {
	for _, m := range v.External {
		if !equality.Semantic.DeepEqual(&m.Metric, id) || m.Error || len(m.Items) == 0 {
			continue
		}
		r := Reading{At: at(m.Items[0].Timestamp)}
		for _, item := range m.Items {
			r.Values = append(r.Values, item.Value.MilliValue())
		}
		return r
	}
	return Reading{Err: errAPI}
}

// vectorFaults are the faults in one step.
type vectorFaults struct {
	ScaleLookup           string
	PodList               bool
	ScaleUpdate           []string // the answers to the attempts: conflict or other
	ScaleRefreshError     bool
	RefreshedSpecReplicas *int32
	StatusUpdate          bool
}

// vectorStep is a step. If one of the five keys of the input is absent, its value is that of the
// step before.
type vectorStep struct {
	At     int64
	Action string // reconcile, delete, restart

	Spec   *autoscalingv2.HorizontalPodAutoscalerSpec
	Target *struct {
		SpecReplicas, StatusReplicas int32
		Selector                     string
	}
	OtherHPAs *[]struct{ Namespace, Name, Selector string }
	Pods      *[]vectorPod
	Metrics   *vectorMetrics

	Faults   vectorFaults
	Expected vectorOutcome
}

type vectorOutcome struct {
	Error               bool
	Rescaled            bool
	DesiredReplicas     int32
	ScaleUpdateAttempts int
	StatusWrite         string
	Status              vectorStatus
	Events              []vectorEvent
	// Upstream has internal values of Kubernetes' controller.
	Upstream struct {
		RescaleReason string
		Proposals     []struct {
			Error    bool
			Replicas int32
		}
		Recommendations [][2]int64
		ScaleUpEvents   [][2]int64
		ScaleDownEvents [][2]int64
	}
}

type vectorEvent struct{ Type, Reason string }

type vectorStatus struct {
	CurrentReplicas, DesiredReplicas int32
	LastScaleTime                    *int64
	Conditions                       []vectorCondition
	CurrentMetrics                   []autoscalingv2.MetricStatus
}

type vectorCondition struct {
	Type, Status, Reason string
	LastTransitionTime   int64
}

func (v *vectorStatus) status() autoscalingv2.HorizontalPodAutoscalerStatus {
	var s autoscalingv2.HorizontalPodAutoscalerStatus
	if v == nil {
		return s
	}
	s.CurrentReplicas, s.DesiredReplicas, s.CurrentMetrics = v.CurrentReplicas, v.DesiredReplicas, v.CurrentMetrics
	if v.LastScaleTime != nil {
		s.LastScaleTime = new(metav1.NewTime(at(*v.LastScaleTime)))
	}
	for _, c := range v.Conditions {
		s.Conditions = append(s.Conditions, autoscalingv2.HorizontalPodAutoscalerCondition{
			Type:               autoscalingv2.HorizontalPodAutoscalerConditionType(c.Type),
			Status:             corev1.ConditionStatus(c.Status),
			Reason:             c.Reason,
			LastTransitionTime: metav1.NewTime(at(c.LastTransitionTime)),
		})
	}
	return s
}
