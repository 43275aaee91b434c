package resize

// Reason is why a request changes or stays.
type Reason string

// The reasons.
const (
	// Shrink: a smaller request is enough.
	Shrink Reason = "Shrink"
	// Grow: a larger request is needed, and Options.Up allows it.
	Grow Reason = "Grow"
	// Fits: the request is about what is needed.
	Fits Reason = "Fits"
	// TooLow: a larger request is needed, and Options.Up is not set.
	TooLow Reason = "TooLow"

	// NoRequest: nothing is requested, so there is nothing to shrink.
	NoRequest Reason = "NoRequest"
	// NoHistory: the container was not measured.
	NoHistory Reason = "NoHistory"
	// ShortHistory: it was not measured for long enough.
	ShortHistory Reason = "ShortHistory"
	// NotRunning: the pod or container does not run, or is about to end.
	NotRunning Reason = "NotRunning"
	// InitContainer: the container ends before the others start.
	InitContainer Reason = "InitContainer"

	// QoSClass: the change would change the pod's QoS class.
	QoSClass Reason = "QoSClass"
	// Restarts: the container's resizePolicy restarts it for such a change.
	Restarts Reason = "Restarts"
	// Static: the pod comes from a file on its node.
	Static Reason = "Static"
	// Windows: only Linux pods are resized in place.
	Windows Reason = "Windows"
	// PodLevel: the pod itself has requests, which replace those of its containers.
	PodLevel Reason = "PodLevel"
	// Resizing: another resize is under way.
	Resizing Reason = "Resizing"
	// OldKubelet: the node's kubelet cannot resize in place.
	OldKubelet Reason = "OldKubelet"
	// Invalid: Kubernetes does not accept the request.
	Invalid Reason = "Invalid"
)

// Changes reports whether r is a proposal.
func (r Reason) Changes() bool { return r == Shrink || r == Grow }

// Refusal is why something is not, or cannot be, changed in place.
type Refusal struct {
	Reason  Reason
	Message string
}
