package scaleclient

import (
	"context"
	"errors"
	"fmt"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-metrics/weir/autoscaler"
)

// ScaleReader reads the scale subresources of workloads. scaleapi.Client implements it.
type ScaleReader interface {
	// Get reads the scale of the workload that ref names in a namespace. The handle is for Update. The
	// error is an API error such as NotFound, or describes what is wrong with ref.
	Get(ctx context.Context, namespace string, ref autoscalingv2.CrossVersionObjectReference) (autoscaler.Scale, *Handle, error)
}

// Scales reads and writes the scale subresources of workloads. scaleapi.Client implements it.
type Scales interface {
	ScaleReader
	// Update sets the number of replicas. Like Kubernetes' controller it repeats the write after a
	// conflict, unless the count changed: the new count was based on the old one.
	Update(ctx context.Context, h *Handle, replicas int32) error
	// WorkloadID returns the identity of the workload that ref names, even if the workload does not
	// exist.
	WorkloadID(ctx context.Context, namespace string, ref autoscalingv2.CrossVersionObjectReference) (WorkloadID, error)
}

// Handle is a scale as it was read. It is for one Update.
type Handle struct {
	WorkloadID
	Scale *autoscalingv1.Scale
}

// WorkloadID identifies a workload, independent of the API version that names it.
type WorkloadID struct {
	Namespace string
	Resource  schema.GroupResource
	Name      string
}

// String returns "deployments.apps shop/web".
func (id WorkloadID) String() string {
	return id.Resource.String() + " " + id.Namespace + "/" + id.Name
}

// ErrNoSelector is the error for a scale without a selector. An empty selector would match every
// pod of the namespace.
var ErrNoSelector = errors.New("the scale has no selector: a custom resource needs labelSelectorPath")

// Selector parses the selector of a scale.
func Selector(text string) (labels.Selector, error) {
	if text == "" {
		return nil, ErrNoSelector
	}
	selector, err := labels.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("parse the scale's selector: %w", err)
	}
	if selector.Empty() {
		return nil, ErrNoSelector
	}
	return selector, nil
}

// IsPermanent reports whether err reports that a workload has no pods. It returns false if the API
// server only did not answer.
func IsPermanent(err error) bool {
	return apierrors.IsNotFound(err) || meta.IsNoMatchError(err) || errors.Is(err, ErrNoSelector)
}
