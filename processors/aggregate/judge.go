package aggregate

import (
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// blame is the container that prevents its pod from being served.
type blame struct {
	name     string
	reason   metric.Reason
	evidence metric.Evidence // evidence of the reason
}

// isSet reports whether there is such a container.
func (b *blame) isSet() bool { return b.reason != metric.Unjudged }

// add sets the container, unless the present one has a reason at least as far out. Of two
// reasons of one layer the first is kept.
func (b *blame) add(name string, reason metric.Reason, evidence metric.Evidence) {
	if reason.Precedes(b.reason) {
		*b = blame{name, reason, evidence}
	}
}

// judge decides whether p is served, and gives the reason if not.
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
	case a.lacksCgroup(p, b):
		a.rejectCgroup(p, b)
	case a.serve(p, b):
	case idle.isSet():
		// No container is required, because none runs: their reason is the pod's.
		a.rejectPod(p, b, idle)
	default:
		a.serveOwnCgroup(p, b)
	}
}

// serveOwnCgroup serves the numbers of a pod's own cgroup, if none of its containers is known.
// A pod that the API server names and the node does not report is missing.
func (a *Aggregator) serveOwnCgroup(p *pod, b *metric.Batch) {
	switch {
	case p.own != none:
		s := &b.Samples[p.own]
		if p.facts != nil {
			a.missingNumber(s)
		}
		p.reason = s.Reasons[metric.CPU]
	case p.facts != nil:
		reason, evidence := a.unreported(p, "")
		a.rejectPod(p, b, blame{reason: reason, evidence: evidence})
	}
}

// lacksCgroup reports whether the source reads the cgroups of p and has no memory of p's own. The sum
// of its containers would be another value.
func (a *Aggregator) lacksCgroup(p *pod, b *metric.Batch) bool {
	return a.wanted(metric.Memory) && p.readsCgroups(b) && (p.own == none || !serves(&b.Samples[p.own], metric.Memory))
}

// rejectCgroup gives p's CPU and memory the reason why its cgroup has no memory.
func (a *Aggregator) rejectCgroup(p *pod, b *metric.Batch) {
	var evidence metric.Evidence
	if p.own == none {
		p.reason, evidence = a.unreported(p, "")
	} else {
		p.reason, evidence = a.missingNumber(&b.Samples[p.own])
	}
	a.withhold(p, b, evidence)
}

// judgeByFacts gives each container that the API server names its verdict. It returns the
// container with the outermost reason among the required ones, and among the others.
func (a *Aggregator) judgeByFacts(p *pod, b *metric.Batch) (worst, idle blame) {
	for i := range p.facts.Containers {
		c := &p.facts.Containers[i]
		var reason metric.Reason
		var evidence metric.Evidence
		if at := p.member(b, c.Name); at != none {
			reason, evidence = a.missingNumber(&b.Samples[at])
		} else {
			reason, evidence = a.absentReason(p, c)
			reason, evidence = a.explain(p, c.Name, reason, evidence)
		}
		switch {
		case reason == metric.Unjudged || c.Role == cluster.Ephemeral:
		case c.Required(), a.runIsNewer(p, c, b):
			worst.add(c.Name, reason, evidence)
		case c.Role != cluster.Init: // an init container ends as it should
			idle.add(c.Name, reason, evidence)
		}
	}
	return worst, idle
}

// runIsNewer reports whether the node reported a run of a container that the API server does not
// know to run yet. Identity rejects what is left of a run that ended, but kubelets also write 0 for
// such a run. A 0 is only of a newer run if that began when the last one ended or later.
func (a *Aggregator) runIsNewer(p *pod, c *cluster.Container, b *metric.Batch) bool {
	at := p.member(b, c.Name)
	if at == none || c.Role != cluster.Regular && c.Role != cluster.Sidecar || b.Samples[at].LastKnown&(1<<metric.CPU) != 0 {
		return false
	}
	cpu, _ := b.Samples[at].Values.Get(metric.CPUUsage)
	start := b.Samples[at].Instance.StartTime()
	return cpu > 0 || !start.IsZero() && !start.Before(c.EndedAt()) && !start.Before(p.facts.Started)
}

