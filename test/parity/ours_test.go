package parity

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	resourcehelpers "k8s.io/component-helpers/resource"

	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/cluster"
)

// self is the autoscaler under test.
var self = types.NamespacedName{Namespace: namespace, Name: name}

// input returns a test input as the input of weir's autoscaler.
func (w *testInput) input(now time.Time, settings *autoscaler.Settings, spec *autoscalingv2.HorizontalPodAutoscalerSpec,
	status *autoscalingv2.HorizontalPodAutoscalerStatus, target autoscaler.Scale) *autoscaler.Input {
	in := &autoscaler.Input{
		Now: now, Settings: settings, Object: self, Spec: spec, Status: status, Scale: target,
		Overlapping: []types.NamespacedName{self},
		ReadMetric:  func(i int) autoscaler.Reading { return w.read(&spec.Metrics[i]) },
	}
	selector, err := labels.Parse(target.Selector)
	switch {
	case err != nil || target.Selector == "":
		// Decide parses the selector itself, and gets the same result.
	case w.PodsFail:
		in.PodsErr = errAPI
	default:
		in.Pods = w.pods(selector)
	}
	return in
}

// pods returns the pods of the namespace that a selector matches, by name.
func (w *testInput) pods(selector labels.Selector) (pods []autoscaler.PodInput) {
	for _, pod := range w.Pods {
		if pod.Namespace == namespace && selector.Matches(labels.Set(pod.Labels)) {
			pods = append(pods, podOf(pod))
		}
	}
	slices.SortFunc(pods, func(a, b autoscaler.PodInput) int { return strings.Compare(a.Name, b.Name) })
	return pods
}

func podOf(pod *corev1.Pod) autoscaler.PodInput {
	p := autoscaler.PodInput{
		Name: pod.Name, Phase: cluster.Phase(pod.Status.Phase), Terminating: pod.DeletionTimestamp != nil,
		Overhead: requestsOf(pod.Spec.Overhead), PodLevel: resourcehelpers.IsPodLevelRequestsSet(pod),
	}
	if pod.Status.StartTime != nil {
		p.Started = pod.Status.StartTime.Time
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			p.ReadySince = c.LastTransitionTime.Time
			p.Ready = map[corev1.ConditionStatus]cluster.Readiness{
				corev1.ConditionTrue: cluster.ReadyTrue, corev1.ConditionFalse: cluster.ReadyFalse, corev1.ConditionUnknown: cluster.ReadyUnknown,
			}[c.Status]
		}
	}
	if r := pod.Spec.Resources; r != nil {
		p.Requests = requestsOf(r.Requests)
	}
	for _, c := range pod.Spec.Containers {
		p.Containers = append(p.Containers, autoscaler.ContainerInput{Name: c.Name, Role: cluster.Regular, Requests: requestsOf(c.Resources.Requests)})
	}
	for _, c := range pod.Spec.InitContainers {
		role := cluster.Init
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			role = cluster.Sidecar
		}
		p.Containers = append(p.Containers, autoscaler.ContainerInput{Name: c.Name, Role: role, Requests: requestsOf(c.Resources.Requests)})
	}
	return p
}

func requestsOf(list corev1.ResourceList) (r autoscaler.Requests) {
	amount := func(name corev1.ResourceName) (a autoscaler.MilliQuantity) {
		if q, ok := list[name]; ok {
			a = autoscaler.MilliQuantity{Milli: q.MilliValue(), Set: true}
		}
		return a
	}
	return autoscaler.Requests{CPU: amount(corev1.ResourceCPU), Memory: amount(corev1.ResourceMemory)}
}

var errEmpty = errors.New("the metrics API returned no metrics")

// read returns the reading of one metric, as from the metrics APIs.
func (w *testInput) read(m *autoscalingv2.MetricSpec) (r autoscaler.Reading) {
	selector := func(id autoscalingv2.MetricIdentifier) error {
		_, err := metav1.LabelSelectorAsSelector(id.Selector)
		return err
	}
	switch m.Type {
	case autoscalingv2.ResourceMetricSourceType:
		return w.readResource(m.Resource.Name, "")
	case autoscalingv2.ContainerResourceMetricSourceType:
		return w.readResource(m.ContainerResource.Name, m.ContainerResource.Container)
	case autoscalingv2.PodsMetricSourceType:
		items, ok := w.Custom[m.Pods.Metric.Name]
		if r.Err = noReading(selector(m.Pods.Metric), ok, len(items)); r.Err != nil {
			return r
		}
		for _, item := range items {
			s := autoscaler.PodSample{Pod: item.DescribedObject.Name, Milli: item.Value.MilliValue(), At: item.Timestamp.Time, Window: time.Minute}
			if item.WindowSeconds != nil {
				s.Window = time.Duration(*item.WindowSeconds) * time.Second
			}
			r.Samples = append(r.Samples, s) // if a pod occurs twice, Decide uses the later one
		}
		r.At = items[0].Timestamp.Time
	case autoscalingv2.ObjectMetricSourceType:
		value, ok := w.Object[m.Object.Metric.Name]
		if r.Err = noReading(selector(m.Object.Metric), ok, 1); r.Err != nil {
			return r
		}
		r.Values, r.At = []int64{value.Value.MilliValue()}, value.Timestamp.Time
	case autoscalingv2.ExternalMetricSourceType:
		items, ok := w.External[m.External.Metric.Name]
		if r.Err = noReading(selector(m.External.Metric), ok, len(items)); r.Err != nil {
			return r
		}
		for _, item := range items {
			r.Values = append(r.Values, item.Value.MilliValue())
		}
		r.At = items[0].Timestamp.Time
	default:
		r.Err = fmt.Errorf("no such metric source: %s", m.Type)
	}
	return r
}

