package server

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// Review is one right that a reader must have, as an access review asks for it.
type Review struct {
	// Verb is "get" or "list".
	Verb string
	// Group is the API group, "metrics.k8s.io"; empty for the core group.
	Group string
	// Resource is the plural: "pods", "nodes".
	Resource string
	// Subresource is what of it: "stats" of nodes/stats; empty for the thing itself.
	Subresource string
	// Namespace is where; empty for all namespaces, and for what has none.
	Namespace string
	// Name is that of one object; empty for all.
	Name string
}

// metricsGroup is the API group whose rights stand for all that is measured.
const metricsGroup = "metrics.k8s.io"

// ListPods is the right to list pods.metrics.k8s.io in a namespace, or in all
// if it is empty.
func ListPods(namespace string) Review {
	return Review{Verb: "list", Group: metricsGroup, Resource: "pods", Namespace: namespace}
}

// GetPod is the right to read one pod of pods.metrics.k8s.io.
func GetPod(namespace, name string) Review {
	return Review{Verb: "get", Group: metricsGroup, Resource: "pods", Namespace: namespace, Name: name}
}

// ListNodes is the right to list nodes.metrics.k8s.io.
func ListNodes() Review { return Review{Verb: "list", Group: metricsGroup, Resource: "nodes"} }

// GetNode is the right to read one node of nodes.metrics.k8s.io.
func GetNode(name string) Review {
	return Review{Verb: "get", Group: metricsGroup, Resource: "nodes", Name: name}
}

// GetNodeStats is the right that a kubelet asks for its /stats.
func GetNodeStats(name string) Review {
	return Review{Verb: "get", Resource: "nodes", Subresource: "stats", Name: name}
}

// GetNodeMetrics is the right that a kubelet asks for its /metrics.
func GetNodeMetrics(name string) Review {
	return Review{Verb: "get", Resource: "nodes", Subresource: "metrics", Name: name}
}

// String says what the right is: "list pods.metrics.k8s.io in namespace web", "get
// nodes/stats "n1"".
func (r Review) String() string {
	var s strings.Builder
	s.WriteString(r.Verb + " " + r.Resource)
	if r.Subresource != "" {
		s.WriteString("/" + r.Subresource)
	}
	if r.Group != "" {
		s.WriteString("." + r.Group)
	}
	if r.Name != "" {
		fmt.Fprintf(&s, " %q", r.Name)
	}
	switch {
	case r.Namespace != "":
		s.WriteString(" in namespace " + r.Namespace)
	case r.Resource == "pods":
		s.WriteString(" in all namespaces")
	}
	return s.String()
}

// attributes returns r as an authorizer wants it.
func (r Review) attributes(u user.Info) authorizer.Attributes {
	return authorizer.AttributesRecord{
		User: u, Verb: r.Verb, APIGroup: r.Group, APIVersion: "*", Resource: r.Resource, Subresource: r.Subresource,
		Namespace: r.Namespace, Name: r.Name, ResourceRequest: true,
	}
}

// reviewer is an authorizer that asks delegate for every review of the request's
// route; a request without any is delegate's own affair.
type reviewer struct {
	authorizer.Authorizer
	open authorizer.Authorizer // allows the paths that are open to all
}

// Authorize allows what all reviews allow, and else names those that do not.
func (a reviewer) Authorize(ctx context.Context, at authorizer.Attributes) (authorizer.Decision, string, error) {
	// Impersonation asks with the same context for rights of its own; only the
	// request itself is no resource.
	m := matchFrom(ctx)
	if at.IsResourceRequest() || m == nil || len(m.reviews) == 0 {
		return a.Authorizer.Authorize(ctx, at)
	}
	if d, reason, err := a.open.Authorize(ctx, at); d == authorizer.DecisionAllow {
		return d, reason, err
	}
	var missing []string
	for _, r := range m.reviews {
		d, _, err := a.Authorizer.Authorize(ctx, r.attributes(at.GetUser()))
		if err != nil && d != authorizer.DecisionAllow {
			return authorizer.DecisionNoOpinion, "", fmt.Errorf("review access to %s: %w", r, err)
		}
		if d != authorizer.DecisionAllow {
			missing = append(missing, r.String())
		}
	}
	if len(missing) > 0 {
		return authorizer.DecisionDeny, "needs: " + strings.Join(missing, ", "), nil
	}
	return authorizer.DecisionAllow, "", nil
}

// ConditionsAwareAuthorize is Authorize: there are no conditions on reading.
func (a reviewer) ConditionsAwareAuthorize(ctx context.Context, at authorizer.Attributes) authorizer.ConditionsAwareDecision {
	return authorizer.ConditionsAwareDecisionFromParts(a.Authorize(ctx, at))
}

// named refuses those who are nobody, except where everybody may go: they get
// 401, whatever rights a cluster gave to system:anonymous.
type named struct {
	authenticator.Request
	open authorizer.Authorizer
}

// AuthenticateRequest is part of authenticator.Request.
func (n named) AuthenticateRequest(r *http.Request) (*authenticator.Response, bool, error) {
	response, ok, err := n.Request.AuthenticateRequest(r)
	if err != nil || !ok || response.User.GetName() != user.Anonymous {
		return response, ok, err
	}
	at := authorizer.AttributesRecord{User: response.User, Path: r.URL.Path}
	if d, _, err := n.open.Authorize(r.Context(), at); err != nil || d != authorizer.DecisionAllow {
		return nil, false, err
	}
	return response, true, nil
}
