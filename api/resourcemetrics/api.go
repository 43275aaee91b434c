package resourcemetrics

import (
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"github.com/weir-metrics/weir/explain"
)

// api is what the two resources share.
type api struct {
	options Options
	ages    freshness
	rolls   *rolls
}

// retryAfter is how many seconds a client is to wait while there is nothing to
// answer with. client-go asks ten times.
const retryAfter = 1

// answer readies the answer to one request, or says that none can be given yet.
func (a *api) answer() (*answer, error) {
	facts := a.options.Facts()
	if facts != nil && !facts.Synced {
		return nil, unavailable("weir has not heard yet from the API server which pods and nodes there are")
	}
	view := a.options.View()
	if view == nil || view.At().IsZero() {
		if facts == nil || facts.Nodes() > 0 {
			return nil, unavailable("weir has just started and has read no node yet")
		}
		view = nothing{}
	}
	return &answer{view: view, facts: facts, options: &a.options, rolls: a.rolls}, nil
}

// unavailable returns an error with status 503 after which client-go asks again.
func unavailable(message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusServiceUnavailable,
		Reason:  metav1.StatusReasonServiceUnavailable,
		Message: message,
		Details: &metav1.StatusDetails{Group: v1beta1.GroupName, RetryAfterSeconds: retryAfter},
	}}
}

// notFound returns the error for what the API server does not have, in its own
// words: `pods "a" not found`.
func notFound(resource, name string) error {
	return apierrors.NewNotFound(schema.GroupResource{Resource: resource}, name)
}

// withoutMetrics returns the error for what exists and is not served:
// `podmetrics.metrics.k8s.io "a" not found: the pod has not started (PodPending)`.
func withoutMetrics(resource, name string, why explain.Ruling) error {
	err := apierrors.NewNotFound(v1beta1.Resource(resource), name)
	words := why.Brief()
	err.ErrStatus.Message += ": " + words
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseType(why.Reason.String()), Message: words}}
	return err
}
