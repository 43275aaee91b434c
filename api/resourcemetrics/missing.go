package resourcemetrics

import (
	"fmt"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/weir-metrics/weir/metric"
)

// absence is why something is not served.
type absence struct {
	reason    metric.Reason // of the container at fault, if one is
	container string        // the one that keeps its pod from being served; empty if none does
	young     bool          // the pod started after its node's last read
	detail    string        // what the API server says besides
}

// absenceOf returns what v means for the pod or node.
func absenceOf(v *metric.Verdict) absence {
	is := absence{reason: v.Reason}
	switch layer := v.Reason.Layer(); {
	case v.Entity.Kind == metric.Node:
	case v.Entity.Kind == metric.Container:
		if layer > metric.LayerScrape {
			is.container = v.Entity.Name
		}
	case v.Reason == metric.Incomplete:
		is.container = v.Evidence.Name
		if v.Evidence.Cause != metric.Unjudged {
			is.reason = v.Evidence.Cause
		}
	case v.Reason == metric.ContainerNotStarted, v.Reason == metric.ContainerFinished:
		is.container = v.Evidence.Name
	}
	return is
}

// findings are what stands against some pods and nodes, found in one walk over
// all verdicts.
type findings struct {
	pods  map[metric.PodRef]finding
	nodes map[metric.NodeName]finding
}

type finding struct {
	absence
	kind  metric.Kind // of the entity that the verdict is about
	layer metric.Layer
}

// find collects the verdicts on the CPU and memory of the pods and nodes that
// want says; of several on one the widest entity's outermost reason counts.
func (a *answer) find(pod func(metric.PodRef) bool, node func(metric.NodeName) bool) findings {
	f := findings{pods: map[metric.PodRef]finding{}, nodes: map[metric.NodeName]finding{}}
	for v := range a.view.Verdicts() {
		if v.Group != metric.CPU && v.Group != metric.Memory || v.Entity.Part != "" ||
			v.Reason.Layer() == metric.LayerNone || v.Reason == metric.Ambiguous {
			continue
		}
		is := finding{absenceOf(&v), v.Entity.Kind, v.Reason.Layer()}
		switch v.Entity.Kind {
		case metric.Node:
			if was, ok := f.nodes[v.Entity.Node]; node(v.Entity.Node) && (!ok || is.before(was)) {
				f.nodes[v.Entity.Node] = is
			}
		case metric.Pod, metric.Container:
			ref := v.Entity.PodRef()
			if !pod(ref) || a.elsewhere(&v) {
				continue
			}
			if was, ok := f.pods[ref]; !ok || is.before(was) {
				f.pods[ref] = is
			}
		}
	}
	return f
}

// before reports whether f says more of why nothing is served than g does.
func (f finding) before(g finding) bool {
	if f.kind != g.kind {
		return f.kind < g.kind
	}
	return f.layer < g.layer
}

// elsewhere reports whether v is about a pod or container that identity turned
// away because it is not the present one: that is no reason for the present
// one's absence. The pipeline gives that its own.
func (a *answer) elsewhere(v *metric.Verdict) bool {
	if p := a.facts.Pod(v.Entity.PodRef()); p != nil && p.Node != "" && p.Node != v.Entity.Node {
		return true
	}
	return v.Entity.Kind == metric.Container && v.Reason.Foreign()
}

// whyPod says why a pod of the API server's is not served.
func (a *answer) whyPod(p *metric.PodFacts, f findings) absence {
	switch p.Phase {
	case metric.Running:
	case metric.Succeeded, metric.Failed:
		return absence{reason: metric.PodFinished}
	default:
		return absence{reason: metric.PodPending, detail: waitsFor(p)}
	}
	if is, ok := f.pods[p.PodRef]; ok {
		if c := p.Container(is.container); c != nil && is.reason.Layer() == metric.LayerLife {
			is.detail = c.Why
		}
		return is.absence
	}
	if pod, _ := a.view.Pod(p.PodRef); both(pod) {
		if pod.Instance.UID != "" && !p.Is(pod.Instance.UID) {
			return absence{reason: metric.OldPod}
		}
		return absence{reason: metric.NotReported} // the pod, and none of its containers
	}
	if why := a.whyNode(p.Node, f); why.reason != metric.Unjudged {
		return why
	}
	return absence{reason: metric.NodeNotScrapedYet, young: true}
}

// waitsFor says what a pod waits for: a node, or a container whose image does
// not come, say. It is empty if nobody tells.
func waitsFor(p *metric.PodFacts) string {
	if p.Node == "" {
		return "it is bound to no node"
	}
	for i := range p.Containers {
		if c := &p.Containers[i]; c.State == metric.Waiting && c.Why != "" {
			return fmt.Sprintf("container %s waits: %s", c.Name, c.Why)
		}
	}
	return ""
}

// whyNode says why a node is not served; Unjudged if it is.
func (a *answer) whyNode(name metric.NodeName, f findings) absence {
	if a.facts != nil {
		n := a.facts.Node(name)
		if n == nil {
			return absence{reason: metric.NodeUnknown}
		}
		if !a.measured.Matches(labels.Set(n.Labels)) {
			return absence{reason: metric.NodeExcluded}
		}
	}
	if is, ok := f.nodes[name]; ok {
		return is.absence
	}
	s, ok := a.view.Lookup(metric.Entity{Kind: metric.Node, Node: name})
	switch {
	case !ok:
		return absence{reason: metric.NodeNotScrapedYet}
	case !both(s):
		return absence{reason: metric.NotReported}
	}
	return absence{}
}

// whyOne says why one pod of the API server's is not served.
func (a *answer) whyOne(p *metric.PodFacts) absence {
	f := a.find(
		func(ref metric.PodRef) bool { return ref == p.PodRef },
		func(n metric.NodeName) bool { return n == p.Node })
	return a.whyPod(p, f)
}

// expected reports whether something without metrics because of r is one that
// should have some, and a LIST without it one to be warned of.
func expected(r metric.Reason) bool {
	return r.Layer() != metric.LayerLife && r != metric.NodeExcluded
}
