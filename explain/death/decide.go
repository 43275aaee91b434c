package death

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/cluster/endlog"
	"github.com/weir-metrics/weir/cluster/eventlog/event"
	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/metric"
)

// Facts are what is known about one end.
type Facts struct {
	End *endlog.End
	// Events are those on the pod's name, and NodeEvents those on its node; both have the newest first.
	Events, NodeEvents []event.Event
	// Child is the last kill by the kernel of a process of the run after which the run went on; nil if none is known.
	Child *endlog.Kill
	// EventsUnread is a sentence with the reason why Events are not known; empty if they are.
	EventsUnread string
	// EventsSince is from when on all Events on the pod are known that were written.
	EventsSince time.Time
	// Words is set if the answer may hold what the container wrote about its end.
	Words bool
}

// decision is the work on one answer.
type decision struct {
	Facts
	death     Death
	pod       *cluster.Pod
	container *cluster.Container // nil if the pod ended as a whole
	run       *endlog.Run
}

// rule decides the cause if it applies.
type rule func(*decision) bool

// The first rule that applies decides. Rules whose source knows the cause better come first.
var (
	podRules = []rule{
		evictedByKubelet,     // the kubelet's reason, with its figures
		stoppedByStatus,      // its other reasons
		disrupted,            // the condition, which stays where the kubelet drops the reason
		evictedWithoutReason, // only an Event is left, and others may write Events, too
		evictedByAgent,
		gone,
	}
	containerRules = []rule{
		killedByKernel,                       // by the agent, which alone knows the limit
		killedForMemory,                      // by the runtime
		evictedWithoutReason, evictedByAgent, // before the probes: these may fail in a container that is being evicted
		failedProbe,
		stoppedByKubelet, // any other Event Killing
		runtimeError,
		outlivedKill, // OOMKilled reports an earlier kill, and no rule above found who ended the run
		ownExit,
	}
)

// Decide returns why something ended.
func Decide(f Facts) Death {
	e := f.End
	d := &decision{Facts: f, pod: e.Pod, run: &e.Run, container: e.Pod.Container(e.Container)}
	d.death = Death{
		Namespace: string(e.Pod.Namespace), Pod: string(e.Pod.Name), UID: string(e.Pod.UID), Container: e.Container, Node: string(e.Pod.Node),
		At: e.At.UTC(), Gone: e.Gone, Evidence: []Evidence{}, Before: before(e),
	}
	if owner := e.Pod.Workload(); owner.Name != "" {
		d.death.Workload = &owner
	}
	rules := podRules
	switch {
	case e.GoesOn():
		rules = containerRules
	case e.Container != "":
		rules = containerRules
		d.describeRun()
	default:
		d.describeStop()
	}
	if !slices.ContainsFunc(rules, func(applies rule) bool { return applies(d) }) {
		d.conclude(Unknown, Undecided, "")
	}
	return d.death
}

// conclude sets the answer. It always returns true. Without a message it is the sentence of the cause.
func (d *decision) conclude(c Cause, confidence Confidence, message string, args ...any) bool {
	t := textsOf(c)
	d.death.Cause, d.death.Confidence, d.death.Message = c, confidence, cmp.Or(fmt.Sprintf(message, args...), t.meaning)
	d.death.Advice = d.fillNames(t.advice)
	return true
}

// fillNames replaces the placeholders of an advice by names that a shell takes literally.
func (d *decision) fillNames(advice string) string {
	pairs := []string{}
	for placeholder, name := range map[string]string{"NAMESPACE": d.death.Namespace, "POD": d.death.Pod, "CONTAINER": d.death.Container, "NODE": d.death.Node} {
		if humanize.IsShellWord(name) {
			pairs = append(pairs, placeholder, name)
		}
	}
	return strings.NewReplacer(pairs...).Replace(advice)
}

// fact adds evidence.
func (d *decision) fact(from, format string, args ...any) {
	d.death.Evidence = append(d.death.Evidence, Evidence{from, fmt.Sprintf(format, args...)})
}

