package explain

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/metric"
)

// ShortMessage returns in one short sentence why something is not served. It ends with the name of the
// reason, under which the documentation explains it: "container app has no number: it was first
// seen too recently, and a rate needs two readings 10s apart (FirstSample)".
//
// The text does not change while the reason lasts, so a caller that shows each text once shows it
// once. It contains no errors of reads, because errors contain addresses.
func (o *Outcome) ShortMessage() string {
	return fmt.Sprintf("%s (%v)", o.Message(), o.Reason)
}

// Message is ShortMessage without the name of the reason.
func (o *Outcome) Message() string {
	life := o.Reason.Layer() == metric.LayerLife
	if !life && !o.Served && o.Said != "" {
		return o.Said
	}
	a := nounArguments("")
	a.addStable(o.Reason, o.group, &o.evidence)
	a.addContainer(o)
	if life && !o.Served && o.Reason != metric.PodFinished {
		a["said"] = o.Said
	}
	text := first(messages[known(o.Reason)], a)
	if life || o.Served || o.Late || o.Container == "" || o.kind == metric.Container {
		return text
	}
	return "container " + o.Container + " has no number: " + text
}

// addContainer adds the arguments that name the container of an outcome.
func (a arguments) addContainer(r *Outcome) {
	switch {
	case r.kind == metric.Container:
		if r.Said != "" {
			a["waiting container"] = "the container"
		}
	case r.Container != "":
		a["container"], a["waiting container"] = "container "+r.Container, "container "+r.Container
	default:
		a["container"] = ""
	}
	if r.Late {
		if !r.shown {
			a["unread"] = "its node was last read"
		}
		a["late"] = "the pod"
		if r.restarted {
			a["late"] = "a container of the pod"
		}
		if r.kind == metric.Container {
			a["late"] = "the container"
		}
	}
}

// messageWriter describes outcomes in full, with their evidence.
type messageWriter struct {
	now       time.Time
	kind      metric.Kind
	node      metric.NodeName
	ref       metric.PodRef // of the pod; zero for a node
	container string        // the explained container, if it is one
	asked     metric.Group
	pod       *cluster.Pod
	facts     *cluster.Node
	read      *reading
	missing   []metric.Group // the groups that the container at fault does not have
	nodes     []string       // the nodes that report the pod, if nothing shows which is right
}

func (f *file) messageWriter(kind metric.Kind) *messageWriter {
	return &messageWriter{now: f.explainer.Now, kind: kind, node: f.node, ref: f.ref, pod: f.facts, facts: f.explainer.Facts.Node(f.node), read: f.read}
}

// at formats a time: "at 12:00:05 UTC (3s ago)".
func (w *messageWriter) at(at time.Time) string {
	if at.IsZero() {
		return "at an unknown time"
	}
	return fmt.Sprintf("at %s (%s)", humanize.ClockMillis(at, w.now), w.ago(at))
}

// atReading formats a time of a reading, which is by the node's clock.
func (w *messageWriter) atReading(at time.Time) string {
	if at.IsZero() || w.read == nil || w.read.ahead == 0 {
		return w.at(at)
	}
	return fmt.Sprintf("at %s by the node's clock (%s)", humanize.ClockMillis(at, w.now), w.ago(w.read.byOurClock(at)))
}

// atStart formats when an instance began. That is by the node's clock of that time, which may have
// been another one.
func (w *messageWriter) atStart(at time.Time) string {
	if at.IsZero() || w.read == nil || w.read.ahead == 0 {
		return w.at(at)
	}
	return fmt.Sprintf("at %s by the node's clock", humanize.ClockMillis(at, w.now))
}

// ago describes how long ago t was. A node's clock may be ahead of weir's.
func (w *messageWriter) ago(at time.Time) string {
	switch d := at.Sub(w.now); {
	case d >= time.Second:
		return humanize.Duration(d.Round(time.Second)) + " ahead of weir's clock"
	case d > 0:
		at = w.now
	}
	return humanize.Ago(at, w.now)
}

// names returns the arguments that name the node. The explanation of a node calls it "the node".
func (w *messageWriter) names() arguments {
	if w.kind == metric.Node {
		return nounArguments("")
	}
	return nounArguments(string(w.node))
}

