package explain

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/metric"
)

// ShortMessage says in one short sentence why something is not served. It ends with the name of the
// reason, under which the documentation explains it: "container app has no number: it was first
// seen too recently, and a rate needs two readings 10s apart (FirstSample)".
//
// The text does not change while the reason lasts, so a caller that shows each text once shows it
// once. It contains no errors of reads, because errors contain addresses.
func (r *Outcome) ShortMessage() string {
	return fmt.Sprintf("%s (%v)", r.Message(), r.Reason)
}

// Message is ShortMessage without the name of the reason.
func (r *Outcome) Message() string {
	life := r.Reason.Layer() == metric.LayerLife
	if !life && !r.Served && r.Said != "" {
		return r.Said
	}
	a := nounArguments("")
	a.addStable(r.Reason, r.group, &r.evidence)
	a.addContainer(r)
	if life && !r.Served && r.Reason != metric.PodFinished {
		a["said"] = r.Said
	}
	text := first(messages[known(r.Reason)], a)
	if life || r.Served || r.Late || r.Container == "" || r.kind == metric.Container {
		return text
	}
	return "container " + r.Container + " has no number: " + text
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
	return &messageWriter{now: f.w.Now, kind: kind, node: f.node, ref: f.ref, pod: f.facts, facts: f.w.Facts.Node(f.node), read: f.read}
}

// at formats a time: "at 12:00:05 UTC (3s ago)".
func (t *messageWriter) at(at time.Time) string {
	if at.IsZero() {
		return "at an unknown time"
	}
	return fmt.Sprintf("at %s (%s)", humanize.ClockMillis(at, t.now), t.ago(at))
}

// atReading formats a time of a reading, which is by the node's clock.
func (t *messageWriter) atReading(at time.Time) string {
	if at.IsZero() || t.read == nil || t.read.ahead == 0 {
		return t.at(at)
	}
	return fmt.Sprintf("at %s by the node's clock (%s)", humanize.ClockMillis(at, t.now), t.ago(t.read.byOurClock(at)))
}

// atStart formats when an instance began. That is by the node's clock of that time, which may have
// been another one.
func (t *messageWriter) atStart(at time.Time) string {
	if at.IsZero() || t.read == nil || t.read.ahead == 0 {
		return t.at(at)
	}
	return fmt.Sprintf("at %s by the node's clock", humanize.ClockMillis(at, t.now))
}

// ago says how long ago t was. A node's clock may be ahead of weir's.
func (t *messageWriter) ago(at time.Time) string {
	switch d := at.Sub(t.now); {
	case d >= time.Second:
		return humanize.Duration(d.Round(time.Second)) + " ahead of weir's clock"
	case d > 0:
		at = t.now
	}
	return humanize.Ago(at, t.now)
}

// names returns the arguments that name the node. The explanation of a node calls it "the node".
func (t *messageWriter) names() arguments {
	if t.kind == metric.Node {
		return nounArguments("")
	}
	return nounArguments(string(t.node))
}

// arguments returns all known arguments for the message of an outcome.
func (t *messageWriter) arguments(r *Outcome) arguments {
	e, a := &r.evidence, t.names()
	a.addStable(r.Reason, r.group, &metric.Evidence{Limit: e.Limit, Cause: e.Cause, Got: e.Got, Other: e.Other})
	if r.Reason == metric.Incomplete {
		a["cause"] = ""
	}
	t.addSubject(a, r)
	a["said"] = r.Said
	if r.Reason == metric.PodPending && r.Container == "" && r.Said != "" && r.Node != "" { // of several
		a["waiting container"] = "a container"
	}
	switch r.Reason {
	case metric.PodFinished:
		a["ended"] = t.ago(r.Since)
	case metric.PodTerminating:
		if t.pod != nil && !t.pod.Deleted.IsZero() {
			a["grace"] = t.grace(t.pod.Deleted)
		}
	case metric.ContainerNotStarted, metric.ContainerFinished:
		t.addState(a, r)
	}
	switch r.Reason.Layer() {
	case metric.LayerReport, metric.LayerRate:
		t.addReadings(a, r)
	case metric.LayerIdentity:
		t.addInstances(a, r.Reason, e)
	}
	return a
}

// addSubject adds the arguments that name the container or the late entity of an outcome.
func (t *messageWriter) addSubject(a arguments, r *Outcome) {
	subject := *r
	if subject.kind = t.kind; subject.kind != metric.Container {
		subject.kind = metric.Pod
	}
	a.addContainer(&subject)
	if !r.Late {
		return
	}
	if !r.shown && !r.Since.IsZero() {
		a["since"] = t.at(r.Since)
	}
	if t.kind != metric.Pod {
		a["late"] = "it"
	}
}

// grace says how much time a pod that is being deleted has left. The time of a deletion is the end
// of its grace period.
func (t *messageWriter) grace(end time.Time) string {
	if d := end.Sub(t.now); d > 0 {
		return "with " + humanize.Duration(d) + " of grace left"
	}
	return "its grace ended " + t.ago(end)
}

