package resize

// AdviceReason is the reason why a request changes or stays.
type AdviceReason string

// The reasons.
const (
	// Shrink means that a smaller request is enough.
	Shrink AdviceReason = "Shrink"
	// Grow means that a larger request is needed, and Options.Up allows it.
	Grow AdviceReason = "Grow"
	// Fits means that the request is close to what is needed.
	Fits AdviceReason = "Fits"
	// TooLow means that a larger request is needed, but Options.Up is not set.
	TooLow AdviceReason = "TooLow"

	// NoRequest means that there is no request that could shrink.
	NoRequest AdviceReason = "NoRequest"
	// NoHistory means that the container was not measured.
	NoHistory AdviceReason = "NoHistory"
	// ShortHistory means that the container was not measured for long enough.
	ShortHistory AdviceReason = "ShortHistory"
	// NotRunning means that the pod or container does not run, or is about to end.
	NotRunning AdviceReason = "NotRunning"
	// InitContainer means that the container ends before the others start, so nothing is
	// recommended for it, or that its resizePolicy restarts it, so Kubernetes does not resize it.
	InitContainer AdviceReason = "InitContainer"

	// QoSClass means that the change would change the pod's QoS class.
	QoSClass AdviceReason = "QoSClass"
	// Restarts means that the container's resizePolicy restarts it for such a change.
	Restarts AdviceReason = "Restarts"
	// Static means that the pod comes from a file on its node.
	Static AdviceReason = "Static"
	// Windows means that the pod runs on Windows. Only Linux pods are resized in place.
	Windows AdviceReason = "Windows"
	// PodLevel means that the pod itself has requests, which replace those of its containers, or which
	// the cluster cannot resize.
	PodLevel AdviceReason = "PodLevel"
	// Resizing means that another resize is in progress.
	Resizing AdviceReason = "Resizing"
	// OldKubelet means that the node's kubelet cannot resize in place.
	OldKubelet AdviceReason = "OldKubelet"
	// Autoscaled means that a HorizontalPodAutoscaler scales the workload by its utilisation of the
	// resource, which is a share of the request.
	Autoscaled AdviceReason = "Autoscaled"
	// Invalid means that Kubernetes does not accept the request.
	Invalid AdviceReason = "Invalid"
)

// Changes reports whether r is the reason of a proposal.
func (r AdviceReason) Changes() bool { return r == Shrink || r == Grow }

// Refusal is a reason why a resource is not changed in place.
type Refusal struct {
	Reason  AdviceReason
	Message string
}
