package server

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/weir-metrics/weir/api/rights"
)

// attributesOf returns the right r of user u in the form of an authorizer.
func attributesOf(r rights.Right, u user.Info) authorizer.Attributes {
	return authorizer.AttributesRecord{
		User: u, Verb: r.Verb, APIGroup: r.Group, APIVersion: "*", Resource: r.Resource, Subresource: r.Subresource,
		Namespace: r.Namespace, Name: r.Name, ResourceRequest: true,
	}
}

// routeAuthorizer is an authorizer that asks the embedded Authorizer for each right that the
// request's route needs. It passes on a request without a route.
type routeAuthorizer struct {
	authorizer.Authorizer
	alwaysAllowed authorizer.Authorizer // allows the paths that are open to everyone
}

// Authorize allows a request if all its rights are granted. Otherwise it names those that are
// missing.
func (a routeAuthorizer) Authorize(ctx context.Context, at authorizer.Attributes) (authorizer.Decision, string, error) {
	// Impersonation calls this with the same context for its own rights, which are resource
	// requests. The request itself is not one.
	m := matchFrom(ctx)
	if at.IsResourceRequest() || m == nil || len(m.rights) == 0 {
		return a.Authorizer.Authorize(ctx, at)
	}
	if d, reason, err := a.alwaysAllowed.Authorize(ctx, at); d == authorizer.DecisionAllow {
		return d, reason, err
	}
	switch missing, err := a.missing(ctx, at.GetUser(), m.rights); {
	case err != nil:
		return authorizer.DecisionNoOpinion, "", err
	case len(missing) > 0:
		return authorizer.DecisionDeny, "needs: " + strings.Join(missing, ", "), nil
	}
	return authorizer.DecisionAllow, "", nil
}

// missing returns which of some rights a user does not have.
func (a routeAuthorizer) missing(ctx context.Context, u user.Info, needed []rights.Right) (missing []string, err error) {
	for _, r := range needed {
		d, _, err := a.Authorizer.Authorize(ctx, attributesOf(r, u))
		if err != nil && d != authorizer.DecisionAllow {
			return nil, fmt.Errorf("review access to %s: %w", r, err)
		}
		if d != authorizer.DecisionAllow {
			missing = append(missing, r.String())
		}
	}
	return missing, nil
}

// addReviewer lets the handlers of weir's own paths ask for further rights of the caller.
func (s *Server) addReviewer(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if matchFrom(r.Context()) == nil {
			next.ServeHTTP(w, r)
			return
		}
		caller, ok := request.UserFrom(r.Context())
		next.ServeHTTP(w, r.WithContext(rights.WithReviewer(r.Context(), func(ctx context.Context, needed []rights.Right) ([]string, error) {
			if !ok {
				return nil, errors.New("review access: the caller is unknown")
			}
			return s.access.missing(ctx, caller, needed)
		})))
	})
}

// ConditionsAwareAuthorize is Authorize: reading has no conditions.
func (a routeAuthorizer) ConditionsAwareAuthorize(ctx context.Context, at authorizer.Attributes) authorizer.ConditionsAwareDecision {
	return authorizer.ConditionsAwareDecisionFromParts(a.Authorize(ctx, at))
}

// ownAudience accepts tokens for an audience, in addition to those for the API server, which has
// other audiences.
type ownAudience struct {
	authenticator.Request
	audience string
}

// AuthenticateRequest implements authenticator.Request.
func (a ownAudience) AuthenticateRequest(r *http.Request) (*authenticator.Response, bool, error) {
	if claimsAudience(r.Header.Get("Authorization"), a.audience) {
		// The API server then checks in its TokenReview that the token is for this audience. The
		// request's own context has no audiences, which means those of the API server.
		r = r.WithContext(authenticator.WithAudiences(r.Context(), authenticator.Audiences{a.audience}))
	}
	return a.Request.AuthenticateRequest(r)
}

// claimsAudience reports whether the header has a JSON Web Token for audience. It
// verifies nothing.
func claimsAudience(header, audience string) bool {
	scheme, token, _ := strings.Cut(strings.TrimSpace(header), " ")
	parts := strings.Split(strings.TrimSpace(token), ".")
	if !strings.EqualFold(scheme, "Bearer") || len(parts) != 3 {
		return false
	}
	claims, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return false
	}
	var claim struct {
		Audiences []string `json:"aud"` // the API server always writes a list
	}
	return json.Unmarshal(claims, &claim) == nil && slices.Contains(claim.Audiences, audience)
}

// rejectAnonymous answers anonymous callers with 401, whatever rights a cluster gives to
// system:anonymous. Paths that are open to everyone are an exception.
type rejectAnonymous struct {
	authenticator.Request
	alwaysAllowed authorizer.Authorizer
	proxy         *authenticatorfactory.RequestHeaderConfig // nil if no aggregating API server is trusted
}

// proxiedUser is a user that the aggregating API server named.
type proxiedUser struct{ user.Info }

// namesUser reports whether a request has a header that names its user. The authenticator removes
// these headers when it has verified the certificate of the aggregating API server.
func (a rejectAnonymous) namesUser(r *http.Request) bool {
	return a.proxy != nil && slices.ContainsFunc(a.proxy.UsernameHeaders.Value(), func(h string) bool { return r.Header.Get(h) != "" })
}

// AuthenticateRequest implements authenticator.Request.
func (a rejectAnonymous) AuthenticateRequest(r *http.Request) (*authenticator.Response, bool, error) {
	named := a.namesUser(r)
	response, ok, err := a.Request.AuthenticateRequest(r)
	endAttempt(r.Context(), err == nil && ok)
	if err == nil && ok && named && !a.namesUser(r) {
		response.User = proxiedUser{response.User}
	}
	if err != nil || !ok || response.User.GetName() != user.Anonymous {
		return response, ok, err
	}
	at := authorizer.AttributesRecord{User: response.User, Path: r.URL.Path}
	if d, _, err := a.alwaysAllowed.Authorize(r.Context(), at); err != nil || d != authorizer.DecisionAllow {
		return nil, false, err
	}
	return response, true, nil
}
