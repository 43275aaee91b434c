package aggregate

import (
	"context"
	"errors"

	"github.com/weir-metrics/weir/metric"
)

// missed is why anything that this read does not hold is missing: Unjudged if
// the read succeeded.
type missed struct {
	reason   metric.Reason
	evidence metric.Evidence
}

func whyMissed(facts *metric.Facts, b *metric.Batch) missed {
	if b.Err == nil {
		return missed{}
	}
	m := missed{reason: metric.NodeUnreachable, evidence: metric.Evidence{Err: b.Err}}
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

// life returns why a pod of that phase has no numbers; Unjudged if it should
// have some.
func life(p *metric.PodFacts) metric.Reason {
	switch p.Phase {
	case metric.Pending, "":
		return metric.PodPending
	case metric.Succeeded, metric.Failed:
		return metric.PodFinished
	}
	return metric.Unjudged
}

// absent returns why there is no sample of a container that the API server
// names: the outermost reason that is true.
func (a *Aggregator) absent(p *pod, c *metric.ContainerFacts) (metric.Reason, metric.Evidence) {
	reason := life(p.facts)
	switch {
	case reason == metric.PodFinished:
		return reason, metric.Evidence{}
	case reason == metric.PodPending && c.State != metric.Live && c.State != metric.Terminated:
		return reason, metric.Evidence{Name: c.Why}
	case !p.facts.Deleted.IsZero() && (c.State != metric.Live || a.missed.reason == metric.Unjudged):
		// A running container of a pod that is being deleted vanishes from its
		// node before the API server says so. If the node could not be read,
		// that is why, and not the deletion.
		return metric.PodTerminating, metric.Evidence{}
	case c.State == metric.Terminated:
		return metric.ContainerFinished, metric.Evidence{Name: c.Why}
	case c.State != metric.Live:
		return metric.ContainerNotStarted, metric.Evidence{Name: c.Why}
	}
	return a.unreported(p, c.Name)
}

// unreported returns why there is no sample of a container that runs, as far as
// anyone knows.
func (a *Aggregator) unreported(p *pod, name string) (metric.Reason, metric.Evidence) {
	if a.missed.reason != metric.Unjudged {
		return a.missed.reason, a.missed.evidence
	}
	for _, t := range p.turned {
		if t.name == name {
			return t.reason, metric.Evidence{} // whose verdict identity has written
		}
	}
	return metric.NotReported, metric.Evidence{}
}
