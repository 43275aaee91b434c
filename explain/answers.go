package explain

import (
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// served are the groups that are always explained.
var served = [...]metric.Group{metric.CPU, metric.Memory}

// Pod explains a pod. It returns false if nothing is known of it. Until pods have been listed, the
// answer for an unknown name is that pods are not listed yet.
func (ex *Explainer) Pod(ref metric.PodRef) (Explanation, bool) {
	f := ex.open(ref, ex.verdicts())
	if !f.known() {
		return ex.notListedYet(Explanation{Kind: "pod", Namespace: ref.Namespace, Pod: ref.Name})
	}
	e := f.explain(metric.Pod, "")
	for _, name := range f.names() {
		e.Containers = append(e.Containers, f.explain(metric.Container, name))
	}
	e.Summary += f.missingContainers(e.Findings, e.Containers)
	e.Reads = ex.reads(f.node, false)
	if ex.Autoscalers != nil && f.facts != nil {
		e.Autoscalers = ex.Autoscalers(f.facts)
	}
	if ex.Deaths != nil {
		e.Deaths = ex.Deaths(ref)
	}
	return e, true
}

// Container explains one container of a pod. It returns false if nothing is known of it.
func (ex *Explainer) Container(ref metric.PodRef, name string) (Explanation, bool) {
	f := ex.open(ref, ex.verdicts())
	if !slices.Contains(f.names(), name) {
		if f.known() {
			return Explanation{}, false
		}
		return ex.notListedYet(Explanation{Kind: "container", Namespace: ref.Namespace, Pod: ref.Name, Container: name})
	}
	e := f.explain(metric.Container, name)
	e.Reads = ex.reads(f.node, false)
	return e, true
}

// Why returns in full why a pod has no CPU or memory. For a pod that has both, it returns the finding
// on CPU. It reads only the verdicts on the pod's node.
func (ex *Explainer) Why(p *cluster.Pod) Finding {
	f := ex.open(p.PodRef, ex.verdictsOn(p.Node))
	f.facts, f.node = p, p.Node
	cpu := f.finding(metric.Pod, "", metric.CPU)
	if !cpu.Served {
		return cpu
	}
	if memory := f.finding(metric.Pod, "", metric.Memory); !memory.Served {
		return memory
	}
	return cpu
}

// notListedYet is the answer for a name that was not listed and not measured yet.
func (ex *Explainer) notListedYet(e Explanation) (Explanation, bool) {
	if ex.Facts == nil || ex.Facts.Synced {
		return Explanation{}, false
	}
	e.At = ex.Now
	for _, g := range served {
		e.Findings = append(e.Findings, Finding{
			Group: g.String(), Reason: metric.WarmingUp.String(), Severity: metric.Temporary.String(),
			Message: notListedMessage,
			Next:    "it is known once the API server has listed them",
			Advice:  "If it stays, weir cannot reach the API server or may not list nodes and pods: see its log.",
		})
	}
	e.Summary = sentence(e.Findings[0].Message)
	return e, true
}

// verdicts yields all current verdicts.
func (ex *Explainer) verdicts() iter.Seq2[metric.Verdict, time.Time] {
	if ex.View == nil {
		return func(func(metric.Verdict, time.Time) bool) {}
	}
	return ex.View.Verdicts()
}

// verdictsOn yields the verdicts on one node.
func (ex *Explainer) verdictsOn(node metric.NodeName) iter.Seq2[metric.Verdict, time.Time] {
	if ex.View == nil {
		return ex.verdicts()
	}
	return ex.View.VerdictsOn(node)
}

// explain explains the pod itself (kind Pod) or one of its containers.
func (f *file) explain(kind metric.Kind, name string) Explanation {
	e := Explanation{Kind: kind.String(), Node: f.node, Namespace: f.ref.Namespace, Pod: f.ref.Name, Container: name, At: f.explainer.Now}
	subject := fmt.Sprintf("pod %v", f.ref)
	if kind == metric.Pod {
		e.Known = f.explainer.knownPod(f.facts)
	} else {
		e.Known, subject = f.explainer.knownContainer(f.facts.Container(name)), fmt.Sprintf("container %s of %s", name, subject)
	}
	for _, g := range explainedGroups(f.sample(kind, name), func(g metric.Group) bool { return f.hasVerdict(kind, name, g) }) {
		e.Findings = append(e.Findings, f.finding(kind, name, g))
	}
	e.Duplicates = f.duplicates(kind, name)
	e.Summary = summary(subject, e.Findings)
	return e
}

// missingContainers shows which containers are not part of the numbers of a served pod, as sentences
// to append to its summary. Init containers are not mentioned: they end as they should.
func (f *file) missingContainers(pod []Finding, containers []Explanation) (text string) {
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

// explainedGroups returns the groups to explain: CPU and memory, and other groups that have a
// reason or numbers in s, which may be nil. Requests and limits are not measurements.
func explainedGroups(s *metric.Sample, hasVerdict func(metric.Group) bool) []metric.Group {
	groups := slices.Clone(served[:])
	for g := range metric.Group(metric.NumGroups) {
		if g == metric.CPU || g == metric.Memory || g == metric.Spec {
			continue
		}
		if s != nil && (hasNumber(s, g) || s.Reasons[g].Layer() != metric.LayerNone) || hasVerdict(g) {
			groups = append(groups, g)
		}
	}
	return groups
}

// hasVerdict reports whether a verdict is about a group of the pod (kind Pod) or container.
func (f *file) hasVerdict(kind metric.Kind, name string, g metric.Group) bool {
	return slices.ContainsFunc(f.verdicts, func(s activeVerdict) bool {
		e := &s.verdict.Entity
		return s.group == g && e.Kind == kind && (kind == metric.Pod || e.Name == name) && e.Node == f.node && !s.reason.IsRejection()
	})
}

func utc(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.UTC()
}