// judgeByReports does the same for a pod that the API server does not know. Its containers are
// those that the node reported in this read or the previous one.
func (a *Aggregator) judgeByReports(p *pod, b *metric.Batch) (worst blame) {
	put := func(name string, reason metric.Reason, evidence metric.Evidence) {
		// The containers have no order here, so the first by name is kept.
		if reason.Layer() == worst.reason.Layer() && worst.isSet() && name < worst.name {
			worst = blame{}
		}
		worst.add(name, reason, evidence)
	}
	for _, m := range p.members {
		if reason, evidence := a.missingNumber(&b.Samples[m]); reason != metric.Unjudged {
			put(b.Samples[m].Entity.Name, reason, evidence)
		}
	}
	for _, r := range p.reported {
		if p.member(b, r.name) == none && a.expects(r, b) {
			reason, evidence := a.unreported(p, r.name)
			reason, evidence = a.explain(p, r.name, reason, evidence)
			put(r.name, reason, evidence)
		}
	}
	for _, t := range a.rejected[p] {
		// The container is there and only its numbers are in doubt, unless identity found that
		// they are another pod's.
		if p.member(b, t.name) == none && !t.reason.Foreign() {
			reason, evidence := a.explain(p, t.name, t.reason, a.verdicts.evidence(p.container(t.name), t.reason))
			put(t.name, reason, evidence)
		}
	}
	if p.otherPod != nil {
		a.explainOtherPod(p, b)
	}
	a.remember(p, b)
	return worst
}

// explainOtherPod gives verdicts to the containers that the API server names, if the node
// reports a newer pod of the same name, which the API server does not know yet.
func (a *Aggregator) explainOtherPod(p *pod, b *metric.Batch) {
	for i := range p.otherPod.Containers {
		if name := p.otherPod.Containers[i].Name; p.member(b, name) == none {
			reason, evidence := a.unreported(p, name)
			a.explain(p, name, reason, evidence)
		}
	}
}

// missingNumber returns why a sample cannot be served; Unjudged if it can. It also adds the
// verdicts of its missing groups.
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
			reason = metric.NotReported // the group is there without the one number that is required
		}
		var evidence metric.Evidence
		if reason == metric.NotReported {
			reason, evidence = a.verdicts.explain(s.Slot, g, reason, metric.Evidence{Due: a.next})
		} else {
			reason, evidence = a.verdicts.reasonFor(s, g, reason, metric.Evidence{Due: a.next})
		}
		short.add(s.Entity.Name, reason, evidence)
	}
	return short.reason, short.evidence
}

// serves reports whether s has the number that a pod needs of group g: the CPU rate or the
// working set.
func serves(s *metric.Sample, g metric.Group) bool {
	id := metric.CPUUsageRate
	if g == metric.Memory {
		id = metric.MemoryWorkingSet
	}
	return s.Servable(g) && s.Values.Has(id)
}

// explain writes the verdicts of a container of p without a sample, and returns their reason.
// If identity rejected all samples of the container, it is NotReported with identity's reason
// as the cause, and identity's reason is the one for the pod.
func (a *Aggregator) explain(p *pod, name string, reason metric.Reason, evidence metric.Evidence) (metric.Reason, metric.Evidence) {
	slot := a.verdicts.batch.Slots.SlotOf(p.container(name))
	if reason.Layer() == metric.LayerIdentity {
		instead := evidence
		instead.Cause, instead.Due = reason, a.next
		for _, g := range wholeGroups {
			if a.wanted(g) {
				a.verdicts.explain(slot, g, metric.NotReported, instead)
			}
		}
		return reason, evidence
	}
	var result blame
	for _, g := range wholeGroups {
		if a.wanted(g) {
			reason, evidence := a.verdicts.explain(slot, g, reason, evidence)
			result.add(name, reason, evidence)
		}
	}
	return result.reason, result.evidence
}

// rejectPod gives p's CPU and memory a reason, so that they are not served. A reason of the
// whole pod or its node is the pod's own. If the reason is a container's, the pod is
// Incomplete.
func (a *Aggregator) rejectPod(p *pod, b *metric.Batch, w blame) {
	p.reason = w.reason
	evidence := w.evidence
	evidence.Name = w.name
	if w.reason.Layer() > metric.LayerScrape && !a.isUnreported(p) {
		p.reason, evidence.Cause = metric.Incomplete, w.reason
	}
	a.withhold(p, b, evidence)
}

// withhold gives p's CPU and memory the reason p.reason, so that they are not served.
func (a *Aggregator) withhold(p *pod, b *metric.Batch, evidence metric.Evidence) {
	for _, g := range wholeGroups {
		if !a.wanted(g) {
			continue
		}
		if p.own != none {
			b.Samples[p.own].Reasons[g] = p.reason
		}
		a.verdicts.replace(p.slot, g, p.reason, evidence)
	}
}

// isUnreported reports whether the node reported nothing of p.
func (a *Aggregator) isUnreported(p *pod) bool {
	return p.own == none && len(p.members) == 0 && len(a.rejected[p]) == 0
}