// addState adds how a container that does not run ended.
func (t *messageWriter) addState(a arguments, r *Outcome) {
	name := r.Container
	if name == "" {
		name = t.container
	}
	c := t.pod.Container(name)
	if c == nil {
		return
	}
	if !c.EndedAt().IsZero() {
		a["ended"] = t.ago(t.read.byOurClock(c.EndedAt()))
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
func (t *messageWriter) addReadings(a arguments, r *Outcome) {
	e := &r.evidence
	got, other, start := instant(e.Got.Time), instant(e.Other.Time), instant(e.Got.Start)
	if !got.IsZero() {
		a["read"], a["clock"] = t.atReading(got), humanize.ClockMillis(got, t.now)
	}
	if !other.IsZero() {
		a["read before"] = t.atReading(other)
	}
	if last := later(other, got); !last.IsZero() {
		a["read last"] = t.atReading(last)
	}
	switch {
	case r.Reason == metric.NotReported && e.Rule == twoPaths:
		a["other path"] = string(e.Got.Path)
	case r.Reason == metric.NoData && e.Other.Value > 0:
		a["counter before"] = cpuSeconds(e.Other.Value)
	case r.Reason == metric.FirstSample && !other.IsZero():
		a["first seen"] = t.atReading(other)
	}
	if !start.IsZero() && got.After(start) {
		a["run time"] = humanize.Duration(got.Sub(start))
	}
	t.addUsed(a, e.Got.Value-e.Other.Value, got.Sub(other), !other.IsZero())
}

// addUsed adds the CPU time between two readings, if both are known.
func (t *messageWriter) addUsed(a arguments, used float64, window time.Duration, known bool) {
	if known && window > 0 && used > 0 {
		a["used"], a["window"] = cpuSeconds(used), humanize.Duration(window)
		if cores := t.facts.Cores(); cores > 0 {
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
func (t *messageWriter) addInstances(a arguments, reason metric.Reason, e *metric.Evidence) {
	switch reason {
	case metric.OtherNode:
		if a["bound node"] = e.Name; e.Cause == metric.Ambiguous {
			a["chosen node"] = e.Name
		}
	case metric.Ambiguous:
		if e.Rule == placeRule {
			a["several nodes"], a["chosen node"] = "several nodes", e.Name
		} else if t.kind == metric.Pod && e.Name != "" {
			a["ambiguous container"] = "container " + e.Name
		}
	case metric.OldPod:
		t.addOldPod(a, e)
	case metric.OldContainer:
		t.addOldRun(a, e)
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
func (t *messageWriter) addOldPod(a arguments, e *metric.Evidence) {
	switch {
	case e.Rule == "unknown":
		a["not"] = "does not"
	case e.Rule == "uid" && e.Other.UID == "":
		a["no longer"] = "no longer"
	case e.Rule == "age" && e.Other.Start != 0 && e.Got.Start != 0:
		t.addStarts(a, e)
	}
	a["UID"], a["other UID"] = string(e.Got.UID), string(e.Other.UID)
}

// addOldRun adds what shows that a report is of an earlier run of a container.
func (t *messageWriter) addOldRun(a arguments, e *metric.Evidence) {
	if e.Cause != metric.Unjudged {
		a["no run"] = "none runs now"
	} else if e.Got.Start != 0 && e.Got.Start < e.Other.Start {
		t.addStarts(a, e)
	}
	a["ID"], a["other ID"] = shortID(e.Got.ID), shortID(e.Other.ID)
}

// addStarts adds when the older and the newer instance started.
func (t *messageWriter) addStarts(a arguments, e *metric.Evidence) {
	a["older start"], a["newer start"] = t.atStart(instant(e.Got.Start)), t.atStart(instant(e.Other.Start))
}

// message describes r in a sentence without a full stop. It is empty if the number was simply
// measured.
func (t *messageWriter) message(r *Outcome, lastKnown bool) string {
	switch {
	case lastKnown:
		return t.lastKnownMessage(r)
	case r.Reason == metric.Measured:
		return ""
	}
	text := t.reasonMessage(r)
	if r.Container == "" || t.kind == metric.Container || r.Reason.Layer() == metric.LayerLife {
		return text
	}
	if len(t.missing) == 0 {
		return fmt.Sprintf("container %s: %s", r.Container, text)
	}
	names := make([]string, len(t.missing))
	for i, g := range t.missing {
		names[i] = noun(g)
	}
	text = fmt.Sprintf("container %s has no %s: %s", r.Container, humanize.Or(names), text)
	if t.whole(r) {
		text = "a pod is served whole, and " + text
	}
	return text
}

// whole reports whether the group in question is missing only because the container lacks another
// group.
func (t *messageWriter) whole(r *Outcome) bool {
	return len(t.missing) > 0 && r.Container != "" && t.kind != metric.Container && r.Reason.Layer() != metric.LayerLife && !slices.Contains(t.missing, t.asked)
}

// reasonMessage describes a reason with its evidence.
func (t *messageWriter) reasonMessage(r *Outcome) string {
	text := first(messages[known(r.Reason)], t.arguments(r))
	if r.Reason.IsRejection() && r.Said == "" {
		rest := ", and nothing else was reported"
		if r.Reason == metric.OlderStart {
			rest = ", and that one has no number"
		}
		text += rest
	}
	return withError(text, r.evidence.Err)
}

// lastKnownMessage says why the last known value is served.
func (t *messageWriter) lastKnownMessage(r *Outcome) string {
	text := "the last read did not bring it, and the last known value is served"
	if t.read.err != nil {
		text += ": " + first(messages[known(reasonOf(t.read.err, metric.NodeUnreachable))], t.names())
	}
	if r.Reason == metric.Ambiguous {
		text += "; " + t.reasonMessage(r)
	}
	return text
}

// shortID returns the usual short form of a container ID.
func shortID(id metric.ContainerID) string {
	if len(id) > 12 {
		return string(id[:12])
	}
	return string(id)
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
