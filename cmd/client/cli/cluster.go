package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/weir-metrics/weir/api/weirdev"
)

// noWeirError reports that the API server does not know weir's API. It wraps the answer.
type noWeirError struct{ answer error }

func (*noWeirError) Error() string {
	return "this cluster has no weir: its API server does not serve " + weirdev.APIVersion
}

func (e *noWeirError) Unwrap() error { return e.answer }

// adviseInCluster describes what to do about an error of the API server, or of the weir behind it.
func adviseInCluster(err error) error {
	status, hint, ok := Answer(err)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return Hintf(errors.New("the API server did not answer in time"), "Allow it more with --timeout=30s.")
	case !ok || hint != "":
		return Advised(err)
	case status == http.StatusNotFound:
		return Hintf(&noWeirError{err},
			"Install one: docs/install.md. `kubectl get apiservice v1alpha1.weir.dev` shows whether its API is registered. --server=URL asks a weir directly.")
	case status == http.StatusUnauthorized:
		return Hintf(err, "The API server does not know you: `kubectl auth whoami` shows your user name; check in your kubeconfig whether the credentials have expired.")
	case status == http.StatusForbidden:
		return Hintf(err, "Ask to be bound to the ClusterRole weir:metrics-reader, which view, edit and admin contain: in the namespace, or for nodes and all namespaces in the cluster.\nOf one namespace you may perhaps ask: -n NAMESPACE.")
	case status == http.StatusServiceUnavailable:
		return Hintf(fmt.Errorf("weir does not answer the API server: %w", err),
			"`kubectl get apiservice v1alpha1.weir.dev` shows why; `kubectl get pods -n weir-system` shows weir's pods.")
	}
	return err
}
