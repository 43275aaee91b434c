package explain

import (
	"fmt"
	"strings"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// evidence returns the evidence for r, one item on each line.
func (w *messageWriter) evidence(r *Outcome, sample *metric.Sample) []string {
	var lines evidenceLines
	if r.Served {
		w.addServed(&lines, sample)
	}
	w.addCompared(&lines, r)
	layer := r.Reason.Layer()
	if layer == metric.LayerNode || layer == metric.LayerScrape || r.Late {
		w.addReads(&lines, r)
	}
	if p := w.pod; p != nil && layer == metric.LayerLife {
		if w.kind == metric.Pod && p.Node != "" {
			lines.add("bound to node %s", p.Node)
		}
		if !p.Started.IsZero() {
			lines.add("the pod started %s", w.at(p.Started))
		}
	}
	return lines
}

type evidenceLines []string

func (l *evidenceLines) add(format string, args ...any) {
	*l = append(*l, fmt.Sprintf(format, args...))
}

// addServed adds when the served sample was read and when its instance started.
func (w *messageWriter) addServed(lines *evidenceLines, sample *metric.Sample) {
	if at := sample.Time(w.asked); !at.IsZero() {
		lines.add("read %s", w.atReading(at))
	}
	if start := sample.Instance.StartTime(); !start.IsZero() && sample.Instance.Origin != metric.StartCgroup {
		lines.add("started %s", w.atStart(start))
	}
}

// addCompared adds the reading that was judged, the one that it was compared with, and the limit.
func (w *messageWriter) addCompared(lines *evidenceLines, r *Outcome) {
	e := &r.evidence
	if seen := w.writeReading(r, &e.Got); seen != "" {
		lines.add("seen: %s", seen)
	}
	if other := w.writeReading(r, &e.Other); other != "" {
		name := "previous reading"
		if r.Reason.Layer() == metric.LayerIdentity {
			name = "the duplicate"
			if (r.Reason == metric.OldPod || r.Reason == metric.OldContainer) && e.Other.Time == 0 && e.Other.Value == 0 {
				name = "the present one" // as the API server names it
			}
		}
		lines.add("%s: %s", name, other)
	}
	if e.Limit > 0 && r.Reason == metric.OverLimit {
		lines.add("limit: %.10g", e.Limit)
	}
}

// addReads adds when the node was last read, or last tried if r is about reads that fail.
func (w *messageWriter) addReads(lines *evidenceLines, r *Outcome) {
	read := w.readsBehind(r)
	switch {
	case read.unread != nil:
		return
	case read.err == nil && read.last.IsZero():
		lines.add("the node has not been read yet")
		return
	case read.err == nil:
		lines.add("the node was last read %s", w.at(read.last))
		return
	case !read.last.IsZero():
		lines.add("the node was last tried %s", w.at(read.last))
	}
	if read.success.IsZero() {
		lines.add("it has never answered well")
		return
	}
	lines.add("it last answered well %s", w.at(read.success))
}

// writeReading describes a reading of an instance. It is empty if there is none. Identity compares
// instances by their CPU counters, whatever the group is. For other groups the evidence has a
// counter without a name, which is not written.
func (w *messageWriter) writeReading(r *Outcome, s *metric.CounterReading) string {
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
		add("read %s", w.atReading(instant(s.Time)))
	}
	if s.Start != 0 {
		add("started %s", w.atStart(instant(s.Start)))
	}
	if s.UID != "" {
		add("pod UID %s", s.UID)
	}
	if s.ID != "" {
		add("container ID %s", s.ID.Short())
	}
	if s.Path != "" {
		add("cgroup %s", s.Path)
	}
	return strings.Join(parts, ", ")
}

// knownPod returns what the API server reports about a pod, or nil if it reports nothing.
func (ex *Explainer) knownPod(p *cluster.Pod) *Known {
	if p == nil {
		return nil
	}
	k := &Known{UID: p.UID, Phase: p.Phase, QoS: p.QoS, Started: utc(p.Started), Deleted: utc(p.Deleted), AsOf: utc(ex.Facts.At)}
	for i := range p.Containers {
		k.Restarts += p.Containers[i].Restarts
	}
	return k
}

// knownContainer returns what the API server reports about a container, or nil if it reports nothing.
func (ex *Explainer) knownContainer(c *cluster.Container) *Known {
	if c == nil {
		return nil
	}
	k := &Known{Why: c.StateReason(), ID: c.ID, Started: utc(c.StartedAt), Restarts: c.Restarts, Ending: c.Ending(), AsOf: utc(ex.Facts.At)}
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
