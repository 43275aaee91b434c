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

// failure returns what a client is told of a query that failed, and what the
// query counts as.
func failure(metric string, timeout time.Duration, err error) (result string, told error) {
	var no *promclient.Error
	var waited *crowded
	switch {
	case errors.As(err, &waited):
		return resultTimeout, status(http.StatusGatewayTimeout, metav1.StatusReasonTimeout, "%s: %v", metric, waited)
	case errors.Is(err, context.DeadlineExceeded):
		return resultTimeout, status(http.StatusGatewayTimeout, metav1.StatusReasonTimeout, "%s: Prometheus did not answer within %v", metric, timeout)
	case errors.As(err, &no) && no.Kind == "timeout":
		return resultTimeout, status(http.StatusGatewayTimeout, metav1.StatusReasonTimeout, "%s: %v", metric, no)
	case errors.As(err, &no) && no.Status < 500:
		return resultError, status(http.StatusInternalServerError, metav1.StatusReasonInternalError, "%s: %v", metric, no)
	}
	return resultError, status(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "%s: %v", metric, err)
}

// notFound returns an error with status 404.
func notFound(format string, args ...any) error {
	return status(http.StatusNotFound, metav1.StatusReasonNotFound, format, args...)
}

// badRequest returns an error with status 400.
func badRequest(format string, args ...any) error {
	return status(http.StatusBadRequest, metav1.StatusReasonBadRequest, format, args...)
}

func status(code int32, reason metav1.StatusReason, format string, args ...any) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: reason, Message: fmt.Sprintf(format, args...),
	}}
}

// oneLine returns s as a header can carry it.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
}
