package explain

import (
	"fmt"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/cluster/resourceusage"
	"github.com/weir-metrics/weir/metric"
)

// question asks why one group of a pod that the API server knows, or of one of its containers, is
// served or not.
type question struct {
	explainer   *Explainer
	pod         *cluster.Pod
	kind        metric.Kind        // Pod or Container
	name        string             // of the container
	container   *cluster.Container // nil for a pod, and for a container that the API server does not list
	asked       metric.Group
	group       metric.Group   // of the best verdict, or else asked
	best        *activeVerdict // nil if no verdict explains it
	measurement                // of the asked group
	// read and node return the reading and the outcome of the pod's node. They are called only if
	// they matter.
	read func() *reading
	node func() Outcome
	// restarted is set by numbers: a container of the pod began again after it was measured.
	restarted bool
}

// step returns the outcome of a question, or false if the step does not decide it.
type step func(q *question) (Outcome, bool)

// podSteps and containerSteps are the order in which reasons are weighed: the first step that
// decides wins, and if none does, it began after the last read. README.md explains the order.
var (
	podSteps = [...]step{
		finished, notStarted, hostNetwork, podNumbers, newerPod, nothingRuns,
		bestVerdict, failedNode, droppedAtLimit, oldPod, missingNumber,
	}
	containerSteps = [...]step{
		finished, containerNumbers, newerPod, notStarted, stoppedContainer, restartedContainer,
		bestVerdict, failedNode, droppedAtLimit, missingNumber,
	}
)

// outcome returns the outcome of the question.
func (q *question) outcome() Outcome {
	q.group = q.asked
	steps := containerSteps[:]
	if q.kind == metric.Pod {
		steps = podSteps[:]
		if q.best != nil {
			q.group = q.best.group
		}
	}
	for _, decide := range steps {
		if r, ok := decide(q); ok {
			return r
		}
	}
	return q.startedAfterRead()
}

// isPresentPod reports whether the numbers are of the pod that the API server knows, as far as UIDs
// show it.
func (q *question) isPresentPod() bool { return q.uid == "" || q.pod.HasUID(q.uid) }

func finished(q *question) (Outcome, bool) {
	if q.pod.Phase != cluster.Succeeded && q.pod.Phase != cluster.Failed {
		return Outcome{}, false
	}
	return Outcome{Reason: metric.PodFinished, Said: string(q.pod.Phase), Since: endOf(q.pod), group: q.group}, true
}

// notStarted decides if the API server reports that the pod has not started.
func notStarted(q *question) (Outcome, bool) {
	if q.pod.Phase == cluster.Running && q.pod.Node != "" {
		return Outcome{}, false
	}
	c := q.container
	if c != nil && c.State == cluster.StateTerminated {
		return notRunning(q.pod, c, q.best), true
	}
	r := pending(q.pod, q.group)
	if q.pod.Node != "" && c != nil {
		r.Container, r.Said = q.name, c.StateReason()
	}
	return r, true
}

// hostNetwork decides about the network of a pod that has no network of its own.
func hostNetwork(q *question) (Outcome, bool) {
	if q.asked != metric.Network || !q.pod.HostNetwork {
		return Outcome{}, false
	}
	r := Outcome{Reason: metric.NotApplicable, Said: "the pod uses its node's network", group: q.group}
	if q.best != nil && q.best.reason == r.Reason {
		r.Since = q.best.since
	}
	return r, true
}

// podNumbers decides if the pod has its numbers, or if the asked metric is not reported although
// others of its group are.
func podNumbers(q *question) (Outcome, bool) {
	switch {
	case !q.isPresentPod():
	case q.complete && resourceusage.PodHasEnded(q.pod, &q.run, func() []*metric.Sample { return q.explainer.containersOf(q.pod) }):
		q.reported, q.restarted = false, true
	case q.complete:
		return q.measurement.outcome(q.group), true
	case q.metricMissing:
		return q.withoutMetric(q.asked), true
	}
	return Outcome{}, false
}

// containerNumbers is podNumbers for a container.
func containerNumbers(q *question) (Outcome, bool) {
	switch {
	case !q.isPresentPod():
	case q.complete && !q.run.HasEnded(q.container):
		return q.measurement.outcome(q.group), true
	case q.metricMissing:
		return q.withoutMetric(q.group), true
	}
	return Outcome{}, false
}

