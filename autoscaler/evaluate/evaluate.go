package evaluate

import (
	"context"
	"errors"
	"fmt"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/autoscaler/decisionreport"
	"github.com/weir-metrics/weir/autoscaler/target"
)

// Live is what there is at a moment. *live.Live is one.
type Live interface {
	// Pods returns the pods of a namespace that a selector matches, by name.
	Pods(namespace string, selector labels.Selector) ([]autoscaler.Pod, error)
	// Readings returns what the metric spec.Metrics[i] is.
	Readings(ctx context.Context, now time.Time, namespace string, selector labels.Selector, spec *autoscalingv2.HorizontalPodAutoscalerSpec, pods []autoscaler.Pod) func(i int) autoscaler.Reading
	// Verdicts returns why a pod has no number of the metric spec.Metrics[i].
	Verdicts(namespace string, spec *autoscalingv2.HorizontalPodAutoscalerSpec) func(i int, pod string) (decisionreport.Verdict, bool)
}

// Scales reads scales. target.Scales is one; nothing is ever written.
type Scales interface {
	Get(ctx context.Context, namespace string, ref autoscalingv2.CrossVersionObjectReference) (autoscaler.Scale, *target.Handle, error)
}

// Evaluator evaluates specifications. It may be used by several goroutines.
type Evaluator struct {
	// Live is what there is now. Required.
	Live Live
	// Past returns what there was at an earlier time; its error says how far back
	// one can ask. Nil where only the present is known.
	Past func(at time.Time) (Live, error)
	// Scales reads the target. Required.
	Scales Scales
	// Settings hold for all autoscalers. Default autoscaler.DefaultSettings.
	Settings *autoscaler.Settings
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// Options are what to assume. The zero Options assume nothing.
type Options struct {
	// At is an earlier time, within what memory holds; now if zero.
	At time.Time
	// Replicas stands for the target's present count.
	Replicas *int32
	// Memory is what was remembered after earlier decisions. Nil for none: then no
	// stabilization window and no policy holds anything back.
	Memory *autoscaler.Memory
	// Status is the one last written, which tells whether a target was scaled to
	// zero.
	Status *autoscalingv2.HorizontalPodAutoscalerStatus
}

// ErrTime is that of a time of which nothing can be told.
var ErrTime = errors.New("nothing is known of that time")

// Result is an evaluation: the decision, and what it was made of.
type Result struct {
	Decision *autoscaler.Decision
	Input    *autoscaler.Input
	// Verdict says why a pod has no number; see report.Context.
	Verdict func(i int, pod string) (decisionreport.Verdict, bool)
	// Forgetful says that no earlier decision was remembered.
	Forgetful bool
	// Notes say what was assumed.
	Notes []string
}

// Evaluate decides what spec, with its defaults filled in, would do with its target
// in the namespace of object. That a target or a metric cannot be read is a decision
// that says so. Errors are of the question: ErrTime, or what ended ctx.
func (e *Evaluator) Evaluate(ctx context.Context, object types.NamespacedName, spec *autoscalingv2.HorizontalPodAutoscalerSpec, o Options) (*Result, error) {
	live, now, notes, err := e.moment(o)
	if err != nil {
		return nil, err
	}
	settings := e.Settings
	if settings == nil {
		defaults := autoscaler.DefaultSettings()
		settings = &defaults
	}
	in := &autoscaler.Input{Now: now, Settings: settings, Object: object, Spec: spec, Status: o.Status, Read: unread}
	if in.Status == nil {
		in.Status = &autoscalingv2.HorizontalPodAutoscalerStatus{}
	}
	res := &Result{Input: in, Forgetful: o.Memory == nil, Notes: notes}
	e.fill(ctx, live, in, o)
	if o.Memory != nil {
		in.Memory = *o.Memory
	} else {
		// Without any recommendation the present count would be taken for one, and
		// no specification would ever scale down.
		in.Memory.Recommendations = []autoscaler.Recommendation{{Replicas: in.Scale.Spec, At: time.Unix(0, 0)}}
	}
	res.Verdict = live.Verdicts(object.Namespace, spec)
	res.Decision = autoscaler.Decide(in)
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("evaluate %s: %w", object, err)
	}
	return res, nil
}

// unread is the reading of a metric of a target that cannot be read itself.
func unread(int) autoscaler.Reading {
	return autoscaler.Reading{Err: errors.New("the target was not read")}
}

// moment returns what there is at the time that is asked about.
func (e *Evaluator) moment(o Options) (live Live, now time.Time, notes []string, err error) {
	now = time.Now()
	if e.Now != nil {
		now = e.Now()
	}
	switch {
	case o.At.IsZero():
		return e.Live, now, nil, nil
	case o.At.After(now):
		return nil, now, nil, fmt.Errorf("%w: %s lies ahead", ErrTime, o.At.UTC().Format(time.RFC3339))
	case e.Past == nil:
		return nil, now, nil, fmt.Errorf("%w: only the present is remembered", ErrTime)
	}
	if live, err = e.Past(o.At); err != nil {
		return nil, now, nil, fmt.Errorf("%w: %w", ErrTime, err)
	}
	if o.Replicas == nil {
		notes = append(notes, "The count of replicas is that of now: --replicas gives that of then.")
	}
	return live, o.At, notes, nil
}

// fill reads the target, its pods and its metrics into in.
func (e *Evaluator) fill(ctx context.Context, live Live, in *autoscaler.Input, o Options) {
	in.Scale, _, in.ScaleErr = e.Scales.Get(ctx, in.Object.Namespace, in.Spec.ScaleTargetRef)
	if in.ScaleErr != nil {
		return
	}
	if o.Replicas != nil {
		in.Scale.Spec, in.Scale.Status = *o.Replicas, *o.Replicas
	}
	selector, err := target.Selector(in.Scale.Selector)
	if err != nil {
		in.PodsErr = err
		return
	}
	if in.Pods, in.PodsErr = live.Pods(in.Object.Namespace, selector); in.PodsErr == nil {
		in.Rivals = []types.NamespacedName{in.Object}
		in.Read = live.Readings(ctx, in.Now, in.Object.Namespace, selector, in.Spec, in.Pods)
	}
}

// Report tells the result of an evaluation of a kind of autoscaler.
func (r *Result) Report(kind string) *decisionreport.Report {
	return decisionreport.Of(r.Decision, decisionreport.Context{Kind: kind, Input: r.Input, Verdict: r.Verdict, Forgetful: r.Forgetful, Notes: r.Notes})
}
