package death

import (
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/cluster/endlog"
)

// Death is the answer about one end. Its fields are the JSON of the API.
type Death struct {
	Namespace string `json:"namespace"`
	Pod       string `json:"pod"`
	UID       string `json:"uid,omitempty"`
	// Container is empty if the pod ended as a whole.
	Container string         `json:"container,omitempty"`
	Node      string         `json:"node,omitempty"`
	Workload  *cluster.Owner `json:"workload,omitempty"`
	// At is when it ended, by the node's clock. Started is when the run began, if that is known.
	At      time.Time  `json:"at"`
	Started *time.Time `json:"started,omitempty"`
	// Gone means that the API server no longer has the pod.
	Gone bool `json:"gone,omitempty"`

	Cause      Cause      `json:"cause"`
	Confidence Confidence `json:"confidence"`
	// Message is the answer without its subject: "killed by the kernel: it reached its own memory limit of 64Mi".
	Message  string     `json:"message"`
	Evidence []Evidence `json:"evidence"`
	Advice   string     `json:"advice,omitempty"`

	// ExitCode, Signal and Reason are those of the run, if it is one: 137, SIGKILL, OOMKilled.
	ExitCode *int32 `json:"exitCode,omitempty"`
	Signal   string `json:"signal,omitempty"`
	Reason   string `json:"reason,omitempty"`

	// Before is what was used in the minutes before the end, if weir measured it.
	Before *Before `json:"before,omitempty"`
}

// Evidence is one fact, and where it is from.
type Evidence struct {
	From string `json:"from"`
	Fact string `json:"fact"`
}

// The origins of evidence.
const (
	fromServer  = "API server"
	fromAgent   = "weir's agent"
	fromEvents  = "Events"
	fromHistory = "weir's memory"
	fromKernel  = "kernel log"
)

// Before is what was used before an end, with what grew in a sentence.
type Before struct {
	endlog.Usage
	// Fastest is the container whose memory rose fastest, or the node if none of the pod's did.
	Fastest string `json:"fastest,omitempty"`
	// Message is about memory: "memory rose from 40Mi to 63Mi in 4m".
	Message string `json:"message,omitempty"`
}

// Report is the answer about all ends of the last hour, of the cluster, a namespace or a pod.
type Report struct {
	Namespace string    `json:"namespace,omitempty"`
	Pod       string    `json:"pod,omitempty"`
	Container string    `json:"container,omitempty"`
	At        time.Time `json:"at"`
	// Since is from when on the report has all ends; zero until weir has listed the pods.
	Since   time.Time `json:"since"`
	Summary string    `json:"summary"`
	// Deaths are the ends, the newest first.
	Deaths []Death `json:"deaths"`
	// Completed is how many runs ended without an error and are not in the list because no pod was named.
	Completed int `json:"completed,omitempty"`
	// LeftOut is how many more ends there are.
	LeftOut int `json:"leftOut,omitempty"`
	// Dropped is how many ends weir no longer has because there were too many.
	Dropped int `json:"dropped,omitempty"`
	// EventsUnread is a sentence with the reason why Events were not used; empty if they were.
	EventsUnread string `json:"eventsUnread,omitempty"`
}