// arguments returns all known arguments for the message of an outcome.
func (w *messageWriter) arguments(r *Outcome) arguments {
	e, a := &r.evidence, w.names()
	a.addStable(r.Reason, r.group, &metric.Evidence{Limit: e.Limit, Cause: e.Cause, Got: e.Got, Other: e.Other})
	if r.Reason == metric.Incomplete {
		a["cause"] = ""
	}
	w.addSubject(a, r)
	a["said"] = r.Said
	if r.Reason == metric.PodPending && r.Container == "" && r.Said != "" && r.Node != "" { // of several
		a["waiting container"] = "a container"
	}
	switch r.Reason {
	case metric.PodFinished:
		a["ended"] = w.ago(r.Since)
	case metric.PodTerminating:
		if w.pod != nil && !w.pod.Deleted.IsZero() {
			a["grace"] = w.grace(w.pod.Deleted)
		}
	case metric.ContainerNotStarted, metric.ContainerFinished:
		w.addState(a, r)
	}
	switch r.Reason.Layer() {
	case metric.LayerReport, metric.LayerRate:
		w.addReadings(a, r)
	case metric.LayerIdentity:
		w.addInstances(a, r.Reason, e)
	}
	return a
}

// addSubject adds the arguments that name the container or the late entity of an outcome.
func (w *messageWriter) addSubject(a arguments, r *Outcome) {
	subject := *r
	if subject.kind = w.kind; subject.kind != metric.Container {
		subject.kind = metric.Pod
	}
	a.addContainer(&subject)
	if !r.Late {
		return
	}
	if !r.shown && !r.Since.IsZero() {
		a["since"] = w.at(r.Since)
	}
	if w.kind != metric.Pod {
		a["late"] = "it"
	}
}

// grace describes how much time a pod that is being deleted has left. The time of a deletion is the end
// of its grace period.
func (w *messageWriter) grace(end time.Time) string {
	if d := end.Sub(w.now); d > 0 {
		return "with " + humanize.Duration(d) + " of grace left"
	}
	return "its grace ended " + w.ago(end)
}

// addState adds how a container that does not run ended.
func (w *messageWriter) addState(a arguments, r *Outcome) {
	c := w.pod.Container(cmp.Or(r.Container, w.container))
	if c == nil {
		return
	}
	if !c.EndedAt().IsZero() {
		a["ended"] = w.ago(w.read.byOurClock(c.EndedAt()))
		switch {
		case c.State != cluster.StateTerminated && c.Ending() != "":
			a["ended"] += ": " + c.Ending()
		case c.State == cluster.StateTerminated && c.Previous.ExitCode != 0: // the state has the reason
			a["ended"] += fmt.Sprintf(" with exit code %d", c.Previous.ExitCode)
		}
	}
	switch c.Restarts {
	case 0:
	case 1:
		a["restarts"] = "once"
	case 2:
		a["restarts"] = "twice"
	default:
		a["restarts"] = humanize.Count(c.Restarts, "time")
	}
}

// addReadings adds the two readings of a counter that an outcome is based on.
func (w *messageWriter) addReadings(a arguments, r *Outcome) {
	e := &r.evidence
	got, other, start := instant(e.Got.Time), instant(e.Other.Time), instant(e.Got.Start)
	if !got.IsZero() {
		a["read"], a["clock"] = w.atReading(got), humanize.ClockMillis(got, w.now)
	}
	if !other.IsZero() {
		a["read before"] = w.atReading(other)
	}
	if last := later(other, got); !last.IsZero() {
		a["read last"] = w.atReading(last)
	}
	switch {
	case r.Reason == metric.NotReported && e.Rule == twoPaths:
		a["other path"] = string(e.Got.Path)
	case r.Reason == metric.NoData && e.Other.Value > 0:
		a["counter before"] = cpuSeconds(e.Other.Value)
	case r.Reason == metric.FirstSample && !other.IsZero():
		a["first seen"] = w.atReading(other)
	}
	if !start.IsZero() && got.After(start) {
		a["run time"] = humanize.Duration(got.Sub(start))
	}
	w.addUsed(a, e.Got.Value-e.Other.Value, got.Sub(other), !other.IsZero())
}

// addUsed adds the CPU time between two readings, if both are known.
func (w *messageWriter) addUsed(a arguments, used float64, window time.Duration, known bool) {
	if known && window > 0 && used > 0 {
		a["used"], a["window"] = cpuSeconds(used), humanize.Duration(window)
		if cores := w.facts.Cores(); cores > 0 {
			a["cores"] = humanize.Decimal(cores, 3) + " cores"
		}
	}
}

// The rules of identity that answers depend on: a container has one cgroup path, and a pod is on
// one node.
const (
	twoPaths  = "two paths, one container"
	placeRule = "place"
)

