package custommetrics

import (
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// notFound returns an error with status 404.
func notFound(format string, args ...any) error {
	return statusError(http.StatusNotFound, metav1.StatusReasonNotFound, format, args...)
}

// badRequest returns an error with status 400.
func badRequest(format string, args ...any) error {
	return statusError(http.StatusBadRequest, metav1.StatusReasonBadRequest, format, args...)
}

// unavailable returns an error with status 503.
func unavailable(format string, args ...any) error {
	return statusError(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, format, args...)
}

func statusError(code int32, reason metav1.StatusReason, format string, args ...any) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: reason, Message: fmt.Sprintf(format, args...),
	}}
}
