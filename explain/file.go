package explain

import (
	"iter"
	"slices"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/cluster/resourceusage"
	"github.com/weir-metrics/weir/metric"
)

// file is everything that is known of one pod.
type file struct {
	explainer   *Explainer
	ref         metric.PodRef
	facts       *cluster.Pod    // nil if the API server does not know it
	node        metric.NodeName // empty if no node is known
	pod         *metric.Sample
	containers  []*metric.Sample
	verdicts    []activeVerdict // on the pod and its containers, from all nodes, with their evidence
	nodeVerdict *activeVerdict  // why its node is not served; nil if it is served
	read        *reading
	nodeOutcome *Outcome
}

// open collects what is known of a pod.
func (ex *Explainer) open(ref metric.PodRef, verdicts iter.Seq2[metric.Verdict, time.Time]) *file {
	f := &file{explainer: ex, ref: ref, facts: ex.Facts.Pod(ref), pod: ex.lookupPod(ref)}
	if ex.View != nil {
		_, f.containers = ex.View.Pod(ref)
		f.subtractEnded()
	}
	nodes := map[metric.NodeName]*activeVerdict{}
	for v, since := range verdicts {
		switch v.Entity.Kind {
		case metric.Pod, metric.Container:
			if v.Entity.PodRef() == ref && v.Entity.Part == "" {
				f.verdicts = append(f.verdicts, withEvidence(v, since))
			}
		case metric.Node:
			if st := newActiveVerdict(&v, since); concernsUsage(&v) && st.betterThan(nodes[v.Entity.Node], metric.CPU) {
				nodes[v.Entity.Node] = &st
			}
		}
	}
	f.node = f.findNode()
	f.nodeVerdict = nodes[f.node]
	f.read = ex.readingOf(f.node)
	return f
}

// subtractEnded removes containers from the pod's numbers that no longer run, as metrics.k8s.io
// does.
func (f *file) subtractEnded() {
	if f.facts == nil || !resourceusage.HasBothNumbers(f.pod) || resourceusage.RunOf(f.pod).MeasuredAt >= f.facts.RunsChangedAt() {
		return
	}
	u := resourceusage.UsageOfContainers(f.containers)
	measured := len(u.Containers)
	if !resourceusage.MayServePod(f.facts, u) || len(u.Containers) == measured {
		return
	}
	var cpu, memory float64
	for _, c := range u.Containers {
		cpu, memory = cpu+float64(c.CPU), memory+float64(c.Memory)
	}
	own := &metric.Sample{}
	own.CopyFrom(f.pod)
	own.Values.Set(metric.CPUUsageRate, cpu)
	own.Values.Set(metric.MemoryWorkingSet, memory)
	own.Rates[metric.CPU] = u.Window
	f.pod = own
}

// findNode returns the node of a pod: from the API server, or else from a sample, or else from a
// verdict.
func (f *file) findNode() metric.NodeName {
	switch {
	case f.facts != nil:
		return f.facts.Node
	case f.pod != nil:
		return f.pod.Entity.Node
	case len(f.containers) > 0:
		return f.containers[0].Entity.Node
	case len(f.verdicts) > 0:
		return f.verdicts[0].verdict.Entity.Node
	}
	return ""
}

// known reports whether anything is known of the pod.
func (f *file) known() bool {
	return f.facts != nil || f.pod != nil || len(f.containers) > 0 || len(f.verdicts) > 0
}

// gone reports whether the API server has listed its pods and this pod is not among them.
func (f *file) gone() bool {
	return f.facts == nil && f.explainer.Facts != nil && f.explainer.Facts.Synced
}

// names returns the pod's containers: first those of its spec in their order, then others that have
// a sample or a verdict.
func (f *file) names() (names []string) {
	if f.facts != nil {
		for i := range f.facts.Containers {
			names = append(names, f.facts.Containers[i].Name)
		}
	}
	var others []string
	for _, s := range f.containers {
		others = append(others, s.Entity.Name)
	}
	for i := range f.verdicts {
		if e := &f.verdicts[i].verdict.Entity; e.Kind == metric.Container {
			others = append(others, e.Name)
		}
	}
	slices.Sort(others)
	for _, name := range slices.Compact(others) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// sample returns the served sample of the pod (kind Pod) or of a container, or nil.
func (f *file) sample(kind metric.Kind, name string) *metric.Sample {
	if kind == metric.Pod {
		return f.pod
	}
	for _, s := range f.containers {
		if s.Entity.Name == name {
			return s
		}
	}
	return nil
}

// ofNode returns the outcome of the pod's node.
func (f *file) ofNode() Outcome {
	if f.nodeOutcome == nil {
		r := f.explainer.judgeNode(f.node, metric.CPU, f.explainer.lookNode(f.node), f.nodeVerdict, f.read)
		f.nodeOutcome = &r
	}
	return *f.nodeOutcome
}
