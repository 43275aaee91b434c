package server

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/weir-metrics/weir/api/rights"
)

// routeTable holds weir's own paths with their rules. One lookup, made before everything else,
// decides both which rights the caller needs and which handler answers, so that the two cannot
// differ.
type routeTable struct {
	mux        *http.ServeMux
	serializer runtime.NegotiatedSerializer
}

// routeMatch is the result of the lookup. A request has one if its path is weir's own.
type routeMatch struct {
	handler http.Handler   // serves the request
	request *http.Request  // as the pattern matched it, with path values
	rights  []rights.Right // the rights that the caller needs
	bad     string         // why the path is ambiguous; empty if it is not
}

type matchKey struct{}

func matchFrom(ctx context.Context) *routeMatch {
	m, _ := ctx.Value(matchKey{}).(*routeMatch)
	return m
}

func newRoutes(s runtime.NegotiatedSerializer) *routeTable { return &routeTable{http.NewServeMux(), s} }

// handle adds a pattern. The mux never runs h; it only finds it.
func (t *routeTable) handle(pattern string, needs func(*http.Request) []rights.Right, h http.Handler) {
	t.mux.HandleFunc(pattern, func(_ http.ResponseWriter, r *http.Request) {
		m := matchFrom(r.Context())
		m.handler, m.request = h, r
		if needs != nil && m.bad == "" {
			m.rights = needs(r)
		}
	})
}

// matchRoute looks up the route of a request and passes the result to next in the context.
func (t *routeTable) matchRoute(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m := &routeMatch{bad: pathProblem(r)}
		found := r.WithContext(context.WithValue(r.Context(), matchKey{}, m))
		t.mux.ServeHTTP(discardResponse{}, found)
		if m.handler == nil {
			next.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, found)
	})
}

// pathProblem explains why the rule and the handler could read a path in two ways. It is empty if they
// cannot. An escaped slash is harmless: it is part of a name, for instance of a cgroup.
func pathProblem(r *http.Request) string {
	escaped := strings.TrimSuffix(strings.TrimPrefix(r.URL.EscapedPath(), "/"), "/")
	for part := range strings.SplitSeq(escaped, "/") {
		switch name, err := url.PathUnescape(part); {
		case err != nil, name == "." || name == "..", name == "" && escaped != "":
			return "a path cannot contain empty parts, . or .."
		}
	}
	return ""
}

// serveMatched answers requests that have a route and passes the others to next.
func (t *routeTable) serveMatched(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch m := matchFrom(r.Context()); {
		case m == nil:
			next.ServeHTTP(w, r)
		case m.bad != "":
			responsewriters.ErrorNegotiated(errors.NewBadRequest(m.bad), t.serializer, schema.GroupVersion{}, w, r)
		default:
			// The filters have added the caller to the context, and may have removed credentials
			// from the header.
			matched := m.request.WithContext(r.Context())
			matched.Header, matched.Body = r.Header, r.Body
			m.handler.ServeHTTP(w, matched)
		}
	})
}

// pathInfoResolver distinguishes weir's own paths from paths of resources, which begin alike:
// /api/v1/model is not the resource "model" of the core group.
type pathInfoResolver struct{ request.RequestInfoResolver }

// NewRequestInfo implements request.RequestInfoResolver.
func (p pathInfoResolver) NewRequestInfo(r *http.Request) (*request.RequestInfo, error) {
	if matchFrom(r.Context()) == nil {
		return p.RequestInfoResolver.NewRequestInfo(r)
	}
	return &request.RequestInfo{Path: r.URL.Path, Verb: strings.ToLower(r.Method)}, nil
}

// wrapData wraps only the requests for measurements: resources, and weir's own paths with a rule.
// Each replica itself serves discovery, health and its own metrics.
func wrapData(wrap func(http.Handler) http.Handler, next http.Handler) http.Handler {
	wrapped := wrap(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, ok := request.RequestInfoFrom(r.Context())
		m := matchFrom(r.Context())
		if ok && info.IsResourceRequest || m != nil && m.bad == "" && len(m.rights) > 0 {
			wrapped.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Handle serves pattern, a pattern of http.ServeMux without method or host. needs returns the
// rights that the caller must have. It sees the request with its path values before authentication,
// so it must be cheap and must trust nothing. It must read the path as h does: an escaped slash
// belongs to a name, so both use r.URL.EscapedPath or r.PathValue. A path with a part that is
// empty, . or .. is answered with 400 before h sees it. A subtree needs its pattern with and
// without the trailing slash. Call Handle before Run.
//
// If needs is nil or returns none, the caller needs the right to that path (nonResourceURLs). Note
// that a cluster gives every authenticated user the right to /api/* and /apis/*, for discovery.
func (s *Server) Handle(pattern string, needs func(*http.Request) []rights.Right, h http.Handler) {
	if !strings.HasPrefix(pattern, "/") {
		panic(fmt.Sprintf("server: pattern %q must begin with a slash: the handler checks methods and hosts", pattern))
	}
	s.routes.handle(pattern, needs, h)
	if listed := strings.TrimSuffix(pattern, "/"); !strings.Contains(listed, "{") && !s.announced[listed] {
		// The page at / lists the path. This handler never runs: routes come first.
		s.announced[listed] = true
		s.generic.Handler.NonGoRestfulMux.Handle(listed, http.NotFoundHandler())
	}
}

// discardResponse receives what the mux writes when it has not found anything.
type discardResponse struct{}

func (discardResponse) Header() http.Header         { return http.Header{} }
func (discardResponse) Write(b []byte) (int, error) { return len(b), nil }
func (discardResponse) WriteHeader(int)             {}

// Stream serves an endless answer at pattern, a path. The caller needs the right to that path
// (nonResourceURLs), so it must not be below /api or /apis, to which a cluster gives everyone the
// right. RequestTimeout and the limit on requests at once do not apply. The answer ends when the
// Server or the caller ends. Call Stream before Run.
func (s *Server) Stream(pattern string, h http.Handler) {
	s.streams[pattern] = true
	s.Handle(pattern, nil, h)
}

func (s *Server) isStream(r *http.Request) bool { return s.streams[r.URL.Path] }

// isLongRunning adds the streams and the health endpoints to the requests that the library treats as
// long-running. Those need no place among the requests under way: a kubelet must see that weir is
// alive also when every place is taken.
func (s *Server) isLongRunning(long request.LongRunningRequestCheck) request.LongRunningRequestCheck {
	return func(r *http.Request, info *request.RequestInfo) bool {
		switch r.URL.Path {
		case "/livez", "/readyz", "/healthz":
			return true
		}
		return s.isStream(r) || long != nil && long(r, info)
	}
}
