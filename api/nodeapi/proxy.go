package nodeapi

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/cluster/endlog"
	"github.com/weir-metrics/weir/eviction/evictionreport"
)

// Audience is the audience of the tokens that agents are shown. An agent that is taken over can use
// such a token only at other agents.
const Audience = "weir-agent"

// Errors of FindAgent that have their own answers.
var (
	// ErrUnknown: the cluster has no such node.
	ErrUnknown = errors.New("there is no such node")
	// ErrNoAgents: this weir is not configured to ask agents.
	ErrNoAgents = errors.New("this weir asks no agents")
)

// FindAgent returns the root URL of the agent on a node, and the transport for requests to it,
// which adds the token. Its error may wrap ErrUnknown or ErrNoAgents.
type FindAgent func(node string) (url string, carrier http.RoundTripper, err error)

// Proxy serves the API at Paths for all nodes of a cluster by asking the agent on the node. It
// forwards only the name of the node and the subresource, and returns only JSON. It may serve many
// requests at once.
type Proxy struct {
	find     FindAgent
	timeout  time.Duration // of one request to an agent
	maxBytes int64         // of an agent's answer
	places   chan struct{} // one for each request under way
}

// maxRequests is how many agents are asked at the same time, because each answer can be long. Further
// requests wait, as long as for an agent.
const maxRequests = 16

// NewProxy returns a Proxy.
func NewProxy(find FindAgent) *Proxy {
	return &Proxy{find, 5 * time.Second, 16 << 20, make(chan struct{}, maxRequests)}
}

// ServeHTTP answers a request about a node.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	weirdev.ReadHandler(readOnly, ParseRequest, func(ctx context.Context, request Request) (*json.RawMessage, error) {
		return askAgent[json.RawMessage](ctx, p, request, "")
	}).ServeHTTP(w, r)
}

// Eviction returns the report on evictions of a node, for callers that show it in another way, such
// as the page. Its errors are *weirdev.Problem.
func (p *Proxy) Eviction(ctx context.Context, node string) (*evictionreport.EvictionReport, error) {
	return askAgent[evictionreport.EvictionReport](ctx, p, Request{node, Eviction}, ExplanationKind)
}

// Kills returns what the kernel of a node killed for memory. Its errors are *weirdev.Problem.
func (p *Proxy) Kills(ctx context.Context, node string) (*endlog.KillReport, error) {
	return askAgent[endlog.KillReport](ctx, p, Request{node, Kills}, KillsKind)
}

