package target

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

// Scales are the scale subresources of workloads. APIScales are those of a
// cluster; tests have stand-ins.
type Scales interface {
	// Get reads the scale of what ref names in a namespace. The handle is for
	// Update. The error is one of Kubernetes' (NotFound), or says what is wrong
	// with ref.
	Get(ctx context.Context, namespace string, ref autoscalingv2.CrossVersionObjectReference) (autoscaler.Scale, *Handle, error)
	// Update asks for a number of replicas. A conflict is tried again, with the
	// scale as it is then, as Kubernetes' controller does; but not once the count
	// is another: the new one was decided on the old.
	Update(ctx context.Context, h *Handle, replicas int32) error
}

// Handle is a scale as it was read. It is for one Update.
type Handle struct {
	ID
	scale *autoscalingv1.Scale
}

// ID tells workloads apart: however they are named, with one version or another,
// those with the same ID are the same.
type ID struct {
	Namespace string
	Resource  schema.GroupResource
	Name      string
}

// String returns "deployments.apps shop/web".
func (id ID) String() string { return id.Resource.String() + " " + id.Namespace + "/" + id.Name }

// ErrNoSelector is that of a scale which does not tell its pods. An empty selector
// would match every pod of the namespace.
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

// Final reports whether err says that a workload has no pods to tell of, and not
// just that nobody answered.
func Final(err error) bool {
	return apierrors.IsNotFound(err) || meta.IsNoMatchError(err) || errors.Is(err, ErrNoSelector)
}
