package externalmetrics

import (
	"context"
	"errors"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-metrics/weir/api/metricsgroup"
	"github.com/weir-metrics/weir/internal/history"
)

// queryFailure returns the error for the client of a failed query, and the result to count.
func queryFailure(metric string, timeout time.Duration, err error) (result string, answer error) {
	var no *history.Error
	var waited *queueTimeout
	switch {
	case errors.As(err, &waited):
		return resultTimeout, metricsgroup.Error(http.StatusGatewayTimeout, metav1.StatusReasonTimeout, "%s: %v", metric, waited)
	case errors.Is(err, context.DeadlineExceeded):
		return resultTimeout, metricsgroup.Error(http.StatusGatewayTimeout, metav1.StatusReasonTimeout, "%s: Prometheus did not answer within %v", metric, timeout)
	case errors.As(err, &no) && no.Kind == "timeout":
		return resultTimeout, metricsgroup.Error(http.StatusGatewayTimeout, metav1.StatusReasonTimeout, "%s: %v", metric, no)
	case errors.As(err, &no) && no.Status < 500:
		return resultError, metricsgroup.Error(http.StatusInternalServerError, metav1.StatusReasonInternalError, "%s: %v", metric, no)
	}
	return resultError, metricsgroup.Unavailable("%s: %v", metric, err)
}