// newerPod decides if the node reports a later pod of the name, which the API server has not
// reported yet.
func newerPod(q *question) (Outcome, bool) {
	if !q.complete || !q.explainer.isNewer(q.pod, &q.measurement) {
		return Outcome{}, false
	}
	text := fmt.Sprintf("the API server still names an earlier pod of this name, %s; node %s reports the next one, %s", q.pod.UID, q.pod.Node, q.uid)
	return Outcome{Reason: metric.WarmingUp, group: q.group, Said: text}, true
}

// nothingRuns decides if no container of a started pod runs that has to be measured. The reason is
// what one of its containers waits for, or else how the first container ended.
func nothingRuns(q *question) (r Outcome, found bool) {
	for i := range q.pod.Containers {
		c := &q.pod.Containers[i]
		switch {
		case c.Required():
			return Outcome{}, false
		case c.Role != cluster.Regular && c.Role != cluster.Sidecar:
		case !found, r.Reason == metric.ContainerFinished && c.State != cluster.StateTerminated:
			r, found = notRunning(q.pod, c, q.best), true
		}
	}
	r.group = q.group
	return r, found
}

// stoppedContainer decides if the API server reports that the container does not run.
func stoppedContainer(q *question) (Outcome, bool) {
	if q.container == nil || q.container.State == cluster.StateRunning {
		return Outcome{}, false
	}
	return notRunning(q.pod, q.container, q.best), true
}

// restartedContainer decides if the numbers are of a run of the container that has ended.
func restartedContainer(q *question) (Outcome, bool) {
	c := q.container
	if !q.reported || !q.isPresentPod() || !q.run.HasEnded(c) {
		return Outcome{}, false
	}
	return startedAfterRead(q.group, q.pod.Node, later(c.StartedAt, q.pod.KnownAt), c.StartedAt, q.read()), true
}

// bestVerdict decides by the best verdict, unless the API server has since contradicted it. If
// the numbers were there until a container restarted, the rejection of a duplicate explains nothing.
func bestVerdict(q *question) (Outcome, bool) {
	if q.best == nil || q.best.outdated(q.pod, q.read()) || q.restarted && q.best.reason.IsRejection() {
		return Outcome{}, false
	}
	return q.best.outcome(q.pod.Node), true
}

// failedNode decides if the node was not read.
func failedNode(q *question) (Outcome, bool) {
	n := q.node()
	return n, !n.Served && n.Reason.Layer() <= metric.LayerScrape
}

// droppedAtLimit decides if something of the node was dropped and the entity is not reported.
func droppedAtLimit(q *question) (Outcome, bool) {
	if n := q.node(); n.over != nil && !q.reported {
		return n.over.dropped(), true
	}
	return Outcome{}, false
}

// oldPod decides if the numbers are of another pod, although the node was read since this one began.
func oldPod(q *question) (Outcome, bool) {
	if !q.reported || q.isPresentPod() || q.read().last.Before(later(beganAt(q.pod), q.pod.KnownAt)) {
		return Outcome{}, false
	}
	return Outcome{Reason: metric.OldPod, group: q.group, evidence: metric.Evidence{
		Rule: "uid", Got: metric.CounterReading{UID: q.uid}, Other: metric.CounterReading{UID: q.pod.UID, Start: nanos(q.pod.Started)},
	}}, true
}

// missingNumber decides by the reason of the reported sample. A reason of layer life is outdated,
// because the API server has since reported something else, and so is an Incomplete pod without a
// verdict.
func missingNumber(q *question) (Outcome, bool) {
	reason := q.missingReason()
	if !q.reported || reason.Layer() == metric.LayerLife {
		return Outcome{}, false
	}
	if q.kind == metric.Pod && (!q.isPresentPod() || reason == metric.Incomplete) || q.kind == metric.Container && q.complete {
		return Outcome{}, false
	}
	return Outcome{Reason: reason, group: q.group}, true
}

// startedAfterRead returns the outcome if no step decides: nothing is known of the entity since it
// began.
func (q *question) startedAfterRead() Outcome {
	began := beganAt(q.pod)
	if q.container != nil {
		began = q.container.StartedAt
	}
	r := startedAfterRead(q.asked, q.pod.Node, later(began, q.pod.KnownAt), began, q.read())
	r.restarted = q.restarted
	return r
}
