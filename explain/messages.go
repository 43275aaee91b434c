package explain

import (
	"errors"
	"fmt"
	"time"

	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/metric"
)

// messages describe each reason in a sentence without a full stop. The first template of a reason
// with all arguments known is used, so the most exact template comes first. The last one needs only
// "node", "node's" and "kubelet", which are always known.
var messages = [metric.NumReasons][]template{
	metric.Unjudged: {"nothing is known about it yet"},
	metric.Measured: {"it is measured"},

	metric.PodPending: {
		"the pod has not started; {waiting container} waits: {said}",
		"the pod has not started[; {said}]",
	},
	metric.PodFinished:    {"the pod has finished[ ({said})][ {ended}]"},
	metric.PodTerminating: {"the pod is being deleted[, {grace}, and is no longer reported]"},
	metric.ContainerNotStarted: {
		"{container} is waiting to start[: {said}][; its last run ended {ended}][; restarted {restarts}]",
		"no container of the pod has started[: {said}]",
	},
	metric.ContainerFinished: {
		"{container} has ended[: {said}][, {ended}][; restarted {restarts}]",
		"the pod's containers have ended[: {said}]",
	},

	metric.NodeUnknown:   {"the API server does not know {node}"},
	metric.NodeExcluded:  {"the configuration excludes {node}"},
	metric.NodeNoAddress: {"{node} has no address of a configured type"},
	metric.NodeNotReady: {
		"{node} is not ready, and {cause}",
		"{node} is not ready and has returned no numbers",
	},
	metric.NodeNotScrapedYet: {
		"{late} started[ {since},] after {unread}",
		"{late} started lately, and the last answer of its node does not show it",
		"{node} has not been read yet",
	},
	metric.WarmingUp: {
		"{said}",
		"weir has just begun to read {node} and has read it once",
	},

	metric.NodeUnreachable:   {"{node} cannot be reached"},
	metric.NodeCertificate:   {"the certificate of {kubelet} cannot be verified"},
	metric.NodeUnauthorized:  {"{kubelet} refuses weir's credentials"},
	metric.NodeTimeout:       {"{node} did not answer in time"},
	metric.NodeBadPayload:    {"{node's} answer cannot be parsed"},
	metric.NodeWrongIdentity: {"another node answered in place of {node}"},
	metric.NodeScrapeError:   {"{kubelet} reports that it could not collect metrics"},

	metric.NotReported:   {"{node} reported it only by the path {other path}, which may not be its own cgroup", "{node} answered without it[; it was last reported {read before}]"},
	metric.NoData:        {"{node} wrote 0 for what it could not read[; its counter was {counter before} {read before}]"},
	metric.Unsupported:   {"{said}", "this source or kernel cannot supply it"},
	metric.NotApplicable: {"{said}", "it has none of its own"},
	metric.OverLimit:     {"{said}", "it was dropped at the configured limit[ of {limit}]"},

	metric.OtherNode: {
		"several nodes report the pod, nothing shows which is right, and {chosen node} was chosen",
		"the API server binds the pod to {bound node}",
		"the API server binds the pod to another node",
	},
	metric.OldPod: {
		"{said}",
		"the API server {not} know this pod",
		"the API server {no longer} knows this pod",
		"the numbers are of a pod that started {older start}; the present pod started {newer start}",
		"the numbers are of an earlier pod of this name[: its UID is {UID}, the present pod's is {other UID}]",
	},
	metric.OldContainer: {
		"the numbers are of a run of the container that has ended[: {ID}]; {no run}",
		"the numbers are of an earlier run of the container: {ID}; the present run is {other ID}",
		"the numbers are of an earlier run of the container[, which started {older start}; the present run started {newer start}]",
	},
	metric.DeadCgroup: {"no process is left in the cgroup that was reported"},
	metric.OlderStart: {
		"its counter {stands still} while that of a duplicate of the same name moves",
		"it started {earlier} before a duplicate of the same name",
		"a younger instance of the same name exists",
	},
	metric.Discontinuous: {
		"the numbers are of {other cgroup}, which is not its own cgroup",
		"the counter does not continue the one that was tracked",
	},
	metric.Ambiguous: {
		"several nodes report it, nothing shows which is right, and {chosen node} was chosen",
		"{several nodes} report it, nothing shows which is right, and one was chosen",
		"two instances have the name of {ambiguous container}, nothing distinguishes them, and one was chosen",
		"two instances have this name, nothing distinguishes them, and one was chosen",
	},

	metric.FirstSample: {
		"it was first seen {first seen}, and a rate needs two readings {needed} apart",
		"no usable reading precedes the one taken {read}, and a rate needs two",
		"it was first seen too recently, and a rate needs two readings[ {needed} apart]",
	},
	metric.TooYoung: {
		"it had run for {run time} when it was read, and a rate since the start needs {needed}",
		"it started too recently for a rate",
	},
	metric.CounterReset: {"the counter fell[ from {counter before} to {counter}] although nothing restarted"},
	metric.ClockStep:    {"{node's} clock jumped[; the last reading has the time {clock}]"},
	metric.Stale:        {"the last number is too old to serve[: it was read {read last}]"},
	metric.Impossible: {
		"the counter claims {used} of CPU time in {window}, and {node} has {cores}",
		"the counter claims {used} of CPU time in {window}, which is more than {node} has",
		"the counter claims more CPU time than {node} has",
	},

	metric.Incomplete: {
		"{incomplete container} has no number[: {cause}]",
		"a container of the pod has no number",
	},
}

// Message describes a reason in one short sentence without a full stop: why group g has no number,
// or a doubtful one. It uses the evidence, and it does not change while the reason lasts, unless
// the evidence has an error.
func Message(r metric.Reason, g metric.Group, ev metric.Evidence) string {
	a := nounArguments("")
	a.addStable(r, g, &ev)
	return withError(first(messages[known(r)], a), ev.Err)
}

// addStable adds the arguments that do not change while the reason lasts.
func (a arguments) addStable(r metric.Reason, g metric.Group, ev *metric.Evidence) {
	switch {
	case ev.Limit <= 0:
	case r == metric.FirstSample || r == metric.TooYoung:
		a["needed"] = humanize.Duration(time.Duration(ev.Limit))
	default:
		a["limit"] = humanize.Decimal(ev.Limit, 0)
	}
	if r == metric.CounterReset && g == metric.CPU && ev.Other.Value > ev.Got.Value {
		a["counter before"], a["counter"] = cpuSeconds(ev.Other.Value), cpuSeconds(ev.Got.Value)
	}
	if r == metric.OtherNode {
		a["bound node"] = ev.Name
	}
	if r == metric.Incomplete && ev.Name != "" {
		a["incomplete container"] = "container " + ev.Name
	}
	switch {
	case ev.Cause == metric.Unjudged:
	case r == metric.NodeNotReady:
		a["cause"] = first(messages[known(ev.Cause)], pronouns)
	case r == metric.Incomplete:
		a["cause"] = first(messages[known(ev.Cause)], nounArguments(""))
	}
}

func withError(message string, err error) string {
	if err == nil {
		return message
	}
	if read := (*metric.ReadError)(nil); errors.As(err, &read) && read.Err != nil {
		err = read.Err // the reason is already in the sentence
	}
	return fmt.Sprintf("%s: %v", message, err)
}

// known returns r, or Unjudged if there is no such reason.
func known(r metric.Reason) metric.Reason {
	if int(r) < metric.NumReasons {
		return r
	}
	return metric.Unjudged
}
