package aggregate

import (
	"context"
	"errors"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// readFailure is why all entities that this read does not have are missing; Unjudged if the
// read succeeded.
type readFailure struct {
	reason   metric.Reason
	evidence metric.Evidence
}

func readFailureOf(facts *cluster.Facts, b *metric.Batch) readFailure {
	if b.Err == nil {
		return readFailure{}
	}
	m := readFailure{reason: metric.NodeUnreachable, evidence: metric.Evidence{Err: b.Err}}
	var read *metric.ReadError
	switch {
	case errors.As(b.Err, &read):
		m.reason = read.Reason
	case errors.Is(b.Err, context.DeadlineExceeded):
		m.reason = metric.NodeTimeout
	}
	if n := facts.Node(b.Node); n != nil && !n.Ready && m.reason.Layer() > metric.LayerNode {
		m.evidence.Cause, m.reason = m.reason, metric.NodeNotReady
	}
	return m
}

// phaseReason returns why a pod in its phase has no numbers; Unjudged if it should have some.
func phaseReason(p *cluster.Pod) metric.Reason {
	switch p.Phase {
	case cluster.Pending, "":
		return metric.PodPending
	case cluster.Succeeded, cluster.Failed:
		return metric.PodFinished
	}
	return metric.Unjudged
}

// absentReason returns why there is no sample of a container that the API server
// names: the outermost reason that is true.
func (a *Aggregator) absentReason(p *pod, c *cluster.Container) (metric.Reason, metric.Evidence) {
	reason := phaseReason(p.facts)
	switch {
	case reason == metric.PodFinished:
		return reason, metric.Evidence{}
	case reason == metric.PodPending && c.State != cluster.StateRunning && c.State != cluster.StateTerminated:
		return reason, metric.Evidence{Name: c.StateReason()}
	case !p.facts.Deleted.IsZero() && (c.State != cluster.StateRunning || a.readFailure.reason == metric.Unjudged):
		// A running container of a pod that is being deleted vanishes from its node before the
		// API server reports that. If the node could not be read, that is the reason, and not the
		// deletion.
		return metric.PodTerminating, metric.Evidence{}
	case c.State == cluster.StateTerminated:
		return metric.ContainerFinished, metric.Evidence{Name: c.StateReason()}
	case c.State != cluster.StateRunning:
		return metric.ContainerNotStarted, metric.Evidence{Name: c.StateReason()}
	}
	return a.unreported(p, c.Name)
}

// unreported returns why there is no sample of a container that runs, as far as is known.
func (a *Aggregator) unreported(p *pod, name string) (metric.Reason, metric.Evidence) {
	if a.readFailure.reason != metric.Unjudged {
		return a.readFailure.reason, a.readFailure.evidence
	}
	for _, t := range a.rejected[p] {
		if t.name == name {
			return t.reason, a.verdicts.evidence(p.container(name), t.reason) // with the evidence of identity's verdict
		}
	}
	if a.cut > 0 {
		return metric.OverLimit, metric.Evidence{Limit: a.cut}
	}
	return metric.NotReported, metric.Evidence{Due: a.next}
}

// cutAt returns the limit at which the source dropped the rest of the node's report; 0 if it
// dropped nothing. The source gives the dropped entities an OverLimit verdict and no sample.
// Identity gives the same reason to too many samples of one entity, but keeps the samples.
func (a *Aggregator) cutAt(b *metric.Batch) float64 {
	for i := range b.Verdicts {
		v := &b.Verdicts[i]
		if v.Reason != metric.OverLimit || v.Entity.Kind != metric.Container && v.Entity.Kind != metric.Pod {
			continue
		}
		e := v.Entity.OfPod()
		var p *pod
		if slot := b.Slots.Find(&e); slot != 0 && int(slot) < len(a.pods) {
			p = a.pods[slot]
		}
		if p == nil || p.round != a.round || v.Entity.Kind == metric.Container && p.member(b, v.Entity.Name) == none && !a.wasRejected(p, v.Entity.Name) {
			return v.Evidence.Limit
		}
	}
	return 0
}

// markWarmingUp changes FirstSample to WarmingUp: all entities are seen for the first time,
// because weir has just begun to read the node.
func (a *Aggregator) markWarmingUp(b *metric.Batch) {
	for i := range b.Samples {
		s := &b.Samples[i]
		for _, g := range wholeGroups {
			if s.Reasons[g] == metric.FirstSample {
				s.Reasons[g] = metric.WarmingUp
			}
		}
	}
	for i := range b.Verdicts {
		v := &b.Verdicts[i]
		if (v.Group == metric.CPU || v.Group == metric.Memory) && v.Reason == metric.FirstSample {
			v.Reason = metric.WarmingUp
		}
	}
}

// explainUnsupported gives every entity of this round the verdict that the source has no group
// g for containers. An entity that has the group loses the verdict later (removeObsolete).
func (a *Aggregator) explainUnsupported(g metric.Group, b *metric.Batch) {
	for _, p := range a.currentPods {
		reason, named := metric.Unsupported, p.otherPod
		if p.facts != nil {
			named = p.facts
			if ended := phaseReason(p.facts); ended != metric.Unjudged {
				reason = ended
			}
		}
		for i := 0; named != nil && i < len(named.Containers); i++ {
			a.verdicts.explain(b.Slots.SlotOf(p.container(named.Containers[i].Name)), g, reason, metric.Evidence{})
		}
		for _, m := range p.members {
			a.verdicts.explain(b.Samples[m].Slot, g, reason, metric.Evidence{})
		}
		a.verdicts.explain(p.slot, g, reason, metric.Evidence{})
	}
	if b.Node != "" {
		a.verdicts.explain(b.Slots.SlotOf(&metric.Entity{Kind: metric.Node, Node: b.Node}), g, metric.Unsupported, metric.Evidence{})
	}
}
