package explain

import (
	"fmt"
	"strings"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// evidence returns the evidence for r, one item on each line.
func (t *messageWriter) evidence(r *Outcome, sample *metric.Sample) (lines []string) {
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	e := &r.evidence
	layer := r.Reason.Layer()
	if r.Served {
		if at := sample.Time(t.asked); !at.IsZero() {
			add("read %s", t.atReading(at))
		}
		if start := sample.Instance.StartTime(); !start.IsZero() && sample.Instance.Origin != metric.StartCgroup {
			add("started %s", t.atStart(start))
		}
	}
	if seen := t.writeReading(r, &e.Got); seen != "" {
		add("seen: %s", seen)
	}
	if other := t.writeReading(r, &e.Other); other != "" {
		name := "previous reading"
		if layer == metric.LayerIdentity {
			name = "the duplicate"
			if (r.Reason == metric.OldPod || r.Reason == metric.OldContainer) && e.Other.Time == 0 && e.Other.Value == 0 {
				name = "the present one" // as the API server names it
			}
		}
		add("%s: %s", name, other)
	}
	if e.Limit > 0 && r.Reason == metric.OverLimit {
		add("limit: %.10g", e.Limit)
	}
	if layer == metric.LayerNode || layer == metric.LayerScrape || r.Late {
		switch {
		case t.read.unread != nil:
		case t.read.err != nil:
			if !t.read.last.IsZero() {
				add("the node was last tried %s", t.at(t.read.last))
			}
			if t.read.success.IsZero() {
				add("it has never answered well")
			} else {
				add("it last answered well %s", t.at(t.read.success))
			}
		case t.read.last.IsZero():
			add("the node has not been read yet")
		default:
			add("the node was last read %s", t.at(t.read.last))
		}
	}
	if p := t.pod; p != nil && layer == metric.LayerLife {
		if t.kind == metric.Pod && p.Node != "" {
			add("bound to node %s", p.Node)
		}
		if !p.Started.IsZero() {
			add("the pod started %s", t.at(p.Started))
		}
	}
	return lines
}

// writeReading describes a reading of an instance. It is empty if there is none. Identity compares
// instances by their CPU counters, whatever the group is. For other groups the evidence has a
// counter without a name, which is not written.
func (t *messageWriter) writeReading(r *Outcome, s *metric.CounterReading) string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	layer := r.Reason.Layer()
	if layer != metric.LayerIdentity && s.Value == 0 && s.Time == 0 {
		return "" // a run without a reading
	}
	if s.Value != 0 && (layer == metric.LayerIdentity || r.group == metric.CPU) {
		add("CPU counter %s", cpuSeconds(s.Value))
	}
	if s.Time != 0 {
		add("read %s", t.atReading(instant(s.Time)))
	}
	if s.Start != 0 {
		add("started %s", t.atStart(instant(s.Start)))
	}
	if s.UID != "" {
		add("pod UID %s", s.UID)
	}
	if s.ID != "" {
		add("container ID %s", shortID(s.ID))
	}
	if s.Path != "" {
		add("cgroup %s", s.Path)
	}
	return strings.Join(parts, ", ")
}

// knownPod returns what the API server says about a pod, or nil if it says nothing.
func (w *Explainer) knownPod(p *cluster.Pod) *Known {
	if p == nil {
		return nil
	}
	k := &Known{UID: p.UID, Phase: p.Phase, QoS: p.QoS, Started: utc(p.Started), Deleted: utc(p.Deleted), AsOf: utc(w.Facts.At)}
	for i := range p.Containers {
		k.Restarts += p.Containers[i].Restarts
	}
	return k
}

// knownContainer returns what the API server says about a container, or nil if it says nothing.
func (w *Explainer) knownContainer(c *cluster.Container) *Known {
	if c == nil {
		return nil
	}
	k := &Known{Why: c.StateReason(), ID: c.ID, Started: utc(c.StartedAt), Restarts: c.Restarts, AsOf: utc(w.Facts.At)}
	switch c.State {
	case cluster.StateWaiting:
		k.State, k.Started = "waiting", time.Time{}
	case cluster.StateRunning:
		k.State = "running"
	case cluster.StateTerminated:
		k.State = "terminated"
	}
	return k
}
