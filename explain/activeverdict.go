package explain

import (
	"cmp"
	"slices"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// activeVerdict is a verdict that may keep a number from being served. It has only what an outcome
// needs, because a Survey keeps one for each pod that is not served.
type activeVerdict struct {
	kind   metric.Kind // of the verdict's entity
	group  metric.Group
	reason metric.Reason
	cause  metric.Reason
	name   string // the container that the verdict is about, or that its evidence names
	since  time.Time
	limit  float64 // of OverLimit
	due    int64
	// verdict is the whole verdict, with its evidence; nil in a Survey.
	verdict *metric.Verdict
}

func newActiveVerdict(v *metric.Verdict, since time.Time) activeVerdict {
	s := activeVerdict{kind: v.Entity.Kind, group: v.Group, reason: v.Reason, cause: v.Evidence.Cause, name: v.Evidence.Name, since: since, limit: v.Evidence.Limit, due: v.Evidence.Due}
	if v.Entity.Kind == metric.Container {
		s.name = v.Entity.Name
	}
	return s
}

// withEvidence returns the activeVerdict of v with the whole verdict.
func withEvidence(v metric.Verdict, since time.Time) activeVerdict {
	s := newActiveVerdict(&v, since)
	s.verdict = &v
	return s
}

// bestOf returns the verdict of one entity that best explains why group g is not served, or nil.
func bestOf(verdicts []activeVerdict, g metric.Group) (best *activeVerdict) {
	for i := range verdicts {
		if s := &verdicts[i]; concernsGroup(s.verdict, g) && s.betterThan(best, g) {
			best = s
		}
	}
	return best
}

// betterThan reports whether s explains better than o why group g is not served. o may be nil.
func (v *activeVerdict) betterThan(o *activeVerdict, g metric.Group) bool {
	return o == nil || v.before(o) || !o.before(v) && v.group == g && o.group != g
}

// before reports whether s explains an absence better than o, in the order of README.md.
func (v *activeVerdict) before(o *activeVerdict) bool {
	if c := cmp.Or(cmp.Compare(v.rejection(), o.rejection()), cmp.Compare(v.kind, o.kind)); c != 0 {
		return c < 0
	}
	return v.reason.Precedes(o.reason)
}

// rejection is what a verdict has to do with a rejected report. Such a report is a duplicate, so
// its rejection explains an absence only if no other verdict does. A lower value explains more.
type rejection int

const (
	noRejection         rejection = iota // the verdict has another reason
	containerRejected                    // a pod is incomplete: the verdict names the container with a rejected report
	reportRejected                       // the verdict is about the rejected report itself
	nothingElseReported                  // NotReported: the rejected report was the only one
)

func (v *activeVerdict) rejection() rejection {
	switch {
	case v.reason.IsRejection():
		return reportRejected
	case v.reason == metric.Incomplete && v.cause.IsRejection():
		return containerRejected
	case v.reason == metric.NotReported && v.cause.IsRejection():
		return nothingElseReported
	}
	return noRejection
}

// isIrrelevant reports whether v, about a pod or container on the pod's node, cannot explain why
// group g of the pod is not served. There are three such cases: v reports that the pod is bound to
// another node, which is no longer true; the rejected report of a container already led to a
// verdict on the pod; or the group does not depend on the pod's containers.
func isIrrelevant(v *metric.Verdict, g metric.Group) bool {
	return v.Reason == metric.OtherNode ||
		v.Entity.Kind == metric.Container && (g != metric.CPU && g != metric.Memory || v.Reason.IsRejection() && v.Reason.Foreign())
}

// outcome returns the outcome of s for a pod or a node. node is the pod's node.
func (v *activeVerdict) outcome(node metric.NodeName) Outcome {
	r := Outcome{Reason: v.reason, Since: v.since, group: v.group, evidence: metric.Evidence{Due: v.due, Limit: v.limit}}
	layer := v.reason.Layer()
	if layer == metric.LayerNode || layer == metric.LayerScrape {
		r.Node = node
		r.evidence.Cause = v.cause
		return r
	}
	switch {
	case v.kind == metric.Container && layer > metric.LayerScrape,
		v.kind != metric.Node && (v.reason == metric.ContainerNotStarted || v.reason == metric.ContainerFinished):
		r.Container = v.name
	case v.reason == metric.Incomplete:
		r.Container = v.name
		if v.cause != metric.Unjudged {
			r.Reason = v.cause
		}
	}
	return r
}

// dropped returns the outcome for an entity that was dropped because of s, an OverLimit of its
// node.
func (v *activeVerdict) dropped() Outcome {
	return Outcome{Reason: metric.OverLimit, Since: v.since, group: v.group, evidence: metric.Evidence{Limit: v.limit}}
}

// replaced reports whether s is about the life of the pod or of a container, and p reports that this
// has ended.
func (v *activeVerdict) replaced(p *cluster.Pod) bool {
	switch v.reason {
	case metric.PodPending, metric.PodFinished:
		return p.Phase == cluster.Running
	case metric.PodTerminating:
		return p.Deleted.IsZero()
	case metric.ContainerNotStarted, metric.ContainerFinished:
		c := p.Container(v.name)
		return c != nil && c.State == cluster.StateRunning
	}
	return false
}

// concernsRest reports whether s is about a container that does not run, and another one of p does.
// Then it does not keep p from being served.
func (v *activeVerdict) concernsRest(p *cluster.Pod) bool {
	if v.reason != metric.ContainerNotStarted && v.reason != metric.ContainerFinished {
		return false
	}
	return p.Container(v.name) != nil && slices.ContainsFunc(p.Containers, func(c cluster.Container) bool { return c.Required() })
}

// outdated reports whether what the API server reported of p since contradicts s.
func (v *activeVerdict) outdated(p *cluster.Pod, read *reading) bool {
	if v.kind == metric.Node {
		return false
	}
	if !read.last.IsZero() && read.last.Before(p.KnownAt) && v.since.Before(p.KnownAt) {
		return true // the verdict is about an earlier pod with this name
	}
	if v.reason == metric.ContainerNotStarted || v.reason == metric.ContainerFinished {
		return p.Container(v.name) != nil // the container's present state was checked before
	}
	return v.replaced(p)
}

// concernsUsage reports whether v can be the reason why CPU or memory is not served.
func concernsUsage(v *metric.Verdict) bool {
	return (v.Group == metric.CPU || v.Group == metric.Memory) && v.Entity.Part == "" &&
		v.Reason.Layer() != metric.LayerNone && v.Reason != metric.Ambiguous
}

// concernsGroup reports whether v can be the reason why group g is not served. What prevents the
// read of CPU and memory prevents the read of every group.
func concernsGroup(v *metric.Verdict, g metric.Group) bool {
	return (v.Group == g || v.Reason.Layer() <= metric.LayerScrape) && v.Entity.Part == "" &&
		v.Reason.Layer() != metric.LayerNone && v.Reason != metric.Ambiguous
}
