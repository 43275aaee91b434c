package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/client/cli"
	"github.com/weir-metrics/weir/client/connect"
)

// location is what the flags and the environment say about where weir is.
type location struct {
	getenv              func(string) string
	server              string
	kubeconfig, context string
}

// direct returns the URL of the weir that is to be asked directly; empty for that
// of the cluster.
func (l *location) direct() string { return cmp.Or(l.server, l.getenv("WEIR_SERVER")) }

func (l *location) addFlags(f *pflag.FlagSet) {
	f.StringVar(&l.server, "server", "", "URL of the weir to ask (default: $WEIR_SERVER, or else the cluster's, through the API server)")
	f.StringVar(&l.kubeconfig, "kubeconfig", "", "kubeconfig file (default: as kubectl's)")
	f.StringVar(&l.context, "context", "", "context of the kubeconfig")
}

// config reads the kubeconfig as kubectl does.
func (l *location) config() clientcmd.ClientConfig {
	return connect.Kubeconfig(l.kubeconfig, l.context)
}

// namespace returns the namespace of the kubeconfig's context. A weir that is
// asked directly need not belong to that cluster: then there is none.
func (l *location) namespace() (string, error) {
	if l.direct() != "" {
		return "", nil
	}
	namespace, _, err := l.config().Namespace()
	if err != nil {
		return "", connect.NoCluster(err, noCluster)
	}
	return namespace, nil
}

// connect returns the weir that is meant.
func (l *location) connect() (*connect.Weir, error) {
	if server := l.direct(); server != "" {
		return connect.Direct(server, false)
	}
	config, err := l.config().ClientConfig()
	if err != nil {
		return nil, connect.NoCluster(err, noCluster)
	}
	return through(config)
}

// noCluster says what to do where no kubeconfig can be read.
const noCluster = "Name a kubeconfig with --kubeconfig=FILE, or a weir with --server=URL."

// through returns the weir that an API server hands requests on to. It tells weir
// who asks, so that nobody learns more than he may.
func through(config *rest.Config) (*connect.Weir, error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("make API client: %w", err)
	}
	host, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("read the API server's address: %w", err)
	}
	return connect.New(host.String(), client, advise)
}

// advise says what to do about what an API server, or weir behind it, refuses.
func advise(err error) error {
	status, hint, ok := connect.Answer(err)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return cli.Hintf(errors.New("the API server did not answer in time"), "Allow it more with --timeout=30s.")
	case !ok || hint != "":
		return connect.Advised(err)
	case status == http.StatusNotFound:
		return cli.Hintf(errors.New("this cluster has no weir: its API server does not know "+weirdev.APIVersion),
			"Install one: docs/install.md. `kubectl get apiservice v1alpha1.weir.dev` shows whether its API is registered. --server=URL asks a weir directly.")
	case status == http.StatusUnauthorized:
		return cli.Hintf(err, "The API server does not know you: `kubectl auth whoami` shows your user name; check in your kubeconfig whether the credentials have expired.")
	case status == http.StatusForbidden:
		return cli.Hintf(err, "Ask to be bound to the ClusterRole weir:metrics-reader, which view, edit and admin contain: in the namespace, or for nodes and all namespaces in the cluster.\nOf one namespace you may perhaps ask: -n NAMESPACE.")
	case status == http.StatusServiceUnavailable:
		return cli.Hintf(fmt.Errorf("weir does not answer the API server: %w", err),
			"`kubectl get apiservice v1alpha1.weir.dev` says why; `kubectl get pods -n weir-system` shows weir's pods.")
	}
	return err
}
