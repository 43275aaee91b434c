package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/weir-metrics/weir/api/usage"
	"github.com/weir-metrics/weir/internal/cli"
	"github.com/weir-metrics/weir/internal/top"
)

// location is what the flags say about where weir is.
type location struct {
	server                     string
	kubeconfig, context        string
	weirNamespace, weirService string
}

func (l *location) addFlags(f *pflag.FlagSet) {
	f.StringVar(&l.server, "server", "", "URL of the weir to ask (default: $WEIR_SERVER, or else the cluster's, through the API server)")
	f.StringVar(&l.kubeconfig, "kubeconfig", "", "kubeconfig file (default: as kubectl's)")
	f.StringVar(&l.context, "context", "", "context of the kubeconfig")
	f.StringVar(&l.weirNamespace, "weir-namespace", "weir-system", "namespace of weir's Service")
	f.StringVar(&l.weirService, "weir-service", "https:weir:", "[SCHEME:]NAME[:PORT] of weir's Service")
}

// config reads the kubeconfig as kubectl does.
func (l *location) config() clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = l.kubeconfig
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: l.context})
}

// namespace returns the namespace of the kubeconfig's context. A weir that is
// asked directly need not belong to that cluster: then all are meant.
func (l *location) namespace() (string, error) {
	if l.server != "" {
		return "", nil
	}
	namespace, _, err := l.config().Namespace()
	if err != nil {
		return "", fmt.Errorf("read kubeconfig: %w", err)
	}
	return namespace, nil
}

// connect returns a client of the weir that is meant.
func (l *location) connect(fromEnvironment string) (top.Lister, error) {
	if l.server == "" {
		l.server = fromEnvironment
	}
	if l.server != "" {
		return top.NewDirect(l.server, false)
	}
	config, err := l.config().ClientConfig()
	if err != nil {
		return nil, cli.Hintf(fmt.Errorf("find the cluster: %w", err), "Name a kubeconfig with --kubeconfig=FILE, or a weir with --server=URL.")
	}
	return l.through(config)
}

// through returns a client that goes by way of the API server's proxy to weir's
// Service.
func (l *location) through(config *rest.Config) (top.Lister, error) {
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("make API client: %w", err)
	}
	host, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("read the API server's address: %w", err)
	}
	base := host.JoinPath("api/v1/namespaces", url.PathEscape(l.weirNamespace), "services", url.PathEscape(l.weirService), "proxy")
	client, err := usage.NewClient(base.String(), transport)
	if err != nil {
		return nil, err
	}
	return inCluster{client, l.weirNamespace, l.weirService}, nil
}

// inCluster asks the weir of a cluster and explains what is wrong where it can be
// told.
type inCluster struct {
	*usage.Client
	namespace, service string
}

// List asks for a list.
func (c inCluster) List(ctx context.Context, r usage.Resource, q usage.Query) (*usage.List, error) {
	list, err := c.Client.List(ctx, r, q)
	var problem *usage.Problem
	if !errors.As(err, &problem) {
		return list, err
	}
	switch {
	case problem.Status == http.StatusNotFound:
		return nil, cli.Hintf(err, "Is weir installed? Its Service is looked for as %s in namespace %s; --weir-service and --weir-namespace name another.", c.service, c.namespace)
	case problem.Status == http.StatusForbidden:
		return nil, cli.Hintf(err, "You need the right to get services/proxy in namespace %s.", c.namespace)
	}
	return nil, top.Explain(err)
}
