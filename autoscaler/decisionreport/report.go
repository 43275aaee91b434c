package decisionreport

import (
	"fmt"
	"slices"
	"strings"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/utils/ptr"

	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/cluster/gates"
)

// reporter builds the report of one decision.
type reporter struct {
	*autoscaler.Decision
	Context
	pods map[string]*autoscaler.PodInput // by name
	// target and the bounds are those of the specification, if it is known.
	target                   string // Deployment/web
	minReplicas, maxReplicas int32
}

func newReporter(d *autoscaler.Decision, c Context) *reporter {
	t := &reporter{Decision: d, Context: c, pods: map[string]*autoscaler.PodInput{}}
	if c.Verdict != nil {
		t.Verdict = lookUpOnce(c.Verdict)
	}
	if in := c.Input; in != nil {
		for i := range in.Pods {
			t.pods[in.Pods[i].Name] = &in.Pods[i]
		}
		if in.Spec != nil {
			t.target = in.Spec.ScaleTargetRef.Kind + "/" + in.Spec.ScaleTargetRef.Name
			t.maxReplicas, t.minReplicas = in.Spec.MaxReplicas, ptr.Deref(in.Spec.MinReplicas, 1)
		}
	}
	return t
}

// lookUpOnce returns a function that calls verdict once for each metric and pod. A verdict may need a query
// of another server, and a report uses it in several places.
func lookUpOnce(verdict func(i int, pod string) (PodVerdict, bool)) func(i int, pod string) (PodVerdict, bool) {
	type key struct {
		metric int
		pod    string
	}
	type result struct {
		verdict PodVerdict
		known   bool
	}
	results := map[key]result{}
	return func(i int, pod string) (PodVerdict, bool) {
		k := key{i, pod}
		r, ok := results[k]
		if !ok {
			r.verdict, r.known = verdict(i, pod)
			results[k] = r
		}
		return r.verdict, r.known
	}
}

// New returns the report of a decision.
func New(d *autoscaler.Decision, c Context) *DecisionReport {
	t := newReporter(d, c)
	r := &DecisionReport{
		Autoscaler: Object{c.Kind, d.Object.Namespace, d.Object.Name}, At: d.At.UTC(), Mode: c.Mode, Target: t.target,
		Current: d.Current, Desired: d.Desired, Min: t.minReplicas, Max: t.maxReplicas, Rescale: d.Rescale, RescaleReason: d.RescaleReason,
		Metrics: []MetricReport{}, Steps: []StepReport{}, OtherController: c.OtherController,
	}
	if d.Err != nil {
		r.Error = d.Err.Error()
	}
	if c.WriteErr != nil {
		r.WriteError = c.WriteErr.Error()
	}
	for i := range d.Metrics {
		r.Metrics = append(r.Metrics, t.metricReport(&d.Metrics[i], i == d.Chosen))
	}
	for i := range d.Steps {
		r.Steps = append(r.Steps, t.stepReport(&d.Steps[i]))
	}
	r.Missing = t.missingCauses()
	r.Next = t.nextChanges()
	r.Notes = t.notes()
	r.Summary = t.summary(r.Missing)
	return r
}

// spec returns the specification of a metric; nil if unknown.
func (re *reporter) spec(i int) *autoscalingv2.MetricSpec {
	if re.Input == nil || re.Input.Spec == nil || i < 0 || i >= len(re.Input.Spec.Metrics) {
		return nil
	}
	return &re.Input.Spec.Metrics[i]
}

// notes returns additional sentences for the reader.
func (re *reporter) notes() []string {
	notes := slices.Clone(re.Notes)
	if re.NoMemory && len(re.Metrics) > 0 {
		notes = append(notes, "No earlier decision is known here, so no stabilization window and no policy limited this one.")
	}
	if re.Input != nil && len(re.Input.Overlapping) > 1 {
		var names []string
		for _, r := range re.Input.Overlapping {
			if r != re.Object {
				names = append(names, r.String())
			}
		}
		notes = append(notes, fmt.Sprintf("%s selects the same pods: only one autoscaler can scale them.", strings.Join(names, ", ")))
	}
	if re.Gates != nil {
		if assumed := re.Gates.Assumed(re.gatesInUse()...); assumed != "" {
			notes = append(notes, assumed)
		}
	}
	return notes
}

// gatesInUse returns the feature gates that the decision depends on.
func (re *reporter) gatesInUse() (list []gates.Gate) {
	in := re.Input
	if in == nil || in.Spec == nil {
		return nil
	}
	if re.Current == 0 || re.minReplicas == 0 {
		list = append(list, gates.ScaleToZero)
	}
	tolerant := func(r *autoscalingv2.HPAScalingRules) bool { return r != nil && r.Tolerance != nil }
	if b := in.Spec.Behavior; b != nil && (tolerant(b.ScaleUp) || tolerant(b.ScaleDown)) {
		list = append(list, gates.ConfigurableTolerance)
	}
	if slices.ContainsFunc(in.Pods, func(p autoscaler.PodInput) bool { return p.PodLevel }) {
		list = append(list, gates.PodLevelResources)
	}
	return list
}

// DecisionSummary is a decision in one line, for use in lists.
type DecisionSummary struct {
	Object
	Mode    string // Active, DryRun or Shadow
	Target  string
	At      time.Time
	Current int32
	Desired int32
	Min     int32
	Max     int32
	Summary string
	// FailedMetrics are the names of the metrics that failed. PodsMissing is the number of pods
	// without a number for some metric.
	FailedMetrics   []string
	PodsMissing     int
	NoDecision      bool             // an error prevented a decision
	OtherController *OtherController // set for an object that weir shadows
}

// Summarize returns the summary of a decision.
func Summarize(d *autoscaler.Decision, c Context) DecisionSummary {
	t := newReporter(d, c)
	missing := t.missingCauses()
	b := DecisionSummary{
		Object: Object{c.Kind, d.Object.Namespace, d.Object.Name}, Mode: c.Mode, Target: t.target, At: d.At,
		Current: d.Current, Desired: d.Desired, Min: t.minReplicas, Max: t.maxReplicas,
		Summary: t.summary(missing), NoDecision: t.undecided(), OtherController: c.OtherController,
	}
	for i := range d.Metrics {
		if d.Metrics[i].Err != nil {
			b.FailedMetrics = append(b.FailedMetrics, d.Metrics[i].Name)
		}
	}
	podsMissing := map[string]bool{}
	for i := range missing {
		for _, pod := range missing[i].Pods {
			podsMissing[pod] = true
		}
	}
	b.PodsMissing = len(podsMissing)
	return b
}
