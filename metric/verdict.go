package metric

import "fmt"

// Layer orders reasons from the outermost cause to the innermost. It is one step of the order in
// explain/README.md, which decides between several reasons.
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

// Reason is why a number is or is not there. The list is closed. docs/reasons.md says what each
// reason means and what to do.
type Reason uint8

// The reasons, grouped by layer.
const (
	// Unjudged: no processor has decided yet, or the entity has no such metric.
	Unjudged Reason = iota
	// Measured: the number is there and right.
	Measured

	// PodPending: the pod has not started.
	PodPending
	// PodFinished: the pod has succeeded or failed.
	PodFinished
	// PodTerminating: the number is missing because the pod is being deleted.
	PodTerminating
	// ContainerNotStarted: the container is waiting.
	ContainerNotStarted
	// ContainerFinished: the container has terminated.
	ContainerFinished

	// NodeUnknown: the API server has no such node.
	NodeUnknown
	// NodeExcluded: the configuration excludes the node.
	NodeExcluded
	// NodeNoAddress: the node has no address of a configured type.
	NodeNoAddress
	// NodeNotReady: the node is not ready, which explains why the scrape failed.
	NodeNotReady
	// NodeNotScrapedYet: the first scrape of the node is still to come.
	NodeNotScrapedYet
	// WarmingUp: weir has just begun to read the node: it has just started, or the node is new.
	WarmingUp

	// NodeUnreachable: no connection to the kubelet.
	NodeUnreachable
	// NodeCertificate: the kubelet's certificate does not verify.
	NodeCertificate
	// NodeUnauthorized: the kubelet rejected weir's credentials.
	NodeUnauthorized
	// NodeTimeout: the kubelet did not answer in time.
	NodeTimeout
	// NodeBadPayload: the answer cannot be parsed.
	NodeBadPayload
	// NodeWrongIdentity: another node answered.
	NodeWrongIdentity
	// NodeScrapeError: the kubelet reports that it could not collect the metrics.
	NodeScrapeError

	// NotReported: the node answered without this entity or group.
	NotReported
	// NoData: the node wrote 0 for what it could not read.
	NoData
	// Unsupported: this source or kernel cannot supply it.
	Unsupported
	// NotApplicable: the entity has no such thing of its own.
	NotApplicable
	// OverLimit: the number exceeded a configured bound and was dropped.
	OverLimit

	// OtherNode: the API server binds the pod to another node.
	OtherNode
	// OldPod: the sample is of an earlier pod of the same name.
	OldPod
	// OldContainer: the sample is of an earlier run of the container.
	OldContainer
	// DeadCgroup: the cgroup has no processes, and another candidate's has.
	DeadCgroup
	// OlderStart: it started before the preferred candidate.
	OlderStart
	// Discontinuous: it does not continue the instance that weir follows.
	Discontinuous
	// Ambiguous: nothing distinguishes the candidates; one was chosen and is kept.
	Ambiguous

	// FirstSample: there is one reading; a rate needs two.
	FirstSample
	// TooYoung: the instance is younger than the shortest window.
	TooYoung
	// CounterReset: the counter fell, and the instance did not restart.
	CounterReset
	// ClockStep: the node's clock jumped.
	ClockStep
	// Stale: the last known value is too old to serve.
	Stale
	// Impossible: the rate needs more CPU time than the node has.
	Impossible

	// Incomplete: a required container of the pod has no number.
	Incomplete

	// NumReasons is the number of reasons.
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

// Precedes reports whether the layer of r is further out than that of o.
// Of two reasons of one layer neither precedes the other.
func (r Reason) Precedes(o Reason) bool { return r.Layer() < o.Layer() }

// IsRejection reports whether a verdict of r may be about a rejected instance. Such a verdict
// does not explain why the living one has no number.
func (r Reason) IsRejection() bool { return r.Layer() == LayerIdentity && r != Ambiguous }

// Foreign reports whether r means that a sample is not of the present pod, so that its rejection
// leaves no gap.
func (r Reason) Foreign() bool { return r == OtherNode || r == OldPod || r == DeadCgroup }

// CounterReading is one observation of a counter, as evidence.
type CounterReading struct {
	Time, Start int64 // nanoseconds since the Unix epoch; 0 if unknown
	Value       float64
	UID         PodUID
	ID          ContainerID
	Path        CgroupPath
}

// Evidence is the data that led to a verdict. explain turns it into text. Which fields are set
// depends on the reason.
type Evidence struct {
	// Rule is the name of the rule that decided, such as "place", "uid" or "container id".
	Rule string
	// Got is the sample that was judged, Other the sample or reading it was compared with.
	Got, Other CounterReading
	// Name is what the reason is about: the container that makes a pod Incomplete, or the node
	// that a pod is bound to.
	Name string
	// Cause is the reason of the entity in Name. For a last known value it is why this read has
	// no value.
	Cause Reason
	// Served reports of Stale and NotReported that weir had numbers of the instance before.
	Served bool
	// Limit is the bound that was exceeded, in the unit of the values. For FirstSample and
	// TooYoung it is the time in nanoseconds over which an instance must be followed for a rate.
	Limit float64
	// Due is when the next event that may change the verdict is expected; 0 if
	// none is. Nanoseconds since the Unix epoch.
	Due int64
	// Err is the error of the scrape.
	Err error
}

// RuleNames is the rule of an OverLimit verdict on a node that reports names longer than Kubernetes
// allows. Got.Value is their number.
const RuleNames = "names"

// Verdict is the reason for one entity and group in one round, with its evidence.
type Verdict struct {
	Entity   Entity
	Instance Instance // of the sample that was judged; zero if the entity has none
	Group    Group
	Reason   Reason
	Evidence Evidence
}

// ReadError is why a source could not be read. Numbers that are missing for it have its Reason.
type ReadError struct {
	Reason Reason // of LayerNode or LayerScrape
	Err    error
}

// ReadErrorf returns a *ReadError with this reason. The rest is as in fmt.Errorf.
func ReadErrorf(reason Reason, format string, args ...any) error {
	return &ReadError{Reason: reason, Err: fmt.Errorf(format, args...)}
}

// Error returns the reason and the cause.
func (e *ReadError) Error() string { return fmt.Sprintf("%v: %v", e.Reason, e.Err) }

// Unwrap returns the cause.
func (e *ReadError) Unwrap() error { return e.Err }
