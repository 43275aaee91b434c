// Package evaluate computes what a specification would do with the current pods and metrics, or
// with those of an earlier time in weir's history. It only reads.
package evaluate

import (
	"context"
	"errors"
	"fmt"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/autoscaler/decisionreport"
	"github.com/weir-metrics/weir/autoscaler/scaleclient"
	"github.com/weir-metrics/weir/cluster/gates"
)

// PodMetrics provides the pods and metrics of one time. *podmetrics.Reader implements it.
type PodMetrics interface {
	// Pods returns the pods of a namespace that a selector matches, sorted by name.
	Pods(namespace string, selector labels.Selector) ([]autoscaler.PodInput, error)
	// Readings returns a function that reads the metric spec.Metrics[i].
	Readings(ctx context.Context, namespace string, selector labels.Selector, spec *autoscalingv2.HorizontalPodAutoscalerSpec, pods []autoscaler.PodInput) func(i int) autoscaler.Reading
	// Verdicts returns a function that explains why a pod has no number for the metric spec.Metrics[i].
	Verdicts(namespace string, spec *autoscalingv2.HorizontalPodAutoscalerSpec) func(i int, pod string) (decisionreport.PodVerdict, bool)
}

// Evaluator evaluates specifications. It is safe for concurrent use.
type Evaluator struct {
	// PodMetrics provides the current pods and metrics. Required.
	PodMetrics PodMetrics
	// PodMetricsAt provides pods and metrics of an earlier time. Its error has the earliest possible
	// time. It is nil if there is no history.
	PodMetricsAt func(at time.Time) (PodMetrics, error)
	// Scales reads the scale of the target. Required.
	Scales scaleclient.ScaleReader
	// Settings returns the settings of a decision, and the feature gates that they follow, for its
	// report. The gates may be nil. What it returns must not change later. Default:
	// autoscaler.DefaultSettings, without gates.
	Settings func() (*autoscaler.Settings, *gates.Gates)
	// Now returns the current time. Default time.Now.
	Now func() time.Time
}

// Options has assumptions. The zero Options assumes nothing.
type Options struct {
	// At is an earlier time within weir's history; zero means now.
	At time.Time
	// Replicas replaces the target's current count.
	Replicas *int32
	// Memory is the memory after earlier decisions. If it is nil, stabilization windows and policies
	// have no effect.
	Memory *autoscaler.Memory
	// Status is the last written status. It reports whether the autoscaler scaled the target to zero.
	Status *autoscalingv2.HorizontalPodAutoscalerStatus
}

// ErrTimeUnknown is the error for a time for which weir has no data.
var ErrTimeUnknown = errors.New("weir has no data of that time")

// EvaluatedDecision is a decision with what its report needs, but for the kind of the autoscaler.
type EvaluatedDecision struct {
	Decision *autoscaler.Decision
	decisionreport.Context
}

// Evaluate decides what spec would do with its target in the namespace of object. spec must have
// its defaults. If the target or a metric cannot be read, the decision reports that. The error is
// ErrTimeUnknown or the error of ctx.
func (e *Evaluator) Evaluate(ctx context.Context, object types.NamespacedName, spec *autoscalingv2.HorizontalPodAutoscalerSpec, o Options) (*EvaluatedDecision, error) {
	source, now, notes, err := e.podMetrics(o)
	if err != nil {
		return nil, err
	}
	defaults := autoscaler.DefaultSettings()
	settings, featureGates := &defaults, (*gates.Gates)(nil)
	if e.Settings != nil {
		settings, featureGates = e.Settings()
	}
	in := &autoscaler.Input{Now: now, Settings: settings, Object: object, Spec: spec, Status: o.Status}
	res := &EvaluatedDecision{Context: decisionreport.Context{Input: in, NoMemory: o.Memory == nil, Notes: notes, Gates: featureGates}}
	e.fillInput(ctx, source, in, o)
	if o.Memory != nil {
		in.Memory = *o.Memory
	} else {
		// Without a recommendation the current count would count as one, and no specification could scale
		// down.
		in.Memory.Recommendations = []autoscaler.ReplicaRecommendation{{Replicas: in.Scale.SpecReplicas, At: time.Unix(0, 0)}}
	}
	res.Verdict = source.Verdicts(object.Namespace, spec)
	res.Decision = autoscaler.Decide(in)
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("evaluate %s: %w", object, err)
	}
	return res, nil
}

// notScaled returns a note if Kubernetes' controller does not scale because other HPAs have pods of the target, too. This
// one's specification does not show them.
func notScaled(status *autoscalingv2.HorizontalPodAutoscalerStatus) (notes []string) {
	if status == nil {
		return nil
	}
	for _, c := range status.Conditions {
		if c.Type == autoscalingv2.ScalingActive && c.Status == corev1.ConditionFalse && c.Reason == "AmbiguousSelector" {
			notes = append(notes, "Kubernetes' controller does not scale it: "+c.Message)
		}
	}
	return notes
}

// podMetrics returns the pods and metrics of the requested time.
func (e *Evaluator) podMetrics(o Options) (source PodMetrics, now time.Time, notes []string, err error) {
	now = time.Now()
	if e.Now != nil {
		now = e.Now()
	}
	switch {
	case o.At.IsZero():
		return e.PodMetrics, now, notScaled(o.Status), nil
	case o.At.After(now):
		return nil, now, nil, fmt.Errorf("%w: %s is in the future", ErrTimeUnknown, o.At.UTC().Format(time.RFC3339))
	case e.PodMetricsAt == nil:
		return nil, now, nil, fmt.Errorf("%w: weir keeps no history here", ErrTimeUnknown)
	}
	if source, err = e.PodMetricsAt(o.At); err != nil {
		return nil, now, nil, fmt.Errorf("%w: %w", ErrTimeUnknown, err)
	}
	if o.Replicas == nil {
		notes = append(notes, "The number of replicas is the current one; use --replicas to set the one of that time.")
	}
	return source, o.At, notes, nil
}

// fillInput reads the target, its pods and its metrics into in.
func (e *Evaluator) fillInput(ctx context.Context, source PodMetrics, in *autoscaler.Input, o Options) {
	in.Scale, _, in.ScaleErr = e.Scales.Get(ctx, in.Object.Namespace, in.Spec.ScaleTargetRef)
	if in.ScaleErr != nil {
		return
	}
	if o.Replicas != nil {
		in.Scale.SpecReplicas, in.Scale.StatusReplicas = *o.Replicas, *o.Replicas
	}
	selector, err := scaleclient.Selector(in.Scale.Selector)
	if err != nil {
		in.PodsErr = err
		return
	}
	if in.Pods, in.PodsErr = source.Pods(in.Object.Namespace, selector); in.PodsErr == nil {
		in.Overlapping = []types.NamespacedName{in.Object}
		in.ReadMetric = source.Readings(ctx, in.Object.Namespace, selector, in.Spec, in.Pods)
	}
}
