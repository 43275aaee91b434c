package explain

import (
	"fmt"
	"math"
	"strings"

	"github.com/weir-metrics/weir/metric"
)

// naming puts a node's name into a sentence about the node.
func (t *teller) naming(s string) string {
	if t.node == "" || t.kind == metric.Node {
		return s
	}
	for _, n := range [...]struct{ from, to string }{
		{"no such node", "no node " + string(t.node)},
		{"another node answered", "another node answered in place of " + string(t.node)},
		{"the node's", "node " + string(t.node) + "'s"},
		{"the node", "node " + string(t.node)},
		{"the kubelet's", "the kubelet's"},
		{"the kubelet", "the kubelet of " + string(t.node)},
	} {
		if strings.Contains(s, n.from) {
			s = strings.Replace(s, n.from, n.to, 1)
			break
		}
	}
	if !strings.Contains(s, string(t.node)) {
		s = fmt.Sprintf("node %s: %s", t.node, s)
	}
	return s
}

// told says a reason with its evidence.
func (t *teller) told(r *Ruling) string {
	e := &r.evidence
	ev := metric.Evidence{Limit: e.Limit, Err: e.Err}
	if r.Reason == metric.NodeNotReady {
		ev.Cause = e.Cause
	}
	plain := r.Reason.Sentence(r.group, ev)
	switch r.Reason {
	case metric.PodPending:
		switch {
		case r.Container != "" && r.Said != "" && t.kind == metric.Container:
			return fmt.Sprintf("%s; the container waits: %s", plain, r.Said)
		case r.Container != "" && r.Said != "":
			return fmt.Sprintf("%s; container %s waits: %s", plain, r.Container, r.Said)
		case r.Said != "" && r.Node != "": // of several
			return plain + "; a container waits: " + r.Said
		case r.Said != "":
			return plain + "; " + r.Said
		}
		return plain
	case metric.PodFinished:
		if r.Said != "" {
			plain += " (" + r.Said + ")"
		}
		return strings.TrimSpace(plain + " " + t.ago(r.Since))
	case metric.PodTerminating:
		if t.pod != nil && !t.pod.Deleted.IsZero() {
			return "the pod is being deleted, " + t.toBe(t.pod.Deleted) + ", and is no longer reported"
		}
		return plain
	case metric.ContainerNotStarted, metric.ContainerFinished:
		return t.state(r, plain)
	case metric.NodeNotScrapedYet:
		if r.Late {
			what := "it"
			if t.kind == metric.Pod {
				what = "the pod"
			}
			text := what + " began after its node was last read"
			if !r.Since.IsZero() {
				text = fmt.Sprintf("%s began %s, after its node was last read", what, t.at(r.Since))
			}
			return text
		}
		return t.naming(plain)
	}
	switch r.Reason.Layer() {
	case metric.LayerNode, metric.LayerScrape:
		return t.naming(plain)
	case metric.LayerReport:
		return t.report(r, plain)
	case metric.LayerIdentity:
		return t.identity(r, plain)
	case metric.LayerRate:
		return t.rate(r, plain)
	}
	return plain
}

// state says what a container waits for or how it ended.
func (t *teller) state(r *Ruling, text string) string {
	name := r.Container
	if name != "" && t.kind != metric.Container {
		text = strings.Replace(text, "the container", "container "+name, 1)
	}
	if name == "" {
		name = t.container
	}
	if r.Said != "" {
		text += ": " + r.Said
	}
	c := t.pod.Container(name)
	if c == nil {
		return text
	}
	if !c.EndedAt().IsZero() {
		if r.Reason == metric.ContainerFinished {
			text += ", " + t.ago(c.EndedAt())
		} else {
			text += "; its last run ended " + t.ago(c.EndedAt())
		}
	}
	if c.Restarts > 0 {
		text += fmt.Sprintf("; restarted %s", times(int(c.Restarts)))
	}
	return text
}

// report says what is wrong with what the node reported.
func (t *teller) report(r *Ruling, plain string) string {
	switch e := &r.evidence; r.Reason {
	case metric.NotApplicable:
		if r.Said != "" {
			return r.Said
		}
	case metric.NotReported:
		if at := instant(e.Other.Time); !at.IsZero() {
			return plain + "; it was last reported " + t.at(at)
		}
	case metric.NoData:
		if e.Other.Value > 0 {
			return fmt.Sprintf("%s; its counter was %s %s", plain, seconds(e.Other.Value), t.at(instant(e.Other.Time)))
		}
	}
	return plain
}