// addInstances adds what identity compared.
func (w *messageWriter) addInstances(a arguments, reason metric.Reason, e *metric.Evidence) {
	switch reason {
	case metric.OtherNode:
		if a["bound node"] = e.Name; e.Cause == metric.Ambiguous {
			a["chosen node"] = e.Name
		}
	case metric.Ambiguous:
		if e.Rule == placeRule {
			a["several nodes"], a["chosen node"] = "several nodes", e.Name
		} else if w.kind == metric.Pod && e.Name != "" {
			a["ambiguous container"] = "container " + e.Name
		}
	case metric.OldPod:
		w.addOldPod(a, e)
	case metric.OldContainer:
		w.addOldRun(a, e)
	case metric.Discontinuous:
		if e.Rule == twoPaths {
			a["other cgroup"] = string(e.Got.Path)
		}
	case metric.OlderStart:
		if e.Rule == "movement" {
			a["stands still"] = "stands still"
		} else if older := time.Duration(e.Other.Start - e.Got.Start); e.Got.Start != 0 && older >= time.Millisecond {
			a["earlier"] = humanize.Duration(older)
		}
	}
}

// addOldPod adds what shows that a report is of an earlier pod.
func (w *messageWriter) addOldPod(a arguments, e *metric.Evidence) {
	switch {
	case e.Rule == "unknown":
		a["not"] = "does not"
	case e.Rule == "uid" && e.Other.UID == "":
		a["no longer"] = "no longer"
	case e.Rule == "age" && e.Other.Start != 0 && e.Got.Start != 0:
		w.addStarts(a, e)
	}
	a["UID"], a["other UID"] = string(e.Got.UID), string(e.Other.UID)
}

// addOldRun adds what shows that a report is of an earlier run of a container.
func (w *messageWriter) addOldRun(a arguments, e *metric.Evidence) {
	if e.Cause != metric.Unjudged {
		a["no run"] = "none runs now"
	} else if e.Got.Start != 0 && e.Got.Start < e.Other.Start {
		w.addStarts(a, e)
	}
	a["ID"], a["other ID"] = e.Got.ID.Short(), e.Other.ID.Short()
}

// addStarts adds when the older and the newer instance started.
func (w *messageWriter) addStarts(a arguments, e *metric.Evidence) {
	a["older start"], a["newer start"] = w.atStart(instant(e.Got.Start)), w.atStart(instant(e.Other.Start))
}

// message describes r in a sentence without a full stop. It is empty if the number was simply
// measured.
func (w *messageWriter) message(r *Outcome, lastKnown bool) string {
	switch {
	case lastKnown:
		return w.lastKnownMessage(r)
	case r.Reason == metric.Measured:
		return ""
	}
	text := w.reasonMessage(r)
	if r.Container == "" || w.kind == metric.Container || r.Reason.Layer() == metric.LayerLife {
		return text
	}
	if len(w.missing) == 0 {
		return fmt.Sprintf("container %s: %s", r.Container, text)
	}
	names := make([]string, len(w.missing))
	for i, g := range w.missing {
		names[i] = noun(g)
	}
	text = fmt.Sprintf("container %s has no %s: %s", r.Container, humanize.Or(names), text)
	if w.whole(r) {
		text = "a pod is served whole, and " + text
	}
	return text
}

// whole reports whether the group in question is missing only because the container lacks another
// group.
func (w *messageWriter) whole(r *Outcome) bool {
	return len(w.missing) > 0 && r.Container != "" && w.kind != metric.Container && r.Reason.Layer() != metric.LayerLife && !slices.Contains(w.missing, w.asked)
}

// reasonMessage describes a reason with its evidence.
func (w *messageWriter) reasonMessage(r *Outcome) string {
	text := first(messages[known(r.Reason)], w.arguments(r))
	if r.Reason.IsRejection() && r.Said == "" {
		rest := ", and nothing else was reported"
		if r.Reason == metric.OlderStart {
			rest = ", and that one has no number"
		}
		text += rest
	}
	return withError(text, r.evidence.Err)
}

// lastKnownMessage explains why the last known value is served.
func (w *messageWriter) lastKnownMessage(r *Outcome) string {
	text := "the last read did not bring it, and the last known value is served"
	if w.read.err != nil {
		text += ": " + first(messages[known(reasonOf(w.read.err, metric.NodeUnreachable))], w.names())
	}
	if r.Reason == metric.Ambiguous {
		text += "; " + w.reasonMessage(r)
	}
	return text
}

// cpuSeconds formats CPU time, given in nanoseconds, so exactly that two readings can be
// distinguished.
func cpuSeconds(ns float64) string {
	if math.IsNaN(ns) {
		return "an unknown time"
	}
	return fmt.Sprintf("%.6gs", ns*metric.Nanoseconds.Prometheus())
}

// sentence returns a clause as a sentence.
func sentence(s string) string {
	if s == "" {
		return ""
	}
	return strings.ToUpper(s[:1]) + s[1:] + "."
}
