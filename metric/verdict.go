package metric

import (
	"fmt"
)

// Layer says how far out a reason lies. When several reasons hold, the outermost, which is
// the smallest Layer, is given: see Reason.Precedes.
type Layer uint8

// The layers, outermost first.
const (
	LayerLife Layer = iota
	LayerNode
	LayerScrape
	LayerReport
	LayerIdentity
	LayerRate
	LayerPod
	LayerNone // Unjudged and Measured
)

// Reason is why a number is or is not there. The list is closed; docs/reasons.md
// says of each what it means and what to do.
type Reason uint8

// The reasons, grouped by layer.
const (
	// Unjudged: no processor has spoken yet, or the entity has no such metric.
	Unjudged Reason = iota
	// Measured: the number is there and is right.
	Measured

	// PodPending: the pod has not started.
	PodPending
	// PodFinished: the pod has succeeded or failed.
	PodFinished
	// PodTerminating: the pod is being deleted, and that is why.
	PodTerminating
	// ContainerNotStarted: the container is waiting.
	ContainerNotStarted
	// ContainerFinished: the container has terminated.
	ContainerFinished

	// NodeUnknown: the API server knows no such node.
	NodeUnknown
	// NodeExcluded: the configuration leaves the node out.
	NodeExcluded
	// NodeNoAddress: the node has no address of a configured type.
	NodeNoAddress
	// NodeNotReady: the node is not ready, which explains a failed scrape.
	NodeNotReady
	// NodeNotScrapedYet: the node's first scrape is still to come.
	NodeNotScrapedYet
	// WarmingUp: weir has just started and has seen the node once.
	WarmingUp

	// NodeUnreachable: no connection to the kubelet.
	NodeUnreachable
	// NodeCertificate: the kubelet's certificate does not verify.
	NodeCertificate
	// NodeUnauthorized: the kubelet refused our credentials.
	NodeUnauthorized
	// NodeTimeout: the kubelet did not answer in time.
	NodeTimeout
	// NodeBadPayload: the answer does not parse.
	NodeBadPayload
	// NodeWrongIdentity: another node answered.
	NodeWrongIdentity
	// NodeScrapeError: the kubelet itself says it could not collect.
	NodeScrapeError

	// NotReported: the node answered and did not mention it.
	NotReported
	// NoData: the node wrote 0 for what it could not read.
	NoData
	// Unsupported: this source or kernel cannot supply it.
	Unsupported
	// NotApplicable: the entity has no such thing of its own.
	NotApplicable
	// OverLimit: dropped at a configured bound.
	OverLimit

	// OtherNode: the API server binds the pod to another node.
	OtherNode
	// OldPod: of an earlier pod of the same name.
	OldPod
	// OldContainer: of an earlier run of the container.
	OldContainer
	// DeadCgroup: a cgroup without processes, beside a living one.
	DeadCgroup
	// OlderStart: it started before its rival.
	OlderStart
	// Discontinuous: its counter does not continue the tracked one, its rival's does.
	Discontinuous
	// Ambiguous: nothing separates the candidates; one was chosen and is kept.
	Ambiguous

	// FirstSample: seen once; a rate needs two.
	FirstSample
	// TooYoung: the instance is younger than a window worth serving.
	TooYoung
	// CounterReset: the counter fell though nothing restarted.
	CounterReset
	// ClockStep: the node's clock jumped.
	ClockStep
	// Stale: the last number is too old to serve.
	Stale
	// Impossible: more CPU time than the node has.
	Impossible

	// Incomplete: a required container of the pod has no number.
	Incomplete

	// NumReasons counts the reasons.
	NumReasons int = iota
)

