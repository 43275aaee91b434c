package aggregate

import "github.com/weir-metrics/weir/metric"

// blame is the container that keeps its pod from being served.
type blame struct {
	name   string
	reason metric.Reason
	err    error
}

// on reports whether anyone is to blame.
func (w *blame) on() bool { return w.reason != metric.Unjudged }

// put blames a container, unless one with a reason further out is blamed
// already. Of equals the first stands.
func (w *blame) put(name string, reason metric.Reason, err error) {
	if !w.on() || reason.Layer() < w.reason.Layer() {
		*w = blame{name, reason, err}
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
		if reason := life(p.facts); reason != metric.Unjudged {
			a.refuse(p, b, blame{reason: reason})
			return
		}
	}
	switch {
	case worst.on():
		a.refuse(p, b, worst)
	case a.serve(p, b):
	case idle.on():
		// Nothing is required, for nothing runs: the pod's reason is its
		// containers'.
		a.refuse(p, b, idle)
	default:
		// Only the pod's own cgroup is known: its own numbers stand.
		if p.own != none {
			p.reason = b.Samples[p.own].Reasons[metric.CPU]
		}
	}
}

// judgeByFacts gives each container that the API server names its verdict, and
// returns who is to blame among the required ones and among the others.
func (a *Aggregator) judgeByFacts(p *pod, b *metric.Batch) (worst, idle blame) {
	for i := range p.facts.Containers {
		c := &p.facts.Containers[i]
		var reason metric.Reason
		var err error
		if at := p.member(c.Name); at != none {
			reason = a.shortOf(&b.Samples[at])
		} else {
			var why metric.Evidence
			reason, why = a.absent(p, c)
			reason = a.explain(p, c.Name, reason, why)
			err = why.Err
		}
		switch {
		case reason == metric.Unjudged || c.Role == metric.Ephemeral:
		case c.Required():
			worst.put(c.Name, reason, err)
		case c.Role != metric.Init: // it has ended, as it should
			idle.put(c.Name, reason, err)
		}
	}
	return worst, idle
}

// judgeByReports does the same where only the node tells what a pod consists
// of: what it reported in this read or the one before.
func (a *Aggregator) judgeByReports(p *pod, b *metric.Batch) (worst blame) {
	put := func(name string, reason metric.Reason, err error) {
		// There is no order of containers here but that of their names.
		if reason.Layer() == worst.reason.Layer() && worst.on() && name < worst.name {
			worst = blame{}
		}
		worst.put(name, reason, err)
	}
	for _, m := range p.members {
		if reason := a.shortOf(&b.Samples[m.sample]); reason != metric.Unjudged {
			put(m.name, reason, nil)
		}
	}
	for _, r := range p.reported {
		if p.member(r.name) == none && a.expects(r, b) {
			reason, why := a.unreported(p, r.name)
			put(r.name, a.explain(p, r.name, reason, why), why.Err)
		}
	}
	for _, t := range p.turned {
		// The container is there and only its numbers are in doubt, unless they
		// were found to be another pod's.
		if p.member(t.name) == none && !t.reason.Foreign() {
			put(t.name, t.reason, nil)
		}
	}
	a.remember(p, b)
	return worst
}

// shortOf returns why the sample of a container is not enough to serve its pod;
// Unjudged if it is.
func (a *Aggregator) shortOf(s *metric.Sample) metric.Reason {
	var short blame
	for _, g := range wholes {
		if !a.wanted(g) || serves(s, g) {
			continue
		}
		if s.Reasons[g] == metric.Unjudged {
			s.Reasons[g] = metric.NotReported
		}
		reason := s.Reasons[g]
		if s.Numbered(g) {
			reason = metric.NotReported // all but the number that counts
		}
		if reason == metric.NotReported {
			reason = a.said.explain(s.Entity, g, reason, metric.Evidence{})
		}
		short.put(s.Entity.Name, reason, nil)
	}
	return short.reason
}

// serves reports whether s has the number that group g of a pod cannot do
// without.
func serves(s *metric.Sample, g metric.Group) bool {
	id := metric.CPUUsageRate
	if g == metric.Memory {
		id = metric.MemoryWorkingSet
	}
	return s.Numbered(g) && s.Values.Has(id)
}

// explain writes the verdicts of a container of p that has no sample, and
// returns the reason they give.
func (a *Aggregator) explain(p *pod, name string, reason metric.Reason, why metric.Evidence) metric.Reason {
	if reason.Layer() == metric.LayerIdentity {
		return reason // identity has said so itself
	}
	e := metric.Entity{Kind: metric.Container, Node: p.entity.Node, Namespace: p.entity.Namespace, Pod: p.entity.Pod, Name: name}
	var said blame
	for _, g := range wholes {
		if a.wanted(g) {
			said.put(name, a.said.explain(e, g, reason, why), nil)
		}
	}
	return said.reason
}

// refuse keeps p's CPU and memory from being served. A reason that concerns the
// whole pod or its node is the pod's own; one that concerns a container makes
// the pod Incomplete.
func (a *Aggregator) refuse(p *pod, b *metric.Batch, w blame) {
	p.reason = w.reason
	why := metric.Evidence{Name: w.name, Err: w.err}
	if w.reason.Layer() > metric.LayerScrape && !a.unheard(p) {
		p.reason, why.Cause = metric.Incomplete, w.reason
	}
	if p.reason == metric.NodeNotReady {
		why.Cause = a.missed.evidence.Cause
	}
	for _, g := range wholes {
		if !a.wanted(g) {
			continue
		}
		if p.own != none {
			b.Samples[p.own].Reasons[g] = p.reason
		}
		a.said.replace(p.entity, g, p.reason, why)
	}
}

// unheard reports whether the node said nothing of p at all.
func (a *Aggregator) unheard(p *pod) bool {
	return p.own == none && len(p.members) == 0 && len(p.turned) == 0
}
