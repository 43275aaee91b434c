package custommetrics

import (
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-metrics/weir/metric"
)

// words says why a number is absent: a sentence, and the reason's name by which
// the documentation explains it.
func (q *question) words(a absence) string {
	s := a.reason.Sentence(q.d.Group, metric.Evidence{})
	switch pod := q.facts.Pod(a.entity.PodRef()); {
	case a.reason == metric.NotApplicable && pod != nil && pod.HostNetwork && q.d.Group == metric.Network:
		s = "the pod uses its node's network"
	case a.reason == metric.NotApplicable && q.d.Group == metric.Spec:
		s = "none is set"
	case a.reason == metric.Incomplete && a.evidence.Name != "":
		s = a.reason.Sentence(q.d.Group, metric.Evidence{Name: a.evidence.Name, Cause: a.evidence.Cause})
	}
	return fmt.Sprintf("%s (%v)", s, a.reason)
}

// notFound returns an error with status 404.
func notFound(format string, args ...any) error {
	return status(http.StatusNotFound, metav1.StatusReasonNotFound, format, args...)
}

// badRequest returns an error with status 400.
func badRequest(format string, args ...any) error {
	return status(http.StatusBadRequest, metav1.StatusReasonBadRequest, format, args...)
}

// unavailable returns an error with status 503.
func unavailable(format string, args ...any) error {
	return status(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, format, args...)
}

func status(code int32, reason metav1.StatusReason, format string, args ...any) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: reason, Message: fmt.Sprintf(format, args...),
	}}
}