// describeRun adds what the status reports about the run.
func (d *decision) describeRun() {
	r := d.run
	code := r.ExitCode
	d.death.ExitCode, d.death.Reason = &code, r.Reason
	if s, ok := signalOf(r); ok {
		d.death.Signal = s.String()
	}
	if !r.Started.IsZero() {
		began := r.Started.UTC()
		d.death.Started = &began
	}
	text := fmt.Sprintf("exit code %d", r.ExitCode)
	if d.death.Signal != "" {
		text += " (" + d.death.Signal + ")"
	}
	if r.Reason != "" {
		text += ", reason " + r.Reason
	}
	if !r.Started.IsZero() && !r.Ended.IsZero() {
		text += ", after " + humanize.Duration(r.Ended.Sub(r.Started))
	}
	d.fact(fromServer, "%s", text)
	if n := d.End.Missed; n > 0 {
		d.fact(fromServer, "%s of the container ended since weir looked last: how is not known", humanize.Count(n, "earlier run"))
	}
	if r.Message != "" && d.Words {
		d.fact(fromServer, "message of the container: %s", humanize.Excerpt(r.Message, 300))
	}
}

// describeStop adds what the status reports about a pod that ended as a whole.
func (d *decision) describeStop() {
	if s := d.pod.Stop; s != nil {
		text := s.Reason
		if s.Disruption != "" {
			text = strings.TrimPrefix(text+", DisruptionTarget: "+s.Disruption, ", ")
		}
		if s.Message != "" {
			text += ": " + humanize.Excerpt(s.Message, 300)
		}
		d.fact(fromServer, "%s", text)
	}
	switch e := d.End; {
	case e.Unwatched:
		d.fact(fromServer, "the pod was missing when weir listed the pods again: its last state may be old")
	case !d.pod.Deleted.IsZero():
		d.fact(fromServer, "the pod was deleted, and could take until %s to end", humanize.Clock(d.pod.Deleted, e.At))
	case e.Gone:
		d.fact(fromServer, "the pod was deleted without time to end")
	}
	switch n := d.End.Node; {
	case d.pod.Node == "":
	case !n.Known:
		d.fact(fromServer, "node %s does not exist", d.pod.Node)
	case !n.Ready:
		d.fact(fromServer, "node %s was not ready", d.pod.Node)
	}
	for i := range d.pod.Containers {
		c := &d.pod.Containers[i]
		if ending := c.Ending(); ending != "" && c.State != cluster.StateRunning && c.Role != cluster.Init {
			d.fact(fromServer, "container %s ended with %s%s", c.Name, ending, d.overrun(c))
		}
	}
}

// overrun returns that a container of a deleted pod had to be killed; empty if it ended in time.
func (d *decision) overrun(c *cluster.Container) string {
	if d.pod.Deleted.IsZero() || c.Previous.ExitCode != 137 || c.EndedAt().Before(d.pod.Deleted.Add(-time.Second)) {
		return ""
	}
	return ": killed, because it was still running when its grace period was over"
}

// clockSlack is how far the times of Events and of statuses, which are cut to seconds and are of several
// clocks, may differ.
const clockSlack = 2 * time.Second

// during reports whether an Event happened while the run lasted. sure is false if that is not known: weir did not see
// each time that it happened, or the start of the run is not known.
func (d *decision) during(e *event.Event) (happened, sure bool) {
	began, end := d.run.Started, d.End.At.Add(clockSlack)
	if began.IsZero() {
		began = d.End.At.Add(-time.Hour)
	}
	if slices.ContainsFunc(e.Seen, func(at time.Time) bool { return at.After(began) && !at.After(end) }) {
		return true, !d.run.Started.IsZero()
	}
	return len(e.Seen) < e.Count && e.Last.After(began) && !e.First.After(end), false
}

// event returns the newest Event of one source on the pod for which matches returns true; container is that
// of the Event, or empty for any.
func (d *decision) event(source, container string, matches func(*event.Event) bool) *event.Event {
	for i := range d.Events {
		e := &d.Events[i]
		if d.wrote(source, e) && (container == "" || e.Part == container) && matches(e) {
			return e
		}
	}
	return nil
}

// wrote reports whether an Event is of one source, and on the pod itself, not on another one of its name.
func (d *decision) wrote(source string, e *event.Event) bool {
	return e.Source == source && (e.ObjectUID == "" || d.pod.HasUID(metric.PodUID(e.ObjectUID)))
}

// eventOfRun returns the newest Event of the kubelet with a reason that happened while the run lasted, and whose
// message matches; nil if there is none. A nil matches is true for any message.
func (d *decision) eventOfRun(container, reason string, matches func(message string) bool) *event.Event {
	return d.event(kubelet, container, func(e *event.Event) bool {
		happened, _ := d.during(e)
		return happened && e.Reason == reason && (matches == nil || matches(e.Message))
	})
}

// A component may write eventBurst Events of one type on an object at once, and then one each eventInterval. It counts
// the others, and drops them (client-go's EventSourceObjectSpamFilter).
const (
	eventBurst    = 25
	eventInterval = 5 * time.Minute
)

