package endlog

import (
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// End is the end of one run of a container, or of a whole pod, or a kill after which the run goes on: see GoesOn. What
// Pod points to does not change.
type End struct {
	// Pod is the last state of the pod that is known.
	Pod *cluster.Pod
	// Container is the container whose run ended. It is empty if the pod ended as a whole: all of its
	// containers were stopped for the same reason.
	Container string
	// Run is the run that ended; of a pod, the zero Run.
	Run Run
	// At is when it ended: by the node's clock, to the second. If no status has the time, it is Seen.
	At time.Time
	// Seen is when weir learnt of it, by weir's clock.
	Seen time.Time
	// Gone means that the API server no longer has the pod.
	Gone bool
	// Unwatched means that the pod was found missing in a list, so that its last state may be old.
	Unwatched bool
	// Missed is how many earlier runs of the container ended since weir looked last, and are not known.
	Missed int
	// Node is the state of the pod's node when weir learnt of the end.
	Node NodeState
	// Resize is the resize of the pod that its node had not applied while the run lasted; nil for most.
	Resize *cluster.Resize
	// Before is what was used in the minutes before.
	Before Usage
	// Kill is what the agent of the node read of the kernel about it; nil if nothing. If its scope is Child,
	// the run goes on, and Run has only its ID.
	Kill *Kill
	// retracted means that the kill of a child ended the run after all. The run has an end of its own.
	retracted bool
}

// Run is one run of a container that ended.
type Run struct {
	ID       metric.ContainerID
	Started  time.Time // zero if unknown
	Ended    time.Time // zero if unknown
	Reason   string    // OOMKilled, Error, Completed, ...
	Message  string
	ExitCode int32
	Signal   int32
}

// EndedBySIGKILL reports whether SIGKILL ended the run. A runtime that does not report the signal reports exit code 137.
func (r *Run) EndedBySIGKILL() bool { return r.Signal == 9 || r.Signal == 0 && r.ExitCode == 137 }

// GoesOn reports whether the run goes on: the kernel killed only some of its processes.
func (e *End) GoesOn() bool { return e.Kill != nil && e.Kill.Scope == Child }

// NodeState is what the API server reported about a node.
type NodeState struct {
	Known, Ready bool
	Memory       float64 // capacity in bytes; 0 if unknown
}

// StateOf returns the state of a node by the facts. As long as the facts lack nodes, a node that they do
// not have is one that nothing is wrong with.
func StateOf(facts *cluster.Facts, name metric.NodeName) NodeState {
	n := facts.Node(name)
	if n == nil {
		lacking := !facts.Synced || facts.LeftOutNodes() > 0
		return NodeState{Known: lacking, Ready: lacking}
	}
	memory, _ := n.Spec.Get(metric.MemoryNodeCapacity)
	return NodeState{Known: true, Ready: n.Ready, Memory: memory}
}

// Usage is what was used in the minutes before an end. The first Trend of each is that of the container
// that ended, if it was measured; its siblings and the node follow.
type Usage struct {
	Memory []Trend `json:"memory,omitempty"` // working set, in bytes
	CPU    []Trend `json:"cpu,omitempty"`    // in cores
}

// Trend is how the usage of a container or a node changed up to an end.
type Trend struct {
	Kind    string  `json:"kind"` // container or node
	Name    string  `json:"name"`
	First   Reading `json:"first"`
	Highest Reading `json:"highest"`
	Last    Reading `json:"last"` // the last one before the end
}

// Reading is one value, with its time by the node's clock.
type Reading struct {
	At    time.Time `json:"at"`
	Value float64   `json:"value"`
}

// Rise returns by how much the usage rose from the first reading to the last; negative if it fell.
func (t *Trend) Rise() float64 { return t.Last.Value - t.First.Value }

// clamp corrects times that cannot be: nothing ended after weir learnt of it, a runtime reports 1970 for a run that
// it could not start, and whoever may write the status of a pod can write any year, also one that JSON has no form for.
func (e *End) clamp(now time.Time) {
	if e.At.After(now) {
		e.At = now
	}
	if e.Run.Started.After(e.At) || !e.Run.Started.After(time.Unix(0, 0)) {
		e.Run.Started = time.Time{}
	}
}
