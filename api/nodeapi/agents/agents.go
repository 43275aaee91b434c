// Package agents is how weir and its agents find and trust each other: the feature of a server that
// asks agents, what an agent publishes of its certificate, and what it asks of its node's kubelet.
//
// Files: agents.go has the feature; certificate.go publishes an agent's certificate and verifies the
// agent by it; devices.go asks a kubelet for its devices.
package agents

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"

	"github.com/spf13/pflag"
	"k8s.io/client-go/kubernetes"

	"github.com/weir-metrics/weir/api/nodeapi"
	"github.com/weir-metrics/weir/api/nodeapi/oomkills"
	"github.com/weir-metrics/weir/api/replicas/peer"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/cluster/access"
	"github.com/weir-metrics/weir/internal/feature"
	"github.com/weir-metrics/weir/internal/usererror"
	"github.com/weir-metrics/weir/metric"
)

// Agents is the feature of a server that asks the agents on nodes. It verifies their certificates,
// unless a flag accepts any.
type Agents struct {
	Port     int // 0: there are no agents
	CAFile   string
	Insecure bool
	// Leases is the namespace in which agents publish their certificates, or empty.
	Leases string
	// TokenFile has the token that agents are shown. Empty: they are shown the credentials for the
	// API server.
	TokenFile string
	// AddressTypes are the types of node addresses, in order of preference. They are set before Open.
	AddressTypes []string

	proxy *nodeapi.Proxy     // nil unless open
	kills *oomkills.Gatherer // nil unless agents are asked
}

// Flags adds the flags.
func (a *Agents) Flags(f *pflag.FlagSet) {
	f.IntVar(&a.Port, "agent-port", 0, "port of the weir agents on the nodes, which weir asks about evictions and pod cgroups; 0 if there are none")
	f.StringVar(&a.CAFile, "agent-ca-file", "", "`FILE` of CA certificates that verify agents (default: the cluster's)")
	f.BoolVar(&a.Insecure, "agent-insecure-tls", false, "accept any certificate of an agent, which signs its own: an attacker who can act as a node then sees the token for agents")
	f.StringVar(&a.Leases, "agent-leases", "", "`NAMESPACE` of the Leases in which agents publish their certificates, by which weir recognises them")
	f.StringVar(&a.TokenFile, "agent-token-file", "", "`FILE` of the token that agents are shown, of weir's account and for the audience "+nodeapi.Audience+" (default, outside of pods: the kubeconfig's credentials)")
}

// Check checks the flags.
func (a *Agents) Check(in *feature.Setting) error {
	switch {
	case a.Port < 0 || a.Port > 65535:
		return usererror.Usage(fmt.Errorf("--agent-port cannot be %d: ports go from 1 to 65535, and 0 is for no agents", a.Port))
	case a.Port == 0 && (a.CAFile != "" || a.Insecure || a.Leases != "" || a.TokenFile != ""):
		return usererror.Hintf(usererror.Usage(errors.New("--agent-ca-file, --agent-insecure-tls, --agent-leases and --agent-token-file are about agents, and no flag names their port")),
			"Give --agent-port too: theirs is 10290 unless their manifest sets another.")
	case a.Leases != "" && (a.CAFile != "" || a.Insecure):
		return usererror.Hintf(usererror.Usage(errors.New("--agent-leases names the certificates of agents, and so does --agent-ca-file or --agent-insecure-tls")), "Keep one of them.")
	case a.CAFile != "" && a.Insecure:
		return usererror.Usage(errors.New("--agent-insecure-tls accepts any certificate, so --agent-ca-file has no use: drop one of the two"))
	case a.Port != 0 && !in.HasCluster:
		return feature.NeedsCluster("--agent-port", "whose nodes have agents")
	}
	return nil
}

// Open creates the client of the agents in the cluster, and asks them what the kernel killed.
func (a *Agents) Open(_ context.Context, h *feature.Host) error {
	if a.Port == 0 {
		a.proxy = nodeapi.NewProxy(func(string) (string, http.RoundTripper, error) { return "", nil, nodeapi.ErrNoAgents })
		return nil
	}
	if err := a.connect(h); err != nil {
		return err
	}
	if h.HasWholeCluster() {
		a.kills = &oomkills.Gatherer{Ask: a.proxy.Kills, Ends: h.Cluster.Options.Ends, Facts: h.Facts, Leads: h.IsLeader, Log: h.Log}
		h.Add(feature.Part{Name: "kernel kills of all nodes", Run: a.kills.Run})
	}
	return nil
}

// connect creates the client of the agents, which verifies them by the certificates that they publish or
// by those of a CA.
func (a *Agents) connect(h *feature.Host) error {
	kube, err := h.Cluster.RESTConfig()
	if err != nil {
		return err
	}
	var transportTo func(node string) http.RoundTripper
	if a.Leases != "" {
		client, err := kubernetes.NewForConfig(kube)
		if err != nil {
			return fmt.Errorf("create API client for the agents' Leases: %w", err)
		}
		agents := &publishedAgents{
			client: client, namespace: a.Leases, transports: peer.NewTransports(access.WithTokenFile(kube, a.TokenFile)),
			exists: func(node string) bool { return h.Facts().Node(metric.NodeName(node)) != nil },
		}
		transportTo = func(node string) http.RoundTripper { return agentTransport{agents, node} }
	} else {
		transport, err := access.NodeTransport(access.WithTokenFile(kube, a.TokenFile), a.CAFile, a.Insecure)
		if err != nil {
			return fmt.Errorf("reach the agents: %w", err)
		}
		transportTo = func(string) http.RoundTripper { return transport }
	}
	a.proxy = nodeapi.NewProxy(func(node string) (string, http.RoundTripper, error) {
		url, err := a.url(h.Facts(), metric.NodeName(node))
		return url, transportTo(node), err
	})
	return nil
}

// Proxy returns what asks the agents. The feature must be open.
func (a *Agents) Proxy() *nodeapi.Proxy { return a.proxy }

// Kills returns what asks the agents which kills the kernel made; nil if no agents are asked.
func (a *Agents) Kills() *oomkills.Gatherer { return a.kills }

// url returns the URL of the agent on a node. Its host is the address of the node's kubelet.
func (a *Agents) url(facts *cluster.Facts, name metric.NodeName) (string, error) {
	n := facts.Node(name)
	switch {
	case n == nil && (facts == nil || !facts.Synced):
		return "", errors.New("the API server has not yet listed the nodes")
	case n == nil:
		return "", nodeapi.ErrUnknown
	}
	for _, t := range a.AddressTypes {
		i := slices.IndexFunc(n.Addresses, func(at cluster.NodeAddress) bool { return at.Type == t && at.Address != "" })
		if i >= 0 {
			return "https://" + net.JoinHostPort(n.Addresses[i].Address, strconv.Itoa(a.Port)), nil
		}
	}
	return "", fmt.Errorf("none of its %d addresses is of type %v", len(n.Addresses), a.AddressTypes)
}
