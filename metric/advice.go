package metric

import (
	"fmt"
	"time"
)

// Severity says how bad it is that a number is missing.
type Severity uint8

// The severities, the least first.
const (
	// None: there is nothing to miss, or the number is there.
	None Severity = iota
	// Temporary: it ends by itself, soon.
	Temporary
	// Broken: it stays until somebody does something.
	Broken
)

// String returns "none", "temporary" or "broken".
func (g Severity) String() string { return [...]string{"none", "temporary", "broken"}[g] }

// Severity returns how bad r is. What identity turned away leaves no gap by
// itself, so that its reasons are None; where such a report was all there was, the
// gap is a Temporary one.
func (r Reason) Severity() Severity {
	switch r {
	case Unjudged, Measured, PodFinished, ContainerFinished, NodeExcluded, NotApplicable, Unsupported,
		OtherNode, OldPod, OldContainer, DeadCgroup, OlderStart, Discontinuous:
		return None
	case PodPending, PodTerminating, ContainerNotStarted, NodeNotScrapedYet, WarmingUp,
		FirstSample, TooYoung, CounterReset, ClockStep, Impossible, NoData, NotReported:
		return Temporary
	default:
		return Broken
	}
}

// Next says what will happen by itself, as seen at now, without a full stop: "a
// second reading is due in 9 s". It is empty where nothing is foreseen.
func (r Reason) Next(ev Evidence, now time.Time) string {
	if s := nexts[r.known()]; s.always != "" || s.due == "" {
		return s.always
	} else if ev.Due != 0 {
		in := time.Unix(0, ev.Due).Sub(now)
		if in < time.Second/2 {
			return s.due + " is under way"
		}
		return s.due + " is due in " + Span(in)
	}
	return ""
}

// next is what happens by itself: something that is due, or what is so whenever
// it comes.
type next struct{ due, always string }

var nexts = [NumReasons]next{
	PodPending:          {always: "it is measured once it runs"},
	PodTerminating:      {always: "it ends when the pod is gone"},
	ContainerNotStarted: {always: "it is measured once it runs"},

	NodeNotReady:      {due: "the next attempt"},
	NodeNotScrapedYet: {due: "the first reading"},
	WarmingUp:         {due: "a second reading"},

	NodeUnreachable:   {due: "the next attempt"},
	NodeCertificate:   {due: "the next attempt"},
	NodeUnauthorized:  {due: "the next attempt"},
	NodeTimeout:       {due: "the next attempt"},
	NodeBadPayload:    {due: "the next attempt"},
	NodeWrongIdentity: {due: "the next attempt"},
	NodeScrapeError:   {due: "the next attempt"},

	NotReported: {due: "the next reading"},
	NoData:      {due: "the next reading"},
	OverLimit:   {due: "the next reading"},

	OtherNode:     {due: "the next reading"},
	OldPod:        {due: "the next reading"},
	OldContainer:  {due: "the next reading"},
	DeadCgroup:    {due: "the next reading"},
	OlderStart:    {due: "the next reading"},
	Discontinuous: {due: "the next reading"},
	Ambiguous:     {always: "the choice is kept for as long as both are reported"},

	FirstSample:  {due: "a second reading"},
	TooYoung:     {due: "a reading that is long enough after the start"},
	CounterReset: {due: "a second reading since it fell"},
	ClockStep:    {due: "a second reading by the new clock"},
	Stale:        {due: "the next reading"},
	Impossible:   {due: "a second reading since the leap"},

	Incomplete: {due: "the next reading"},
}

// Advice says what a person can do about r, in a sentence or two; empty if
// nothing is to be done.
func (r Reason) Advice() string { return advices[r.known()] }

