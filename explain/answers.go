package explain

import (
	"fmt"
	"slices"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// served are the groups that are always told of.
var served = [...]metric.Group{metric.CPU, metric.Memory}

// Pod explains a pod; false if nothing is known of it. While pods have not been
// listed, it cannot be said of any name that there is no such pod.
func (w *World) Pod(ref metric.PodRef) (Explanation, bool) {
	f := w.open(ref, w.verdicts())
	if !f.known() {
		return w.unlisted(Explanation{Kind: "pod", Namespace: ref.Namespace, Pod: ref.Name})
	}
	e := f.explain()
	for _, name := range f.names() {
		e.Containers = append(e.Containers, f.explainContainer(name))
	}
	e.Summary += f.leftOut(e.Findings, e.Containers)
	e.Reads = w.reads(f.node, false)
	if w.Autoscalers != nil && f.facts != nil {
		e.Autoscalers = w.Autoscalers(f.facts)
	}
	return e, true
}

// Container explains one container of a pod; false if nothing is known of it.
func (w *World) Container(ref metric.PodRef, name string) (Explanation, bool) {
	f := w.open(ref, w.verdicts())
	if !slices.Contains(f.names(), name) {
		if f.known() {
			return Explanation{}, false
		}
		return w.unlisted(Explanation{Kind: "container", Namespace: ref.Namespace, Pod: ref.Name, Container: name})
	}
	e := f.explainContainer(name)
	e.Reads = w.reads(f.node, false)
	return e, true
}

// Why says why a pod of the API server's has no CPU and memory, in full; of one
// that has, what became of its CPU. It reads what stands on the pod's node only.
func (w *World) Why(p *cluster.Pod) Finding {
	f := w.open(p.PodRef, w.verdictsOn(p.Node))
	f.facts, f.node = p, p.Node
	cpu := f.finding(metric.CPU)
	if !cpu.Served {
		return cpu
	}
	if memory := f.finding(metric.Memory); !memory.Served {
		return memory
	}
	return cpu
}

// unlisted is the answer about what nobody has spoken of yet.
func (w *World) unlisted(e Explanation) (Explanation, bool) {
	if w.Facts == nil || w.Facts.Synced {
		return Explanation{}, false
	}
	e.At = w.Now
	for _, g := range served {
		e.Findings = append(e.Findings, Finding{
			Group: g.String(), Reason: metric.WarmingUp.String(), Severity: metric.Temporary.String(),
			Message: unheardOf,
			Next:    "it is known once the API server has listed them",
			Advice:  "If it stays, weir cannot reach the API server or may not list nodes and pods: see its log.",
		})
	}
	e.Summary = sentence(e.Findings[0].Message)
	return e, true
}

// datedVerdict is a verdict with the time since when it holds.
type datedVerdict struct {
	metric.Verdict
	since time.Time
}

// verdicts returns all verdicts that hold.
func (w *World) verdicts() func(func(metric.Verdict, time.Time) bool) {
	if w.View == nil {
		return func(func(metric.Verdict, time.Time) bool) {}
	}
	return w.View.Verdicts()
}

// verdictsOn returns the verdicts of one node.
func (w *World) verdictsOn(node metric.NodeName) func(func(metric.Verdict, time.Time) bool) {
	if w.View == nil {
		return func(func(metric.Verdict, time.Time) bool) {}
	}
	return w.View.VerdictsOn(node)
}

// explain explains the pod itself.
func (f *file) explain() Explanation {
	e := Explanation{Kind: "pod", Node: f.node, Namespace: f.ref.Namespace, Pod: f.ref.Name, At: f.w.Now, Known: f.w.knownPod(f.facts)}
	for _, g := range f.groups(f.pod, metric.Pod, "") {
		e.Findings = append(e.Findings, f.finding(g))
	}
	e.Rivals = f.rivals(metric.Pod, "")
	e.Summary = summary(fmt.Sprintf("pod %v", f.ref), e.Findings)
	return e
}

// explainContainer explains a container of the pod.
func (f *file) explainContainer(name string) Explanation {
	e := Explanation{
		Kind: "container", Node: f.node, Namespace: f.ref.Namespace, Pod: f.ref.Name, Container: name, At: f.w.Now,
		Known: f.w.knownContainer(f.facts.Container(name)),
	}
	for _, g := range f.groups(f.sample(name), metric.Container, name) {
		e.Findings = append(e.Findings, f.findingOf(name, g))
	}
	e.Rivals = f.rivals(metric.Container, name)
	e.Summary = summary(fmt.Sprintf("container %s of pod %v", name, f.ref), e.Findings)
	return e
}

// leftOut tells which containers are not in the numbers of a pod that is served,
// as sentences to add to what was said of it. Init containers end as they should.
func (f *file) leftOut(pod []Finding, containers []Explanation) (text string) {
	if !pod[0].Served || !pod[1].Served {
		return ""
	}
	for i := range containers {
		c, known := &containers[i], f.facts.Container(containers[i].Container)
		if cpu := &c.Findings[0]; !cpu.Served && (known == nil || known.Role != cluster.Init) {
			text += fmt.Sprintf(" Container %s is not in it: %s.", c.Container, cpu.Message)
		}
	}
	return text
}

// groups returns the groups to tell of: CPU and memory, and others that have
// numbers or a reason. What was asked for is no measurement.
func (f *file) groups(s *metric.Sample, kind metric.Kind, name string) []metric.Group {
	groups := slices.Clone(served[:])
	for i := range metric.NumGroups {
		g := metric.Group(i)
		if g == metric.CPU || g == metric.Memory || g == metric.Spec {
			continue
		}
		if s != nil && (numbered(s, g) || s.Reasons[g].Layer() != metric.LayerNone) || f.speaksOf(kind, name, g) {
			groups = append(groups, g)
		}
	}
	return groups
}

// speaksOf reports whether a verdict is about a group of the pod's (kind Pod) or
// container's.
func (f *file) speaksOf(kind metric.Kind, name string, g metric.Group) bool {
	return slices.ContainsFunc(f.standings, func(s datedVerdict) bool {
		e := &s.Entity
		return s.Group == g && e.Kind == kind && (kind == metric.Pod || e.Name == name) && e.Node == f.node && !rejection(s.Reason)
	})
}

func utc(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.UTC()
}
