package parity

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/weir-metrics/weir/autoscaler"
)

// Printed cases contain times as offsets from the start of the case.

func epoch() time.Time { return time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) }

func offset(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.Sub(epoch()).String()
}

func compact(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func (c config) String() string {
	return fmt.Sprintf("tolerance %v, down after %v, CPU initialization %v, readiness delay %v, gates: ConfigurableTolerance=%v ScaleToZero=%v PodLevelResources=%v",
		c.Tolerance, c.DownscaleStabilization, c.CPUInitialization, c.InitialReadinessDelay, c.ConfigurableTolerance, c.ScaleToZero, c.PodLevelResources)
}

func (c *call) String() string {
	return fmt.Sprintf("the case, made smaller:\n  %v\n  now 0s, current %d, selector %q\n  metric %s\n  behavior %s\n%v",
		c.Config, c.Current, c.Selector, compact(c.Metric), compact(c.Behavior), &c.Input)
}

func (w *testInput) String() string {
	var b strings.Builder
	for _, p := range w.Pods {
		fmt.Fprintf(&b, "  pod %s\n", printPod(p))
	}
	if w.PodsFail {
		b.WriteString("  pods cannot be listed\n")
	}
	if w.Resource == nil {
		b.WriteString("  metrics.k8s.io fails\n")
	} else {
		for _, item := range *w.Resource {
			fmt.Fprintf(&b, "  metrics.k8s.io %s at %s over %s:", item.Name, offset(item.Timestamp.Time), item.Window.Duration)
			for _, c := range item.Containers {
				fmt.Fprintf(&b, " %s%s", c.Name, printList(c.Usage))
			}
			b.WriteString("\n")
		}
	}
	for name, items := range w.Custom {
		for _, item := range items {
			fmt.Fprintf(&b, "  custom %s of %s at %s: %s\n", name, item.DescribedObject.Name, offset(item.Timestamp.Time), item.Value.String())
		}
	}
	for name, item := range w.Object {
		fmt.Fprintf(&b, "  object's %s at %s: %s\n", name, offset(item.Timestamp.Time), item.Value.String())
	}
	for name, items := range w.External {
		fmt.Fprintf(&b, "  external %s:", name)
		for _, item := range items {
			fmt.Fprintf(&b, " %s", item.Value.String())
		}
		b.WriteString("\n")
	}
	return b.String()
}

func printList(list corev1.ResourceList) string {
	var parts []string
	for name, q := range list {
		parts = append(parts, fmt.Sprintf("%s=%s", name, q.String()))
	}
	return "{" + strings.Join(parts, " ") + "}"
}

func printPod(p *corev1.Pod) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s/%s %v %q", p.Namespace, p.Name, p.Labels, p.Status.Phase)
	if p.DeletionTimestamp != nil {
		b.WriteString(" terminating")
	}
	if p.Status.StartTime != nil {
		fmt.Fprintf(&b, " started %s", offset(p.Status.StartTime.Time))
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			fmt.Fprintf(&b, " ready=%s since %s", c.Status, offset(c.LastTransitionTime.Time))
		}
	}
	for _, c := range p.Spec.Containers {
		fmt.Fprintf(&b, " %s%s", c.Name, printList(c.Resources.Requests))
	}
	for _, c := range p.Spec.InitContainers {
		kind := "init"
		if c.RestartPolicy != nil {
			kind = "sidecar"
		}
		fmt.Fprintf(&b, " %s:%s%s", kind, c.Name, printList(c.Resources.Requests))
	}
	if p.Spec.Resources != nil {
		fmt.Fprintf(&b, " pod%s", printList(p.Spec.Resources.Requests))
	}
	if p.Spec.Overhead != nil {
		fmt.Fprintf(&b, " overhead%s", printList(p.Spec.Overhead))
	}
	return b.String()
}

func (q *sequence) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "the case, made smaller:\n  %v\n  status at first: %s\n", q.Config, compact(q.Status))
	var at time.Duration
	for i := range q.Steps {
		s := &q.Steps[i]
		at += s.After
		fmt.Fprintf(&b, "step %d at %v: %s\n", i+1, at, s.Action)
		if s.Action != reconcile {
			continue
		}
		fmt.Fprintf(&b, "  spec %s\n  target %+v\n", compact(s.Spec), s.Target)
		if len(s.Others) > 0 {
			fmt.Fprintf(&b, "  others %+v\n", s.Others)
		}
		if f := compact(s.Faults); f != compact(faults{}) {
			fmt.Fprintf(&b, "  faults %s\n", f)
		}
		b.WriteString(s.Input.String())
	}
	return b.String()
}

func printStatus(s *autoscalingv2.HorizontalPodAutoscalerStatus) string { return compact(s) }

func printMemory(m autoscaler.Memory) string {
	var b strings.Builder
	b.WriteString("recommendations")
	for _, r := range m.Recommendations {
		fmt.Fprintf(&b, " %d@%s", r.Replicas, offset(r.At))
	}
	for _, side := range []struct {
		name string
		list []autoscaler.ReplicaChange
	}{{"ups", m.Ups}, {"downs", m.Downs}} {
		fmt.Fprintf(&b, "; %s", side.name)
		for _, c := range side.list {
			fmt.Fprintf(&b, " %d@%s", c.Replicas, offset(c.At))
			if c.Outdated {
				b.WriteString(" (outdated)")
			}
		}
	}
	return b.String()
}
