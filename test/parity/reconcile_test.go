package parity

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/weir-metrics/weir/autoscaler"
)

// TestReconcile compares upstream's controller with weir's decisions over the
// lives of autoscalers.
func TestReconcile(t *testing.T) {
	up := newUpstream(t.Context())
	run(t, func(t *testing.T, number uint64, gates autoscaler.Settings, seen coverage) (difference string) {
		var q *sequence
		synctest.Test(t, func(*testing.T) {
			var p *plot
			q, p = newPlot(newRandom(*seed, number), time.Now(), gates)
			difference = guarded(func() string { return q.play(up, p.next, seen) })
		})
		if difference == "" {
			return ""
		}
		again := func(q *sequence) (difference string) {
			synctest.Test(t, func(*testing.T) { difference = guarded(func() string { return q.replay(up) }) })
			return difference
		}
		q = shrink(q, func(q *sequence) bool { return again(q) != "" })
		return fmt.Sprintf("%s\n%s", again(q), q)
	}, reconcileBranches)
}

// play plays each step that next returns and appends it to q.Steps. It returns
// the first difference, or "".
func (q *sequence) play(u *upstream, next func(last *outcome, fell *faults) (step, bool), seen coverage) string {
	u.configure(q.Config)
	u.forget()
	o := ours{reuse: q.Reuse}
	settings := q.Config.Settings
	theirs, mine := *q.Status.DeepCopy(), *q.Status.DeepCopy()
	var last *outcome
	var fell faults
	var spec autoscalingv2.HorizontalPodAutoscalerSpec
	var generation int64 // changes with the specification
	for {
		s, ok := next(last, &fell)
		if !ok {
			return ""
		}
		q.Steps = append(q.Steps, s)
		time.Sleep(s.After)
		switch s.Action {
		case deletion:
			theirs, mine = autoscalingv2.HorizontalPodAutoscalerStatus{}, autoscalingv2.HorizontalPodAutoscalerStatus{}
			fallthrough
		case restart:
			seen.add("action: " + string(s.Action))
			u.forget()
			o.forget()
			continue
		}
		before := o.memory
		if generation == 0 || !equality.Semantic.DeepEqual(&spec, &s.Spec) {
			spec = s.Spec
			generation++
		}
		want := u.reconcile(&s, generation, &theirs)
		got, status := o.reconcile(&s, generation, &settings, &mine, time.Now())
		seen.step(&s, &before, &o, &want)
		if d := differ(&s, &want, &got, &theirs, &status) + o.broken; d != "" {
			return fmt.Sprintf("step %d differs:\n%s", len(q.Steps), d)
		}
		if !s.Faults.Status {
			if want.Status != nil {
				theirs = *want.Status
			}
			if !equality.Semantic.DeepEqual(&mine, &status) {
				mine = *stored(&status)
			}
		}
		last, fell = &want, s.Faults
	}
}

// replay plays the steps of the sequence again.
func (q *sequence) replay(u *upstream) string {
	steps := q.Steps
	again := *q
	again.Steps = nil
	return again.play(u, func(*outcome, *faults) (s step, ok bool) {
		if len(steps) == 0 {
			return s, false
		}
		s, steps = steps[0], steps[1:]
		return s, true
	}, coverage{})
}

// differ returns the difference between two outcomes of a step, or "". was is
// the status before the step.
func differ(s *step, want, got *outcome, was, status *autoscalingv2.HorizontalPodAutoscalerStatus) string {
	var b strings.Builder
	note := func(what string, want, got any) {
		fmt.Fprintf(&b, "%s:\n  upstream: %v\n  weir:     %v\n", what, want, got)
	}
	// A failed update of the status is reported by the controller, not by Decide.
	if statusFailed := s.Faults.Status && want.Status != nil; !statusFailed && (want.Err == nil) != (got.Err == nil) {
		note("error", want.Err, got.Err)
	}
	if !slices.Equal(want.Updates, got.Updates) {
		note("updates of the scale", want.Updates, got.Updates)
	}
	wanted := want.Status
	if wanted == nil {
		wanted = was
	}
	if x, y := wordless(wanted), wordless(status); !equality.Semantic.DeepEqual(x, y) {
		note("status", printStatus(x), printStatus(y))
	}
	if x, y := eventsOf(want), eventsOf(got); !slices.Equal(x, y) {
		note("events", x, y)
	}
	if x, y := printMemory(want.Memory), printMemory(got.Memory); x != y {
		note("memory", x, y)
	}
	return b.String()
}

// wordless returns a status as it is stored, without free text.
func wordless(status *autoscalingv2.HorizontalPodAutoscalerStatus) *autoscalingv2.HorizontalPodAutoscalerStatus {
	s := stored(status)
	for i := range s.Conditions {
		s.Conditions[i].Message = ""
	}
	return s
}

// eventsOf returns the events of a step. The text of errors is free; the text
// about the scale is not. A failed update of the status is reported by the
// controller, not by Decide.
func eventsOf(o *outcome) (list []string) {
	for _, e := range o.Events {
		if e.Reason == "FailedUpdateStatus" {
			continue
		}
		line := e.Type + " " + e.Reason
		if strings.HasSuffix(e.Reason, "Rescale") {
			message, _, _ := strings.Cut(e.Message, "; error:")
			line += ": " + message
		}
		list = append(list, line)
	}
	return list
}