// eventsMissing returns in a sentence why Events about the run may be missing; empty if all are known. The kubelet has
// dropped some if there is none about the last start of a container of the pod, and may have if it wrote as many as it may.
func (d *decision) eventsMissing() string {
	switch {
	case d.EventsUnread != "":
		return d.EventsUnread
	case d.EventsSince.After(d.End.At.Add(-evictionSlack)): // an Event comes up to this long before the end
		return "Events of that time are forgotten"
	}
	container, start := d.lastStart()
	written := !start.After(d.EventsSince) || d.event(kubelet, container, func(e *event.Event) bool {
		return (e.Reason == "Started" || e.Reason == "Killing") && !e.Last.Before(start.Add(-clockSlack)) && !e.First.After(d.End.At.Add(clockSlack))
	}) != nil
	if written && !d.eventsUsedUp() {
		return ""
	}
	return "the kubelet may have dropped Events about this run: after 25 on a pod it writes one in 5 minutes"
}

// eventsUsedUp reports whether the kubelet has used up its Events of type Normal on the pod before the end. Dropped Events
// are in the counts, too.
func (d *decision) eventsUsedUp() bool {
	end, written, first := d.End.At.Add(clockSlack), 0, d.End.At
	for i := range d.Events {
		e := &d.Events[i]
		if !d.wrote(kubelet, e) || e.Type == corev1.EventTypeWarning {
			continue
		}
		written += e.Count
		for _, at := range e.Seen {
			if at.After(end) {
				written--
			}
		}
		if e.First.Before(first) {
			first = e.First
		}
	}
	return written >= eventBurst+int(min(d.End.At.Sub(first), time.Hour)/eventInterval)
}

// lastStart returns which container of the pod started last before the end, and when; the zero time if that is unknown.
func (d *decision) lastStart() (container string, start time.Time) {
	container, start = d.End.Container, d.run.Started
	for i := range d.pod.Containers {
		c := &d.pod.Containers[i]
		for _, at := range []time.Time{c.StartedAt, c.LastStartedAt()} {
			if at.After(start) && at.Before(d.End.At) {
				container, start = c.Name, at
			}
		}
	}
	return container, start
}

// killing returns the newest Event of the kubelet that it kills the container, if matches returns true for its message;
// nil if there is none. If the Events of the run are missing, and it ended as one that is asked to end, this is the last
// Event of an earlier run. A nil matches is true for any message.
func (d *decision) killing(matches func(message string) bool) *event.Event {
	e := d.eventOfRun(d.End.Container, "Killing", matches)
	if e != nil || d.EventsUnread != "" || d.eventsMissing() == "" {
		return e
	}
	if s, _ := signalOf(d.run); d.run.ExitCode != 0 && s.number != 9 && s.number != 15 {
		return nil
	}
	e = d.event(kubelet, d.End.Container, func(e *event.Event) bool { return e.Reason == "Killing" && e.Last.Before(d.run.Started) })
	if e == nil || matches != nil && !matches(e.Message) {
		return nil
	}
	return e
}

// occurrence returns how often and when an Event happened.
func occurrence(e *event.Event, at time.Time) string {
	text := "at " + humanize.Clock(e.Last, at)
	if e.Count > 1 {
		text = fmt.Sprintf("%d times, last %s", e.Count, text)
	}
	return text
}

// The components that make Events. Event texts are not shown: to list Events needs a right of its own.
const (
	kubelet   = "kubelet"
	weirAgent = "weir-agent"
)

// evictionSlack is how long before or after the Event of an eviction its containers end. agentSlack is how long
// before the agent's Event it kills the processes of a pod.
const evictionSlack, agentSlack = 2 * time.Minute, 15 * time.Second

// evictedByAgent finds the Event of weir's agent. A run that ended before its pod was deleted was killed at once, or
// the agent did not end it.
func evictedByAgent(d *decision) bool {
	e := d.event(weirAgent, "", func(e *event.Event) bool {
		away := d.End.At.Sub(e.Last)
		return e.Reason == "Evicted" && away < evictionSlack && away > -evictionSlack
	})
	if e == nil || d.container != nil && !d.run.EndedBySIGKILL() {
		return false
	}
	d.fact(fromEvents, "Evicted, of weir's agent, %s", occurrence(e, d.End.At))
	confidence := Certain
	if d.container != nil && e.Last.Sub(d.End.At) > agentSlack {
		confidence = Likely
	}
	return d.conclude(AgentEviction, confidence, "")
}
