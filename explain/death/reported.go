package death

import (
	"strings"

	"github.com/weir-metrics/weir/cluster"
)

// place is where a component reports why it ended something.
type place int

const (
	podStopped       place = iota // the status of the pod, of a kubelet or of the controller of nodes
	podDisrupted                  // the pod's condition DisruptionTarget
	runFailed                     // the status of the run
	containerKilling              // the message of the kubelet's Event Killing
)

// Reasons of DisruptionTarget that are more than a row.
const (
	byEvictionAPI = "EvictionByEvictionAPI"
	byPodGC       = "DeletionByPodGC"
)

// reported are what components report, and what it means. A reason is compared; words are looked for in a
// message, where a report has no reason. In a sentence, NODE becomes the node's name; an empty one is that of
// the cause.
var reported = []struct {
	in            place
	reason, words string
	cause         Cause
	confidence    Confidence
	sentence      string
}{
	{podStopped, "DeadlineExceeded", "", DeadlineExceeded, Certain, ""},
	{podStopped, "Terminated", "node shutdown", NodeShutdown, Certain, ""},
	{podStopped, "NodeShutdown", "", NodeShutdown, Certain, ""},
	{podStopped, "Preempting", "critical pod", Preempted, Certain, "preempted by the kubelet: a critical pod needed its place"},
	{podStopped, "", "Pod was rejected: ", KubeletStopped, Certain, "stopped by the kubelet of node NODE: it started again, and refused the pod"},
	{podStopped, "NodeLost", "", NodeGone, Likely, "its node NODE did not answer any more"},

	{podDisrupted, byEvictionAPI, "", APIEviction, Certain, ""},
	{podDisrupted, cluster.ByAgent, "", AgentEviction, Certain, ""},
	{podDisrupted, "PreemptionByScheduler", "", Preempted, Certain, ""},
	{podDisrupted, "DeletionByTaintManager", "", TaintEviction, Certain, ""},
	{podDisrupted, "DeletionByDeviceTaintManager", "", TaintEviction, Certain, "deleted because of a taint (NoExecute) on a device that it used"},
	{podDisrupted, byPodGC, "", NodeGone, Certain, "its node NODE no longer exists"},
	{podDisrupted, cluster.ByKubelet, "", KubeletStopped, Certain, ""},

	{runFailed, "ContainerCannotRun", "", RuntimeError, Certain, "the runtime could not start it"},
	{runFailed, "StartError", "", RuntimeError, Certain, "the runtime could not start it"},
	// containerd 2: unknownExitReason, with the exit code 255.
	{runFailed, "Unknown", "", RuntimeError, Likely, "the container runtime lost it, as after a restart of the node or of the runtime: the exit code is the runtime's"},
	{runFailed, "ContainerStatusUnknown", "", RuntimeError, Likely, "the kubelet found no trace of it, as after a restart of the node or of the container runtime"},

	{containerKilling, "", "definition changed", KubeletStopped, Certain, "stopped by the kubelet: its definition changed"},
	{containerKilling, "", "FailedPostStartHook", KubeletStopped, Certain, "stopped by the kubelet: its postStart hook failed"},
	{containerKilling, "", " resize requires restart", KubeletStopped, Certain, "stopped by the kubelet: a resize of its resources needs a restart"},
}

// probes are what a kubelet reports of a failed probe: killing is part of the message of its Event Killing, unhealthy is
// how that of its Event Unhealthy begins, in small letters (kuberuntime_manager.go and prober.go of Kubernetes 1.37).
var probes = []struct {
	cause              Cause
	killing, unhealthy string
}{
	{LivenessProbe, "failed liveness probe", "liveness probe"},
	{StartupProbe, "failed startup probe", "startup probe"},
}

// concludeReported sets the answer by a reason or, if that is empty, by a message. It returns false if that has no
// meaning there.
func (d *decision) concludeReported(in place, reason, message string) bool {
	for _, r := range reported {
		if r.in != in || r.reason != reason && reason != "" {
			continue
		}
		if reason != "" || r.words != "" && strings.Contains(message, r.words) {
			return d.conclude(r.cause, r.confidence, "%s", strings.ReplaceAll(r.sentence, "NODE", string(d.pod.Node)))
		}
	}
	return false
}
