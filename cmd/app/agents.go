package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/weir-metrics/weir/api/nodeapi"
	"github.com/weir-metrics/weir/api/ui"
	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/cluster/informer"
	"github.com/weir-metrics/weir/cmd/client/cli"
	"github.com/weir-metrics/weir/eviction/evictionreport"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/kubelet"
)

// agentsPlan says how a server reaches the agents on nodes. The server verifies their certificates,
// unless a flag says to accept any.
type agentsPlan struct {
	Port     int // 0: there are no agents
	CAFile   string
	Insecure bool
	// TokenFile has the token that agents are shown. Empty: they are shown the credentials for the
	// API server.
	TokenFile string
	// AddressTypes are the types of node addresses, in order of preference.
	AddressTypes []string
}

func (a *agentsPlan) addFlags(f *pflag.FlagSet) {
	f.IntVar(&a.Port, "agent-port", 0, "port of the weir agents on the nodes, which weir asks about evictions and pod cgroups; 0 if there are none")
	f.StringVar(&a.CAFile, "agent-ca-file", "", "`FILE` of CA certificates that verify agents (default: the cluster's)")
	f.BoolVar(&a.Insecure, "agent-insecure-tls", false, "accept any certificate of an agent, which signs its own: an attacker who can act as a node then sees the token for agents")
	f.StringVar(&a.TokenFile, "agent-token-file", "", "`FILE` of the token that agents are shown, of weir's account and for the audience "+nodeapi.Audience+" (default, outside of pods: the kubeconfig's credentials)")
}

// compile checks the flags. cluster says whether there is a cluster.
func (a agentsPlan) compile(cluster bool, addressTypes []string) (*agentsPlan, error) {
	switch {
	case a.Port < 0 || a.Port > 65535:
		return nil, cli.Usage(fmt.Errorf("--agent-port cannot be %d: ports go from 1 to 65535, and 0 is for no agents", a.Port))
	case a.Port == 0 && (a.CAFile != "" || a.Insecure || a.TokenFile != ""):
		return nil, cli.Hintf(cli.Usage(errors.New("--agent-ca-file, --agent-insecure-tls and --agent-token-file say how to talk to agents, and nothing says where they are")),
			"Give --agent-port too: theirs is 10290 unless their manifest says otherwise.")
	case a.CAFile != "" && a.Insecure:
		return nil, cli.Usage(errors.New("--agent-insecure-tls accepts any certificate, so --agent-ca-file has no use: drop one of the two"))
	case a.Port != 0 && !cluster:
		return nil, needsCluster("--agent-port", "whose nodes have agents")
	}
	a.AddressTypes = addressTypes
	return &a, nil
}

// newAgents returns the client of the agents in the plan's cluster.
func newAgents(p *plan, facts func() *cluster.Facts) (*nodeapi.Proxy, error) {
	a := p.Agents
	if a.Port == 0 {
		return nodeapi.NewProxy(func(string) (string, http.RoundTripper, error) { return "", nil, nodeapi.ErrNoAgents }), nil
	}
	kube, err := informer.RESTConfig(*p.Cluster)
	if err != nil {
		return nil, noCluster(err)
	}
	transport, err := nodeTransport(withTokenFile(kube, a.TokenFile), a.CAFile, a.Insecure)
	if err != nil {
		return nil, fmt.Errorf("reach the agents: %w", err)
	}
	return nodeapi.NewProxy(func(name string) (string, http.RoundTripper, error) {
		at, err := a.url(facts(), metric.NodeName(name))
		return at, transport, err
	}), nil
}

// askAgents returns the page's function for the eviction report of a node.
func askAgents(agents *nodeapi.Proxy) func(context.Context, string) (*evictionreport.EvictionReport, error) {
	return func(ctx context.Context, name string) (*evictionreport.EvictionReport, error) {
		r, err := agents.Eviction(ctx, name)
		var problem *weirdev.Problem
		if errors.As(err, &problem) {
			return nil, &ui.Unavailable{Status: problem.Status, Why: problem.Message, Todo: problem.Hint}
		}
		return r, err
	}
}

// url returns the URL of the agent on a node. Its host is the address of the node's kubelet.
func (a *agentsPlan) url(facts *cluster.Facts, name metric.NodeName) (string, error) {
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

// agentAddressTypes returns the address types by which the cluster's kubelets are reached.
func agentAddressTypes(kubelets []kubeletPlan) []string {
	for i := range kubelets {
		if types := kubelets[i].AddressTypes; len(types) > 0 {
			return types
		}
	}
	return kubelet.DefaultAddressTypes()
}
