package aggregate

import (
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// blame is the container that keeps its pod from being served.
type blame struct {
	name     string
	reason   metric.Reason
	evidence metric.Evidence // what the reason rests on
}

// isSet reports whether anyone is to blame.
func (w *blame) isSet() bool { return w.reason != metric.Unjudged }

// add blames a container, unless one with a reason further out is blamed
// already. Of equals the first is kept.
func (w *blame) add(name string, reason metric.Reason, why metric.Evidence) {
	if reason.Precedes(w.reason) {
		*w = blame{name, reason, why}
	}
}

// judge decides whether p is served, and why not.
func (a *Aggregator) judge(p *pod, b *metric.Batch) {
	var worst, idle blame
	if p.facts != nil {
		worst, idle = a.judgeByFacts(p, b)
	} else {
		worst = a.judgeByReports(p, b)
	}
	if p.facts != nil {
		if reason := phaseReason(p.facts); reason != metric.Unjudged {
			a.rejectPod(p, b, blame{reason: reason})
			return
		}
	}
	switch {
	case worst.isSet():
		a.rejectPod(p, b, worst)
	case a.serve(p, b):
	case idle.isSet():
		// Nothing is required, for nothing runs: the pod's reason is its
		// containers'.
		a.rejectPod(p, b, idle)
	default:
		a.serveOwnCgroup(p, b)
	}
}

// serveOwnCgroup lets the numbers of a pod's own cgroup stand, for no container of
// it is known. One that the API server names and its node does not is not
// reported.
func (a *Aggregator) serveOwnCgroup(p *pod, b *metric.Batch) {
	switch {
	case p.own != none:
		s := &b.Samples[p.own]
		if p.facts != nil {
			a.missingNumber(s)
		}
		p.reason = s.Reasons[metric.CPU]
	case p.facts != nil:
		reason, why := a.unreported(p, "")
		a.rejectPod(p, b, blame{reason: reason, evidence: why})
	}
}

// judgeByFacts gives each container that the API server names its verdict, and
// returns who is to blame among the required ones and among the others.
func (a *Aggregator) judgeByFacts(p *pod, b *metric.Batch) (worst, idle blame) {
	for i := range p.facts.Containers {
		c := &p.facts.Containers[i]
		var reason metric.Reason
		var why metric.Evidence
		if at := p.member(b, c.Name); at != none {
			reason, why = a.missingNumber(&b.Samples[at])
		} else {
			reason, why = a.absentReason(p, c)
			reason, why = a.explain(p, c.Name, reason, why)
		}
		switch {
		case reason == metric.Unjudged || c.Role == cluster.Ephemeral:
		case c.Required(), a.runIsNewer(p, c, b):
			worst.add(c.Name, reason, why)
		case c.Role != cluster.Init: // it has ended, as it should
			idle.add(c.Name, reason, why)
		}
	}
	return worst, idle
}

// runIsNewer reports whether the node has just reported a run of a container that
// the API server does not know to run yet: it began after the one that ended last,
// or in the same second.
func (a *Aggregator) runIsNewer(p *pod, c *cluster.Container, b *metric.Batch) bool {
	at := p.member(b, c.Name)
	if at == none || c.Role != cluster.Regular && c.Role != cluster.Sidecar || b.Samples[at].LastKnown&(1<<metric.CPU) != 0 {
		return false
	}
	start := b.Samples[at].Instance.StartTime()
	return !start.IsZero() && !start.Before(c.EndedAt()) && !start.Before(p.facts.Started)
}

// judgeByReports does the same where only the node tells what a pod consists
// of: what it reported in this read or the one before.
func (a *Aggregator) judgeByReports(p *pod, b *metric.Batch) (worst blame) {
	put := func(name string, reason metric.Reason, why metric.Evidence) {
		// There is no order of containers here but that of their names.
		if reason.Layer() == worst.reason.Layer() && worst.isSet() && name < worst.name {
			worst = blame{}
		}
		worst.add(name, reason, why)
	}
	for _, m := range p.members {
		if reason, why := a.missingNumber(&b.Samples[m]); reason != metric.Unjudged {
			put(b.Samples[m].Entity.Name, reason, why)
		}
	}
	for _, r := range p.reported {
		if p.member(b, r.name) == none && a.expects(r, b) {
			reason, why := a.unreported(p, r.name)
			reason, why = a.explain(p, r.name, reason, why)
			put(r.name, reason, why)
		}
	}
	for _, t := range a.rejected[p] {
		// The container is there and only its numbers are in doubt, unless they
		// were found to be another pod's.
		if p.member(b, t.name) == none && !t.reason.Foreign() {
			reason, why := a.explain(p, t.name, t.reason, a.verdicts.evidence(p.container(t.name), t.reason))
			put(t.name, reason, why)
		}
	}
	if p.otherPod != nil {
		a.explainOtherPod(p, b)
	}
	a.remember(p, b)
	return worst
}

// explainOtherPod gives the containers that the API server names a verdict where the
// node reports another pod of that name, which the API server has yet to hear of.
func (a *Aggregator) explainOtherPod(p *pod, b *metric.Batch) {
	for i := range p.otherPod.Containers {
		if name := p.otherPod.Containers[i].Name; p.member(b, name) == none {
			reason, why := a.unreported(p, name)
			a.explain(p, name, reason, why)
		}
	}
}

// missingNumber returns why the sample of a container is not enough to serve its pod;
// Unjudged if it is.
func (a *Aggregator) missingNumber(s *metric.Sample) (metric.Reason, metric.Evidence) {
	var short blame
	for _, g := range wholeGroups {
		if !a.wanted(g) || serves(s, g) {
			continue
		}
		if s.Reasons[g] == metric.Unjudged {
			s.Reasons[g] = metric.NotReported
		}
		reason := s.Reasons[g]
		if s.Servable(g) {
			reason = metric.NotReported // all but the number that counts
		}
		var why metric.Evidence
		if reason == metric.NotReported {
			reason, why = a.verdicts.explain(s.Slot, g, reason, metric.Evidence{Due: a.next})
		} else {
			reason, why = a.verdicts.reasonFor(s, g, reason, metric.Evidence{Due: a.next})
		}
		short.add(s.Entity.Name, reason, why)
	}
	return short.reason, short.evidence
}

// serves reports whether s has the number that group g of a pod cannot do
// without.
func serves(s *metric.Sample, g metric.Group) bool {
	id := metric.CPUUsageRate
	if g == metric.Memory {
		id = metric.MemoryWorkingSet
	}
	return s.Servable(g) && s.Values.Has(id)
}

// explain writes the verdicts of a container of p that has no sample, and
// returns the reason they give. Where its name was reported and what went by it was
// turned away, that is the reason for the pod; the container itself was not
// reported, because of it.
func (a *Aggregator) explain(p *pod, name string, reason metric.Reason, why metric.Evidence) (metric.Reason, metric.Evidence) {
	slot := a.verdicts.batch.Slots.SlotOf(p.container(name))
	if reason.Layer() == metric.LayerIdentity {
		instead := why
		instead.Cause, instead.Due = reason, a.next
		for _, g := range wholeGroups {
			if a.wanted(g) {
				a.verdicts.explain(slot, g, metric.NotReported, instead)
			}
		}
		return reason, why
	}
	var said blame
	for _, g := range wholeGroups {
		if a.wanted(g) {
			reason, why := a.verdicts.explain(slot, g, reason, why)
			said.add(name, reason, why)
		}
	}
	return said.reason, said.evidence
}

// rejectPod keeps p's CPU and memory from being served. A reason that concerns the
// whole pod or its node is the pod's own; one that concerns a container makes
// the pod Incomplete.
func (a *Aggregator) rejectPod(p *pod, b *metric.Batch, w blame) {
	p.reason = w.reason
	why := w.evidence
	why.Name = w.name
	if w.reason.Layer() > metric.LayerScrape && !a.isUnreported(p) {
		p.reason, why.Cause = metric.Incomplete, w.reason
	}
	for _, g := range wholeGroups {
		if !a.wanted(g) {
			continue
		}
		if p.own != none {
			b.Samples[p.own].Reasons[g] = p.reason
		}
		a.verdicts.replace(p.slot, g, p.reason, why)
	}
}

// isUnreported reports whether the node said nothing of p at all.
func (a *Aggregator) isUnreported(p *pod) bool {
	return p.own == none && len(p.members) == 0 && len(a.rejected[p]) == 0
}
