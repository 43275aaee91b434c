package decisionreport

import (
	"fmt"
	"slices"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"

	"github.com/weir-metrics/weir/autoscaler"
)

// teller tells one decision.
type teller struct {
	*autoscaler.Decision
	Context
	pods map[string]*autoscaler.Pod // by name
}

func newTeller(d *autoscaler.Decision, c Context) *teller {
	t := &teller{Decision: d, Context: c, pods: map[string]*autoscaler.Pod{}}
	if in := c.Input; in != nil {
		for i := range in.Pods {
			t.pods[in.Pods[i].Name] = &in.Pods[i]
		}
		if in.Spec != nil && t.Max == 0 {
			t.Max, t.Min = in.Spec.MaxReplicas, 1
			if in.Spec.MinReplicas != nil {
				t.Min = *in.Spec.MinReplicas
			}
		}
		if in.Spec != nil && t.Target == "" {
			t.Target = in.Spec.ScaleTargetRef.Kind + "/" + in.Spec.ScaleTargetRef.Name
		}
	}
	return t
}

// Of tells a decision.
func Of(d *autoscaler.Decision, c Context) *Report {
	t := newTeller(d, c)
	r := &Report{
		Autoscaler: Object{c.Kind, d.Object.Namespace, d.Object.Name}, At: d.At.UTC(), Mode: c.Mode, Target: t.Target,
		Current: d.Current, Desired: d.Desired, Min: t.Min, Max: t.Max, Rescale: d.Rescale, Because: d.Because,
		Metrics: []Metric{}, Steps: []Step{}, Other: c.Other,
	}
	if d.Err != nil {
		r.Error = d.Err.Error()
	}
	if c.Write != nil {
		r.WriteError = c.Write.Error()
	}
	for i := range d.Metrics {
		r.Metrics = append(r.Metrics, t.metric(&d.Metrics[i], i == d.Chosen))
	}
	for i := range d.Steps {
		r.Steps = append(r.Steps, t.step(&d.Steps[i]))
	}
	r.Missing = t.missing()
	r.Next = t.next()
	r.Notes = t.notes()
	r.Summary = t.summary(r.Missing)
	return r
}

// spec returns the specification of a metric; nil if it is not known.
func (t *teller) spec(i int) *autoscalingv2.MetricSpec {
	if t.Input == nil || t.Input.Spec == nil || i < 0 || i >= len(t.Input.Spec.Metrics) {
		return nil
	}
	return &t.Input.Spec.Metrics[i]
}

// notes are what a reader must know besides.
func (t *teller) notes() []string {
	notes := slices.Clone(t.Notes)
	if t.Forgetful && len(t.Metrics) > 0 {
		notes = append(notes, "No earlier decision is remembered here, so no stabilization window and no policy held anything back.")
	}
	if t.Input != nil && len(t.Input.Rivals) > 1 {
		var names []string
		for _, r := range t.Input.Rivals {
			if r != t.Object {
				names = append(names, r.String())
			}
		}
		notes = append(notes, fmt.Sprintf("The pods are those of %s too: only one autoscaler can scale them.", strings.Join(names, ", ")))
	}
	return notes
}