// askAgent returns the answer, of a kind, of the node's agent. Each error is a *weirdev.Problem that shows where the
// request failed, and what to do.
func askAgent[T any](ctx context.Context, p *Proxy, r Request, kind string) (*T, error) {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	select {
	case p.places <- struct{}{}:
		defer func() { <-p.places }()
	case <-ctx.Done():
		return nil, &weirdev.Problem{Status: http.StatusServiceUnavailable, Message: fmt.Sprintf("%d other requests to agents did not end in time", maxRequests), Hint: "Ask again in a few seconds."}
	}
	root, carrier, err := p.find(r.Node)
	if err != nil {
		return nil, unreachableProblem(r.Node, err)
	}
	client, err := weirdev.NewClient(root, &http.Client{
		Transport: &limitedTransport{carrier, p.maxBytes},
		// An agent never redirects. Following a redirect would send weir's token elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	})
	if err != nil {
		return nil, unreachableProblem(r.Node, err)
	}
	answer, err := get[T](ctx, client, r, kind)
	if err != nil {
		return nil, agentProblem(r.Node, err)
	}
	return answer, nil
}

// installHint describes what to do if no agent answers.
func installHint(node string) string {
	return fmt.Sprintf("Agents are a DaemonSet of their own: install deploy/kustomize/components/agent (docs/agent.md). "+
		"`kubectl -n weir-agents get pods -o wide --field-selector spec.nodeName=%s` shows whether one runs there.", node)
}

// unreachableProblem returns the Problem for a node if the address of its agent is unknown.
func unreachableProblem(node string, err error) error {
	switch {
	case errors.Is(err, ErrUnknown):
		return &weirdev.Problem{Status: http.StatusNotFound, Message: "weir does not know node " + node, Hint: "Is the name right? `kubectl get nodes` lists them."}
	case errors.Is(err, ErrNoAgents):
		return &weirdev.Problem{Status: http.StatusServiceUnavailable, Message: "this weir asks no agents, and only they know evictions, pod cgroups, devices and kills by the kernel",
			Hint: "Where agents run, start weir with --agent-port=10290. " + installHint(node)}
	}
	return &weirdev.Problem{Status: http.StatusServiceUnavailable, Message: fmt.Sprintf("find the agent on node %s: %v", node, err), Hint: installHint(node)}
}

// agentProblem returns the Problem for an agent that did not answer, or gave an unexpected answer.
func agentProblem(node string, err error) error {
	fail := func(status int, message, hint string) error {
		return &weirdev.Problem{Status: status, Message: message, Hint: hint}
	}
	var problem *weirdev.Problem
	var certificate *tls.CertificateVerificationError
	var tooLong *http.MaxBytesError
	var sent *url.Error // the request failed, or there was no answer
	switch {
	case errors.As(err, &problem) && problem.Status == http.StatusUnauthorized:
		return fail(http.StatusBadGateway, "the agent on node "+node+" does not know weir's token: "+problem.Message,
			"The agent asks the API server who comes: see its log, and whether it may create tokenreviews (ClusterRole system:auth-delegator).")
	case errors.As(err, &problem) && problem.Status == http.StatusForbidden:
		return fail(http.StatusBadGateway, "the agent on node "+node+" refuses weir: "+problem.Message,
			"weir's service account needs get on "+subresourceNames("nodes/")+" of "+weirdev.Group+": the ClusterRole weir:agents-reader, which deploy/kustomize/components/agent binds to it.")
	case errors.As(err, &problem) && problem.Hint != "": // a weir answered, with its own hint
		return fail(problem.Status, "the agent on node "+node+" reports: "+problem.Message, problem.Hint)
	case errors.As(err, &problem):
		return fail(http.StatusBadGateway, fmt.Sprintf("the server on node %s is not an agent of this version: it returned %d %s", node, problem.Status, problem.Message),
			"Are --agent-port, and the version of the agents, right?")
	case errors.As(err, &certificate):
		return fail(http.StatusBadGateway, fmt.Sprintf("the agent on node %s has a certificate that weir does not trust: %v", node, certificate.Err),
			"Does something else answer at the node's address? With --agent-leases=weir-agents weir reads the certificates that agents publish; --agent-ca-file names who else signed them.")
	case errors.Is(err, http.ErrSchemeMismatch):
		return fail(http.StatusBadGateway, fmt.Sprintf("the server on node %s does not use TLS", node), "Is --agent-port the agents' secure port?")
	case errors.As(err, &tooLong):
		return fail(http.StatusBadGateway, fmt.Sprintf("the agent on node %s: its answer is too long", node), "Its log may have the reason.")
	case errors.Is(err, context.DeadlineExceeded):
		return fail(http.StatusGatewayTimeout, "the agent on node "+node+" did not answer in time", "Is the node overloaded, or a firewall in the way? Ask again. "+installHint(node))
	case !errors.As(err, &sent):
		return fail(http.StatusBadGateway, fmt.Sprintf("the agent on node %s: %v", node, err), "Are --agent-port, and the version of the agents, right?")
	}
	return fail(http.StatusServiceUnavailable, fmt.Sprintf("no agent answers on node %s: %v", node, err), installHint(node))
}

// limitedTransport limits the size of answers.
type limitedTransport struct {
	http.RoundTripper
	maxBytes int64
}

// RoundTrip makes one request.
func (t *limitedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.RoundTripper.RoundTrip(r)
	if err == nil {
		resp.Body = http.MaxBytesReader(nil, resp.Body, t.maxBytes)
	}
	return resp, err
}