// rate says why two readings make no rate.
func (t *teller) rate(r *Ruling, plain string) string {
	e := &r.evidence
	got, other, start := instant(e.Got.Time), instant(e.Other.Time), instant(e.Got.Start)
	switch r.Reason {
	case metric.FirstSample:
		if !got.IsZero() {
			return fmt.Sprintf("it was seen once, %s, and a rate needs two readings", t.at(got))
		}
	case metric.TooYoung:
		if !start.IsZero() && !got.IsZero() && e.Due > e.Got.Start {
			return fmt.Sprintf("it had run for %s when it was read, and a rate needs %s", metric.Span(got.Sub(start)), metric.Span(instant(e.Due).Sub(start)))
		}
	case metric.CounterReset:
		if e.Other.Value > e.Got.Value && r.group == metric.CPU {
			return fmt.Sprintf("the counter fell from %s to %s although nothing restarted", seconds(e.Other.Value), seconds(e.Got.Value))
		}
	case metric.ClockStep:
		if !got.IsZero() {
			return fmt.Sprintf("%s; it now says %s", t.naming(plain), clock(got, t.now))
		}
		return t.naming(plain)
	case metric.Stale:
		if last := later(other, got); !last.IsZero() {
			return fmt.Sprintf("%s: it was read %s", plain, t.at(last))
		}
	case metric.Impossible:
		if used, window := e.Got.Value-e.Other.Value, got.Sub(other); !other.IsZero() && window > 0 && used > 0 {
			text := fmt.Sprintf("the counter claims %s of CPU time in %s", seconds(used), metric.Span(window))
			if cores := t.facts.Cores(); cores > 0 {
				return fmt.Sprintf("%s, and the node has %.4g cores", text, cores)
			}
			return text + ", which is more than the node has"
		}
	}
	return plain
}

// identity says which numbers were turned away, where they were all there was,
// or which were chosen.
func (t *teller) identity(r *Ruling, plain string) string {
	e := &r.evidence
	if r.Reason == metric.Ambiguous {
		switch {
		case e.Rule == "place":
			return fmt.Sprintf("several nodes report it, nothing tells which is right, and %s was chosen", e.Name)
		case t.kind == metric.Pod && e.Name != "":
			return fmt.Sprintf("two instances go by the name of container %s, nothing tells them apart, and one was chosen", e.Name)
		}
		return plain
	}
	if r.Said != "" {
		return r.Said
	}
	return t.away(r.Reason, e, plain) + ", and nothing else was reported"
}

// away says why an instance was turned away.
func (t *teller) away(reason metric.Reason, e *metric.Evidence, plain string) string {
	got, other := instant(e.Got.Start), instant(e.Other.Start)
	switch reason {
	case metric.OtherNode:
		switch {
		case e.Cause == metric.Ambiguous && e.Name != "":
			return fmt.Sprintf("several nodes report the pod, nothing tells which is right, and %s was chosen", e.Name)
		case e.Name != "":
			return "the API server binds the pod to " + e.Name
		}
	case metric.OldPod:
		switch {
		case e.Other.UID == "" && e.Rule == "uid":
			return "the API server knows no such pod any more"
		case e.Rule == "age" && !other.IsZero() && !got.IsZero():
			return fmt.Sprintf("the numbers are of something that started %s, and the present pod only %s", t.at(got), t.at(other))
		case e.Got.UID != "" && e.Other.UID != "":
			return fmt.Sprintf("the numbers are of an earlier pod of this name: its UID is %s, the present one's %s", e.Got.UID, e.Other.UID)
		}
	case metric.OldContainer:
		if e.Got.ID != "" && e.Other.ID != "" {
			return fmt.Sprintf("the numbers are of an earlier run of the container: %s, and the present one is %s", short(e.Got.ID), short(e.Other.ID))
		}
	case metric.OlderStart:
		switch {
		case e.Rule == "movement":
			return "its counter rests while that of a rival of the same name moves"
		case !got.IsZero() && !other.IsZero():
			return fmt.Sprintf("it started %s before a rival of the same name", metric.Span(other.Sub(got)))
		}
	}
	return plain
}

// short cuts a container ID as people do.
func short(id metric.ContainerID) string {
	if len(id) > 12 {
		return string(id[:12])
	}
	return string(id)
}

func times(n int) string {
	switch n {
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return fmt.Sprintf("%d times", n)
}

// seconds says an amount of CPU time, of which ns is in nanoseconds.
func seconds(ns float64) string {
	if math.IsNaN(ns) {
		return "an unknown time"
	}
	return fmt.Sprintf("%.6gs", ns*metric.Nanoseconds.Prometheus())
}
