package metric

import (
	"errors"
	"fmt"
	"strings"
)

// sentences say each reason in words, where no evidence makes them better.
var sentences = [NumReasons]string{
	Unjudged: "nothing is known about it yet",
	Measured: "it is measured",

	PodPending:          "the pod has not started",
	PodFinished:         "the pod has finished",
	PodTerminating:      "the pod is being deleted",
	ContainerNotStarted: "the container is waiting to start",
	ContainerFinished:   "the container has ended",

	NodeUnknown:       "the API server knows no such node",
	NodeExcluded:      "the configuration leaves the node out",
	NodeNoAddress:     "the node has no address of a configured type",
	NodeNotReady:      "the node is not ready and gave no numbers",
	NodeNotScrapedYet: "the node has not been read yet",
	WarmingUp:         "weir has just begun to read the node and has seen it once",

	NodeUnreachable:   "the node cannot be reached",
	NodeCertificate:   "the kubelet's certificate does not verify",
	NodeUnauthorized:  "the kubelet refuses weir's credentials",
	NodeTimeout:       "the node did not answer in time",
	NodeBadPayload:    "the node's answer does not parse",
	NodeWrongIdentity: "another node answered",
	NodeScrapeError:   "the kubelet says it could not collect",

	NotReported:   "the node answered and did not mention it",
	NoData:        "the node wrote 0 for what it could not read",
	Unsupported:   "this source or kernel cannot supply it",
	NotApplicable: "it has none of its own",
	OverLimit:     "it was dropped at a configured limit",

	OtherNode:     "the API server binds the pod to another node",
	OldPod:        "the numbers are of an earlier pod of this name",
	OldContainer:  "the numbers are of an earlier run of the container",
	DeadCgroup:    "no process is left in the cgroup that was reported",
	OlderStart:    "a younger instance of the same name exists",
	Discontinuous: "the counter does not continue the one that was tracked",
	Ambiguous:     "two instances go by this name, nothing tells them apart, and one was chosen",

	FirstSample:  "it was seen once, and a rate needs two readings",
	TooYoung:     "it started too recently for a rate",
	CounterReset: "the counter fell although nothing restarted",
	ClockStep:    "the node's clock jumped",
	Stale:        "the last number is too old to serve",
	Impossible:   "the counter claims more CPU time than the node has",

	Incomplete: "a container of the pod has no number",
}

// Sentence says in one short sentence, without a full stop, why group g has no
// number or a doubtful one.
func (r Reason) Sentence(g Group, ev Evidence) string {
	if int(r) >= len(sentences) {
		return "weir does not know this reason"
	}
	s := sentences[r]
	switch {
	case r == Incomplete && ev.Name != "" && ev.Cause != Unjudged:
		s = fmt.Sprintf("container %s has no number: %s", ev.Name, ev.Cause.Sentence(g, Evidence{}))
	case r == Incomplete && ev.Name != "":
		s = fmt.Sprintf("container %s has no number", ev.Name)
	case r == NodeNotReady && ev.Cause != Unjudged:
		s = "the node is not ready, and " + strings.Replace(ev.Cause.Sentence(g, Evidence{}), "the node", "it", 1)
	case r == OtherNode && ev.Name != "":
		s = "the API server binds the pod to " + ev.Name
	case r == CounterReset && g == CPU && ev.Other.Value > ev.Got.Value:
		s = fmt.Sprintf("the counter fell from %.6gs to %.6gs although nothing restarted",
			ev.Other.Value*Nanoseconds.Prometheus(), ev.Got.Value*Nanoseconds.Prometheus())
	case r == OverLimit && ev.Limit > 0:
		s = fmt.Sprintf("it was dropped at the configured limit of %.6g", ev.Limit)
	}
	if ev.Err != nil {
		s += ": " + cause(ev.Err).Error()
	}
	return s
}

// cause returns what lies behind a read error: its reason is said already.
func cause(err error) error {
	if read := (*ReadError)(nil); errors.As(err, &read) && read.Err != nil {
		return read.Err
	}
	return err
}