// noReading returns the reason why there is no reading, or nil.
func noReading(selector error, answered bool, items int) error {
	switch {
	case selector != nil:
		return selector
	case !answered:
		return errAPI
	case items == 0:
		return errEmpty
	}
	return nil
}

func (w *testInput) readResource(resource corev1.ResourceName, container string) (r autoscaler.Reading) {
	if w.Resource == nil {
		return autoscaler.Reading{Err: errAPI}
	}
	if len(*w.Resource) == 0 {
		return autoscaler.Reading{Err: errEmpty}
	}
	for _, pod := range *w.Resource {
		s := autoscaler.PodSample{Pod: pod.Name, At: pod.Timestamp.Time, Window: pod.Window.Duration}
		complete, found := len(pod.Containers) > 0, container == ""
		for _, c := range pod.Containers {
			if container != "" && (found || c.Name != container) {
				continue
			}
			found = true
			usage, ok := c.Usage[resource]
			complete = complete && ok
			s.Milli += usage.MilliValue()
		}
		if complete && found {
			r.Samples = append(r.Samples, s)
		}
	}
	r.At = (*w.Resource)[0].Timestamp.Time
	return r
}

// ours is weir's autoscaler, with what its controller keeps from one decision
// to the next.
type ours struct {
	memory autoscaler.Memory
	last   *autoscaler.Decision
	reuse  bool   // reuse the memory of the last decision
	broken string // a rule of weir that a decision broke
}

func (o *ours) forget() { o.memory = autoscaler.Memory{} }

// reconcile decides once, and concludes after the write that the step's faults
// allow.
func (o *ours) reconcile(s *step, generation int64, settings *autoscaler.Settings, status *autoscalingv2.HorizontalPodAutoscalerStatus, now time.Time) (outcome, autoscalingv2.HorizontalPodAutoscalerStatus) {
	in := s.Input.input(now, settings, &s.Spec, status, s.Target)
	in.Generation, in.Memory = &generation, o.memory
	switch s.Faults.Scale {
	case "version", "kind", "mappings", "get":
		in.Scale, in.ScaleErr, in.Pods, in.PodsErr = autoscaler.Scale{}, errAPI, nil, nil
	}
	for _, other := range s.Others {
		selector := parse(other.Selector)
		if slices.ContainsFunc(s.Input.Pods, func(p *corev1.Pod) bool {
			return p.Namespace == namespace && other.Namespace == namespace && selector.Matches(labels.Set(p.Labels)) &&
				slices.ContainsFunc(in.Pods, func(ours autoscaler.PodInput) bool { return ours.Name == p.Name })
		}) {
			in.Overlapping = append(in.Overlapping, types.NamespacedName{Namespace: other.Namespace, Name: other.Name})
		}
	}

	if o.last != nil && o.reuse {
		in.Reuse = o.last
	}
	before := given(in)
	d := autoscaler.Decide(in)
	o.last = d
	var result outcome
	var err error
	if d.Rescale {
		const tries = 5 // upstream's retry.DefaultRetry
		for n := range tries {
			result.Updates = append(result.Updates, d.Desired)
			if err = s.Faults.scaleUpdate(n); !apierrors.IsConflict(err) {
				break
			}
		}
	}
	done := d.Conclude(err)
	o.memory = done.Memory
	if after := given(in); before != after {
		o.broken = fmt.Sprintf("Decide changed what it was given:\n  before: %s\n  after:  %s\n", before, after)
	}
	if o.broken == "" {
		o.broken = unlinked(d)
	}
	result.Err, result.Events, result.Memory = done.Err, done.Events, done.Memory
	return result, done.Status
}

// given returns, as text, the parts of the input that a decision must not
// change.
func given(in *autoscaler.Input) string {
	var b strings.Builder
	b.WriteString(printMemory(in.Memory))
	fmt.Fprintf(&b, " %v %+v", in.Status.Conditions, in.Scale)
	if behavior := in.Spec.Behavior; behavior != nil {
		fmt.Fprintf(&b, " %v %v", behavior.ScaleDown.StabilizationWindowSeconds, behavior.ScaleUp.StabilizationWindowSeconds)
	}
	for i := range in.Pods {
		b.WriteString(in.Pods[i].Name)
	}
	return b.String()
}

// unlinked returns how a decision's steps fail to lead from the current number
// of replicas to the desired one, or "".
func unlinked(d *autoscaler.Decision) string {
	if len(d.Steps) == 0 {
		return ""
	}
	from := d.Current
	for i, s := range d.Steps {
		if s.From != from {
			return fmt.Sprintf("step %d, %s, starts from %d, but the one before ended with %d\n", i, stepKinds[s.Kind], s.From, from)
		}
		from = s.To
	}
	if from != d.Desired {
		return fmt.Sprintf("the steps lead to %d, but %d is desired\n", from, d.Desired)
	}
	return ""
}
