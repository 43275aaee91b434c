package resize

// AdviceReason is why a request changes or stays.
type AdviceReason string

// The reasons.
const (
	// Shrink: a smaller request is enough.
	Shrink AdviceReason = "Shrink"
	// Grow: a larger request is needed, and Options.Up allows it.
	Grow AdviceReason = "Grow"
	// Fits: the request is about what is needed.
	Fits AdviceReason = "Fits"
	// TooLow: a larger request is needed, and Options.Up is not set.
	TooLow AdviceReason = "TooLow"

	// NoRequest: nothing is requested, so there is nothing to shrink.
	NoRequest AdviceReason = "NoRequest"
	// NoHistory: the container was not measured.
	NoHistory AdviceReason = "NoHistory"
	// ShortHistory: it was not measured for long enough.
	ShortHistory AdviceReason = "ShortHistory"
	// NotRunning: the pod or container does not run, or is about to end.
	NotRunning AdviceReason = "NotRunning"
	// InitContainer: the container ends before the others start.
	InitContainer AdviceReason = "InitContainer"

	// QoSClass: the change would change the pod's QoS class.
	QoSClass AdviceReason = "QoSClass"
	// Restarts: the container's resizePolicy restarts it for such a change.
	Restarts AdviceReason = "Restarts"
	// Static: the pod comes from a file on its node.
	Static AdviceReason = "Static"
	// Windows: only Linux pods are resized in place.
	Windows AdviceReason = "Windows"
	// PodLevel: the pod itself has requests, which replace those of its containers.
	PodLevel AdviceReason = "PodLevel"
	// Resizing: another resize is under way.
	Resizing AdviceReason = "Resizing"
	// OldKubelet: the node's kubelet cannot resize in place.
	OldKubelet AdviceReason = "OldKubelet"
	// Invalid: Kubernetes does not accept the request.
	Invalid AdviceReason = "Invalid"
)

// Changes reports whether r is a proposal.
func (r AdviceReason) Changes() bool { return r == Shrink || r == Grow }

// Refusal is why something is not, or cannot be, changed in place.
type Refusal struct {
	Reason  AdviceReason
	Message string
}
