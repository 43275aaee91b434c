package externalmetrics

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-metrics/weir/history/promclient"
)

// queryFailure returns the error for the client of a failed query, and the result to count.
func queryFailure(metric string, timeout time.Duration, err error) (result string, told error) {
	var no *promclient.Error
	var waited *queueTimeout
	switch {
	case errors.As(err, &waited):
		return resultTimeout, statusError(http.StatusGatewayTimeout, metav1.StatusReasonTimeout, "%s: %v", metric, waited)
	case errors.Is(err, context.DeadlineExceeded):
		return resultTimeout, statusError(http.StatusGatewayTimeout, metav1.StatusReasonTimeout, "%s: Prometheus did not answer within %v", metric, timeout)
	case errors.As(err, &no) && no.Kind == "timeout":
		return resultTimeout, statusError(http.StatusGatewayTimeout, metav1.StatusReasonTimeout, "%s: %v", metric, no)
	case errors.As(err, &no) && no.Status < 500:
		return resultError, statusError(http.StatusInternalServerError, metav1.StatusReasonInternalError, "%s: %v", metric, no)
	}
	return resultError, statusError(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "%s: %v", metric, err)
}

// notFound returns an error with status 404.
func notFound(format string, args ...any) error {
	return statusError(http.StatusNotFound, metav1.StatusReasonNotFound, format, args...)
}

// badRequest returns an error with status 400.
func badRequest(format string, args ...any) error {
	return statusError(http.StatusBadRequest, metav1.StatusReasonBadRequest, format, args...)
}

func statusError(code int32, reason metav1.StatusReason, format string, args ...any) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: reason, Message: fmt.Sprintf(format, args...),
	}}
}

// oneLine replaces what a header cannot carry.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
}