var reasonNames = [NumReasons]string{
	"Unjudged", "Measured",
	"PodPending", "PodFinished", "PodTerminating", "ContainerNotStarted", "ContainerFinished",
	"NodeUnknown", "NodeExcluded", "NodeNoAddress", "NodeNotReady", "NodeNotScrapedYet", "WarmingUp",
	"NodeUnreachable", "NodeCertificate", "NodeUnauthorized", "NodeTimeout", "NodeBadPayload", "NodeWrongIdentity", "NodeScrapeError",
	"NotReported", "NoData", "Unsupported", "NotApplicable", "OverLimit",
	"OtherNode", "OldPod", "OldContainer", "DeadCgroup", "OlderStart", "Discontinuous", "Ambiguous",
	"FirstSample", "TooYoung", "CounterReset", "ClockStep", "Stale", "Impossible",
	"Incomplete",
}

// String returns the reason's name as it is documented.
func (r Reason) String() string {
	if int(r) < NumReasons {
		return reasonNames[r]
	}
	return "Unknown"
}

// ParseReason returns the reason of that name, and whether there is one.
func ParseReason(name string) (Reason, bool) {
	for i, n := range reasonNames {
		if n == name {
			return Reason(i), true
		}
	}
	return Unjudged, false
}

// Layer returns the layer r belongs to.
func (r Reason) Layer() Layer {
	switch {
	case r <= Measured:
		return LayerNone
	case r <= ContainerFinished:
		return LayerLife
	case r <= WarmingUp:
		return LayerNode
	case r <= NodeScrapeError:
		return LayerScrape
	case r <= OverLimit:
		return LayerReport
	case r <= Ambiguous:
		return LayerIdentity
	case r <= Impossible:
		return LayerRate
	default:
		return LayerPod
	}
}

// Precedes reports whether r is given for a missing number rather than o, where both hold:
// it lies further out. Of two reasons of one layer neither precedes the other.
func (r Reason) Precedes(o Reason) bool { return r.Layer() < o.Layer() }

// IsRejection reports whether a verdict of r may be about a rejected instance. Such a verdict
// does not explain why the living one has no number.
func (r Reason) IsRejection() bool { return r.Layer() == LayerIdentity && r != Ambiguous }

// Foreign reports whether r says that a sample is not of the present pod at all,
// so that turning it away leaves no gap.
func (r Reason) Foreign() bool { return r == OtherNode || r == OldPod || r == DeadCgroup }

// CounterReading is one observation of a counter, as evidence.
type CounterReading struct {
	Time, Start int64 // nanoseconds since the Unix epoch; 0 if unknown
	Value       float64
	UID         PodUID
	ID          ContainerID
	Path        CgroupPath
}

// Evidence is what a verdict rests on. It is kept as data, and becomes words
// only when someone asks; which fields are set depends on the reason.
type Evidence struct {
	// Rule is the rule of the design that decided: "place", "uid", "container
	// id", "life", "start", "movement", "age", "continuity".
	Rule string
	// Got is the sample judged, Other what it was compared with: the rival that
	// won, or the previous reading.
	Got, Other CounterReading
	// Name is the one at fault: the container that makes a pod Incomplete, the
	// node a pod is bound to.
	Name string
	// Cause is the reason of the one at fault, or, for a number that stands in for a missed
	// one, why it was missed.
	Cause Reason
	// Limit is the bound that was exceeded, in the unit of the values.
	Limit float64
	// Due is when the next event that may change the verdict is expected; 0 if
	// none is. Nanoseconds since the Unix epoch.
	Due int64
	// Err is the error a scrape ended with.
	Err error
}

// Verdict is what became of a metric group of an entity in one round.
type Verdict struct {
	Entity   Entity
	Instance Instance // of the sample judged; zero for an entity without one
	Group    Group
	Reason   Reason
	Evidence Evidence
}

// ReadError is why a source could not be read, with the reason for everything
// that is missing because of it.
type ReadError struct {
	Reason Reason // of LayerNode or LayerScrape
	Err    error
}

// Error returns the reason and the cause.
func (e *ReadError) Error() string { return fmt.Sprintf("%v: %v", e.Reason, e.Err) }

// Unwrap returns the cause.
func (e *ReadError) Unwrap() error { return e.Err }
