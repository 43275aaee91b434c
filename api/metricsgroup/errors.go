package metricsgroup

import (
	"context"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/warning"

	"github.com/weir-metrics/weir/internal/humanize"
)

// NotFound returns an error with status 404.
func NotFound(format string, args ...any) error {
	return Error(http.StatusNotFound, metav1.StatusReasonNotFound, format, args...)
}

// BadRequest returns an error with status 400.
func BadRequest(format string, args ...any) error {
	return Error(http.StatusBadRequest, metav1.StatusReasonBadRequest, format, args...)
}

// Unavailable returns an error with status 503.
func Unavailable(format string, args ...any) error {
	return Error(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, format, args...)
}

// Error returns an error with a status. The constructors of apierrors would add their own words to
// the message.
func Error(code int32, reason metav1.StatusReason, format string, args ...any) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: reason, Message: fmt.Sprintf(format, args...),
	}}
}

// Warn adds a warning to the answer, without characters that a header cannot contain.
func Warn(ctx context.Context, agent, text string) {
	warning.AddWarning(ctx, agent, humanize.Printable(text))
}
