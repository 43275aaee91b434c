package resize

// Reason says what is advised about a request, and if nothing, why.
type Reason string

// The reasons.
const (
	// Shrink: less is enough.
	Shrink Reason = "Shrink"
	// Grow: more is needed, and Options.Up allows it.
	Grow Reason = "Grow"
	// Fits: the request is about what is needed.
	Fits Reason = "Fits"
	// TooLow: more is needed than is requested, and Options.Up is not set.
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

	// QoSClass: the change would alter the pod's QoS class.
	QoSClass Reason = "QoSClass"
	// Restarts: the container's resizePolicy restarts it for such a change.
	Restarts Reason = "Restarts"
	// Static: the pod is made by a file on its node.
	Static Reason = "Static"
	// Windows: only Linux pods are resized in place.
	Windows Reason = "Windows"
	// PodLevel: the pod has requests of its own, which count in the containers' place.
	PodLevel Reason = "PodLevel"
	// Resizing: another resize is under way.
	Resizing Reason = "Resizing"
	// OldKubelet: the node's kubelet cannot resize in place.
	OldKubelet Reason = "OldKubelet"
	// Invalid: Kubernetes takes no such request.
	Invalid Reason = "Invalid"
)

// Changes reports whether r is a proposal.
func (r Reason) Changes() bool { return r == Shrink || r == Grow }

// Refusal is why something is not, or cannot be, changed in place.
type Refusal struct {
	Reason  Reason
	Message string
}
