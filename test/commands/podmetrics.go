package commands

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
)

// StatusError is the error of an answer that has another status than 200.
type StatusError struct {
	Status int
	Body   string
}

// Error returns the status and the body.
func (e *StatusError) Error() string { return fmt.Sprintf("status %d: %s", e.Status, e.Body) }

// ListPods asks the weir at an https URL for all pods of metrics.k8s.io, as the caller with this token.
// The error of an answer that is no list is a *StatusError.
func ListPods(ctx context.Context, client *http.Client, url, token string) (*metricsv1beta1.PodMetricsList, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/apis/metrics.k8s.io/v1beta1/pods", nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, &StatusError{response.StatusCode, string(body)}
	}
	list := new(metricsv1beta1.PodMetricsList)
	return list, json.Unmarshal(body, list)
}
