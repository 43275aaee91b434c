package usage

import (
	"errors"
	"fmt"

	"github.com/weir-metrics/weir/metric"
)

// sentences say each reason in words, where no evidence makes them better.
var sentences = [metric.NumReasons]string{
	metric.Unjudged: "nothing is known about it yet",
	metric.Measured: "it is measured",

	metric.PodPending:          "the pod has not started",
	metric.PodFinished:         "the pod has finished",
	metric.PodTerminating:      "the pod is being deleted",
	metric.ContainerNotStarted: "the container is waiting to start",
	metric.ContainerFinished:   "the container has ended",

	metric.NodeUnknown:       "the API server knows no such node",
	metric.NodeExcluded:      "the configuration leaves the node out",
	metric.NodeNoAddress:     "the node has no address of a configured type",
	metric.NodeNotReady:      "the node is not ready and did not answer",
	metric.NodeNotScrapedYet: "the node is still to be read for the first time",
	metric.WarmingUp:         "weir has just started and has seen the node once",

	metric.NodeUnreachable:   "the node cannot be reached",
	metric.NodeCertificate:   "the kubelet's certificate does not verify",
	metric.NodeUnauthorized:  "the kubelet refuses weir's credentials",
	metric.NodeTimeout:       "the node did not answer in time",
	metric.NodeBadPayload:    "the node's answer does not parse",
	metric.NodeWrongIdentity: "another node answered",
	metric.NodeScrapeError:   "the kubelet says it could not collect",

	metric.NotReported:   "the node answered and did not mention it",
	metric.NoData:        "the node wrote 0 for what it could not read",
	metric.Unsupported:   "this source or kernel cannot supply it",
	metric.NotApplicable: "it has none of its own",
	metric.OverLimit:     "it was dropped at a configured limit",

	metric.OtherNode:     "the API server binds the pod to another node",
	metric.OldPod:        "the numbers are of an earlier pod of this name",
	metric.OldContainer:  "the numbers are of an earlier run of the container",
	metric.DeadCgroup:    "no process is left in the cgroup that was reported",
	metric.OlderStart:    "a younger instance of the same name exists",
	metric.Discontinuous: "the counter does not continue the one that was tracked",
	metric.Ambiguous:     "two instances go by this name, nothing tells them apart, and one was chosen",

	metric.FirstSample:  "it was seen once, and a rate needs two readings",
	metric.TooYoung:     "it started too recently for a rate",
	metric.CounterReset: "the counter fell although nothing restarted",
	metric.ClockStep:    "the node's clock jumped",
	metric.Stale:        "the last number is too old to serve",
	metric.Impossible:   "the counter claims more CPU time than the node has",

	metric.Incomplete: "a container of the pod has no number",
}

// Sentence says in one short sentence, without a full stop, why group g has no
// number or a doubtful one.
func Sentence(r metric.Reason, g metric.Group, ev metric.Evidence) string {
	if int(r) >= len(sentences) {
		return "weir does not know this reason"
	}
	s := sentences[r]
	switch {
	case r == metric.Incomplete && ev.Name != "" && ev.Cause != metric.Unjudged:
		s = fmt.Sprintf("container %s has no number: %s", ev.Name, Sentence(ev.Cause, g, metric.Evidence{}))
	case r == metric.Incomplete && ev.Name != "":
		s = fmt.Sprintf("container %s has no number", ev.Name)
	case r == metric.OtherNode && ev.Name != "":
		s = "the API server binds the pod to " + ev.Name
	case r == metric.CounterReset && g == metric.CPU && ev.Other.Value > ev.Got.Value:
		s = fmt.Sprintf("the counter fell from %.6gs to %.6gs although nothing restarted",
			ev.Other.Value*metric.Nanoseconds.Prometheus(), ev.Got.Value*metric.Nanoseconds.Prometheus())
	case r == metric.OverLimit && ev.Limit > 0:
		s = fmt.Sprintf("it was dropped at the configured limit of %.6g", ev.Limit)
	}
	if ev.Err != nil {
		s += ": " + cause(ev.Err).Error()
	}
	return s
}

// cause returns what lies behind a read error: its reason is said already.
func cause(err error) error {
	if read := (*metric.ReadError)(nil); errors.As(err, &read) && read.Err != nil {
		return read.Err
	}
	return err
}
