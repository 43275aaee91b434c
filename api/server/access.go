package server

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/weir-metrics/weir/api/rights"
)

// attributesOf returns the right r of user u as an authorizer reads it.
func attributesOf(r rights.Right, u user.Info) authorizer.Attributes {
	return authorizer.AttributesRecord{
		User: u, Verb: r.Verb, APIGroup: r.Group, APIVersion: "*", Resource: r.Resource, Subresource: r.Subresource,
		Namespace: r.Namespace, Name: r.Name, ResourceRequest: true,
	}
}

// routeAuthorizer is an authorizer that asks delegate for each right that the
// request's route needs. A request without a route is left to delegate.
type routeAuthorizer struct {
	authorizer.Authorizer
	alwaysAllowed authorizer.Authorizer // allows the paths that are open to all
}

// Authorize allows a request whose rights are all granted. Otherwise it names those that
// are missing.
func (a routeAuthorizer) Authorize(ctx context.Context, at authorizer.Attributes) (authorizer.Decision, string, error) {
	// Impersonation asks with the same context for rights of its own; only the
	// request itself is no resource.
	m := matchFrom(ctx)
	if at.IsResourceRequest() || m == nil || len(m.rights) == 0 {
		return a.Authorizer.Authorize(ctx, at)
	}
	if d, reason, err := a.alwaysAllowed.Authorize(ctx, at); d == authorizer.DecisionAllow {
		return d, reason, err
	}
	var missing []string
	for _, r := range m.rights {
		d, _, err := a.Authorizer.Authorize(ctx, attributesOf(r, at.GetUser()))
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
func (a routeAuthorizer) ConditionsAwareAuthorize(ctx context.Context, at authorizer.Attributes) authorizer.ConditionsAwareDecision {
	return authorizer.ConditionsAwareDecisionFromParts(a.Authorize(ctx, at))
}

// rejectAnonymous answers anonymous callers 401, whatever rights a cluster gave to
// system:anonymous, except on paths that are open to all.
type rejectAnonymous struct {
	authenticator.Request
	alwaysAllowed authorizer.Authorizer
}

// AuthenticateRequest is part of authenticator.Request.
func (n rejectAnonymous) AuthenticateRequest(r *http.Request) (*authenticator.Response, bool, error) {
	response, ok, err := n.Request.AuthenticateRequest(r)
	if err != nil || !ok || response.User.GetName() != user.Anonymous {
		return response, ok, err
	}
	at := authorizer.AttributesRecord{User: response.User, Path: r.URL.Path}
	if d, _, err := n.alwaysAllowed.Authorize(r.Context(), at); err != nil || d != authorizer.DecisionAllow {
		return nil, false, err
	}
	return response, true, nil
}
