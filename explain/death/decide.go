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
	// Events are those on the pod's name, and NodeEvents those on its node.
	Events, NodeEvents []event.Event
	// Child is the last kill by the kernel of a process of the run after which the run went on; nil if none is known.
	Child *endlog.Kill
	// EventsUnread is a sentence with the reason why Events are not known; empty if they are.
	EventsUnread string
	// EventsSince is from when on Events are kept.
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

// The rules in their order: the first that applies decides.
var (
	podRules       = []rule{evictedByKubelet, stoppedByStatus, disrupted, evictedWithoutReason, evictedByAgent, gone}
	containerRules = []rule{killedByKernel, killedForMemory, evictedWithoutReason, evictedByAgent, failedProbe, stoppedByKubelet, runtimeError, outlivedKill, ownExit}
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
	decided := false
	for _, applies := range rules {
		if decided = applies(d); decided {
			break
		}
	}
	if !decided {
		d.conclude(Unknown, Undecided, "")
	}
	return d.death
}

// conclude sets the answer. It always returns true. Without a message it is the sentence of the cause.
func (d *decision) conclude(c Cause, how Confidence, message string, args ...any) bool {
	t := &table[slices.IndexFunc(table, func(t texts) bool { return t.cause == c })]
	d.death.Cause, d.death.Confidence, d.death.Message = c, how, cmp.Or(fmt.Sprintf(message, args...), t.meaning)
	d.death.Advice = d.named(t.advice)
	return true
}

// named replaces the placeholders of an advice by names that a shell takes literally.
func (d *decision) named(advice string) string {
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

// overrun holds that a container of a deleted pod had to be killed; empty if it ended in time.
func (d *decision) overrun(c *cluster.Container) string {
	if d.pod.Deleted.IsZero() || c.Previous.ExitCode != 137 || c.EndedAt().Before(d.pod.Deleted.Add(-time.Second)) {
		return ""
	}
	return ": killed, because it was still running when its grace period was over"
}

// clockSlack is how far the times of Events and of statuses, which are cut to seconds and are of several
// clocks, may differ.
const clockSlack = 2 * time.Second

// during reports whether an Event happened while the run lasted. sure is false for an Event that was
// counted up and also happened later, and for a run whose start is not known.
func (d *decision) during(e *event.Event) (happened, sure bool) {
	began, end := d.run.Started, d.End.At.Add(clockSlack)
	if began.IsZero() {
		began = d.End.At.Add(-time.Hour)
	}
	if !e.Last.After(began) || e.First.After(end) {
		return false, false
	}
	return true, !e.Last.After(end) && !d.run.Started.IsZero()
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

// eventsMissing returns a sentence with the reason why the kubelet may have stopped the run without an Event that is
// known; empty if it has not. It may have if there is no Event about the start, or if it may have written all it can.
func (d *decision) eventsMissing() string {
	began := d.run.Started
	if d.EventsUnread != "" || began.IsZero() || began.Before(d.EventsSince) && d.End.At.Sub(began) > eventInterval {
		return d.EventsUnread
	}
	started, written, first := false, 0, d.End.At
	for i := range d.Events {
		e := &d.Events[i]
		if !d.wrote(kubelet, e) || e.Type == corev1.EventTypeWarning {
			continue
		}
		started = started || e.Part == d.End.Container && (e.Reason == "Started" || e.Reason == "Killing") && !e.Last.Before(began.Add(-clockSlack))
		written += e.Count
		if e.First.Before(first) {
			first = e.First
		}
	}
	if started && written < eventBurst+int(min(d.End.At.Sub(first), time.Hour)/eventInterval) {
		return ""
	}
	return "the kubelet may have dropped Events about this run: after 25 on a pod it writes one in 5 minutes"
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

// occurrence holds how often and when an Event happened.
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
	if e == nil || d.container != nil && !d.killed() {
		return false
	}
	d.fact(fromEvents, "Evicted, of weir's agent, %s", occurrence(e, d.End.At))
	how := Certain
	if d.container != nil && e.Last.Sub(d.End.At) > agentSlack {
		how = Likely
	}
	return d.conclude(AgentEviction, how, "")
}