var advices = [NumReasons]string{
	PodPending:          "`kubectl describe pod` tells what it waits for: a node with room, a volume or an image.",
	PodTerminating:      "If it stays for longer than its grace period, look for finalizers in `kubectl get pod -o yaml`, and at its node.",
	ContainerNotStarted: "`kubectl describe pod` tells why it waits; after a crash, `kubectl logs --previous` tells how its last run ended.",

	NodeUnknown:   "If the machine is gone for good, delete the pods that are still bound to it (`kubectl delete pod --force`); else start its kubelet, which registers the node.",
	NodeExcluded:  "To measure it, give the node the labels that --node-selector asks for, or change the selector.",
	NodeNoAddress: "Compare `kubectl get node -o wide` with --kubelet-preferred-address-types (option address-types of a source), and add a type that the node has.",
	NodeNotReady:  "`kubectl describe node` tells since when and why; on the machine, `systemctl status kubelet` and `journalctl -u kubelet`.",

	NodeUnreachable:   "See that the kubelet runs, that its address and port are right, and that no firewall or NetworkPolicy keeps weir's pod from them.",
	NodeCertificate:   "Let the kubelet have a certificate that the cluster's CA signs (serverTLSBootstrap: true, then approve the requests), or name its CA by --kubelet-certificate-authority. In tests only: --kubelet-insecure-tls.",
	NodeUnauthorized:  "Apply weir's ClusterRole: its account needs `get` on nodes/metrics and nodes/stats. The kubelet must ask the API server for rights (authentication.webhook, authorization.mode: Webhook).",
	NodeTimeout:       "See whether the node is overloaded (`kubectl describe node`, on the machine `crictl stats`). If it is merely slow, raise --kubelet-request-timeout.",
	NodeBadPayload:    "See what answers at the kubelet's port, `kubectl get --raw /api/v1/nodes/NODE/proxy/metrics/resource`: a proxy in between, another program, or a kubelet that lacks the endpoint (option endpoint of the source).",
	NodeWrongIdentity: "The address has passed to another machine, or two nodes give one address: compare `kubectl get nodes -o wide` with the machines.",
	NodeScrapeError:   "The fault is between the kubelet and the container runtime: on the machine, `journalctl -u kubelet`, and see whether `crictl stats` answers.",

	NotReported: "If it stays, see on the machine whether `crictl stats` shows the container: the kubelet reports what the runtime tells it.",
	NoData:      "If it stays, see on the machine whether `crictl stats` has numbers for the container; restarting the container runtime or the kubelet brings them back.",
	Unsupported: "Read another endpoint as well (option endpoint of the source kubelet: summary, cadvisor), if the number is needed; docs/metrics.md tells who gives what.",
	OverLimit:   "Raise the limit (option entities of the sink memory; the limits of the source), or measure less.",

	OtherNode:     "If the other node still runs such a pod, it has lost touch with the API server: look at its kubelet, and delete what was left there.",
	OldPod:        "If it stays for minutes, the node has leftovers: `weir inspect cgroups` on it lists them, and --clean removes empty ones.",
	OldContainer:  "If it stays for minutes, the node has leftovers: `weir inspect cgroups` on it lists them, and --clean removes empty ones.",
	DeadCgroup:    "The node has leftovers: `weir inspect cgroups` on it lists them, and --clean removes them.",
	OlderStart:    "If it stays for minutes, the node has leftovers: `weir inspect cgroups` on it lists them, and --clean removes empty ones.",
	Discontinuous: "If it stays for minutes, the node has leftovers: `weir inspect cgroups` on it lists them, and --clean removes empty ones.",
	Ambiguous:     "Find out which is the living one: `weir inspect cgroups` on the node lists both. A source that names containers (endpoint=cadvisor) lets weir tell them apart.",

	CounterReset: "If it returns, see whether the runtime restarts containers without telling (`crictl ps -a`).",
	ClockStep:    "See that the node keeps time by NTP (`timedatectl`, `chronyc tracking`): each jump costs a reading.",
	Stale:        "The node answers with an old reading: on the machine, `journalctl -u kubelet`, and see whether `crictl stats` answers.",
	Impossible:   "If it returns, compare the node's capacity (`kubectl get node -o jsonpath='{.status.capacity.cpu}'`) with the CPUs it has.",

	Incomplete: "Ask for the container that is at fault: `weir explain container NS/POD/CONTAINER`.",
}

// known returns r, or Unjudged if there is no such reason.
func (r Reason) known() Reason {
	if int(r) < NumReasons {
		return r
	}
	return Unjudged
}

// Span says how long d is, as people do: "0.4 s", "9 s", "3 min 5 s", "2 h 10 min",
// "5 days". A negative d is as long as its opposite.
func Span(d time.Duration) string {
	d = d.Abs()
	switch {
	case d < time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < 2*time.Minute-time.Second/2:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d < 10*time.Minute:
		return two(d.Round(time.Second), time.Minute, "min", time.Second, "s")
	case d < 2*time.Hour:
		return fmt.Sprintf("%.0f min", d.Minutes())
	case d < 48*time.Hour:
		return two(d.Round(time.Minute), time.Hour, "h", time.Minute, "min")
	default:
		return fmt.Sprintf("%.0f days", d.Hours()/24)
	}
}

func two(d, large time.Duration, name string, small time.Duration, less string) string {
	s := fmt.Sprintf("%d %s", d/large, name)
	if rest := d % large / small; rest > 0 {
		s += fmt.Sprintf(" %d %s", rest, less)
	}
	return s
}
