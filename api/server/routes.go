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

// routeTable are the paths that are weir's own, with their rules. One lookup, made
// before anything else is done with a request, decides both what the caller
// must be allowed and who answers: the two cannot differ.
type routeTable struct {
	mux        *http.ServeMux
	serializer runtime.NegotiatedSerializer
}

// routeMatch is what the lookup found. A request has one if its path is weir's own.
type routeMatch struct {
	handler http.Handler   // answers
	request *http.Request  // as the pattern matched it, with path values
	rights  []rights.Right // what the caller needs
	bad     string         // why the path is ambiguous; empty if it is not
}

type matchKey struct{}

func matchFrom(ctx context.Context) *routeMatch {
	m, _ := ctx.Value(matchKey{}).(*routeMatch)
	return m
}

func newRoutes(s runtime.NegotiatedSerializer) *routeTable { return &routeTable{http.NewServeMux(), s} }

// handle adds a pattern. The mux never runs h: it only finds it.
func (t *routeTable) handle(pattern string, needs func(*http.Request) []rights.Right, h http.Handler) {
	t.mux.HandleFunc(pattern, func(_ http.ResponseWriter, r *http.Request) {
		m := matchFrom(r.Context())
		m.handler, m.request = h, r
		if needs != nil && m.bad == "" {
			m.rights = needs(r)
		}
	})
}

// matchRoute looks a request up, and lets next see what it found.
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

// pathProblem says why a path could be read in two ways, by its rule and by its
// handler; empty if it cannot. An escaped slash is no reason: it is part of a
// name, a cgroup's for instance.
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

// serveMatched answers what was found, and leaves the rest to next.
func (t *routeTable) serveMatched(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch m := matchFrom(r.Context()); {
		case m == nil:
			next.ServeHTTP(w, r)
		case m.bad != "":
			responsewriters.ErrorNegotiated(errors.NewBadRequest(m.bad), t.serializer, schema.GroupVersion{}, w, r)
		default:
			// The context has what the filters know of the caller. They may have taken
			// credentials out of the header.
			matched := m.request.WithContext(r.Context())
			matched.Header, matched.Body = r.Header, r.Body
			m.handler.ServeHTTP(w, matched)
		}
	})
}

// pathInfoResolver separates weir's own paths from those of resources, which have the same
// the beginning: /api/v1/model is not the resource "model" of the core group.
type pathInfoResolver struct{ request.RequestInfoResolver }

// NewRequestInfo is part of request.RequestInfoResolver.
func (s pathInfoResolver) NewRequestInfo(r *http.Request) (*request.RequestInfo, error) {
	if matchFrom(r.Context()) == nil {
		return s.RequestInfoResolver.NewRequestInfo(r)
	}
	return &request.RequestInfo{Path: r.URL.Path, Verb: strings.ToLower(r.Method)}, nil
}

// wrapData wraps what serves measurements: resources, and own paths with a rule.
// Discovery, health and self-metrics each replica serves itself.
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

// Handle serves pattern, one of http.ServeMux without method or host. Needs
// returns the rights that must all be allowed; it sees the request with its
// path values, before anybody has authenticated, so it must be cheap and believe
// nothing. It must read the path as h does: an escaped slash belongs to a name,
// so both go by r.URL.EscapedPath or by r.PathValue. Parts that are empty or
// dots are answered 400 before h sees them. A subtree needs its pattern with and
// without the trailing slash. Handle is called before Run.
//
// Where needs is nil or returns none, the caller needs the right to that very
// path (nonResourceURLs). Beware: a cluster gives everyone who is authenticated
// the right to /api/* and /apis/*, for discovery.
func (s *Server) Handle(pattern string, needs func(*http.Request) []rights.Right, h http.Handler) {
	if !strings.HasPrefix(pattern, "/") {
		panic(fmt.Sprintf("server: pattern %q must begin with a slash: the handler checks methods and hosts", pattern))
	}
	s.routes.handle(pattern, needs, h)
	if listed := strings.TrimSuffix(pattern, "/"); !strings.Contains(listed, "{") && !s.announced[listed] {
		// The page at / lists it. The handler never runs: routes come first.
		s.announced[listed] = true
		s.generic.Handler.NonGoRestfulMux.Handle(listed, http.NotFoundHandler())
	}
}

// discardResponse is where the mux writes when it has not found anything.
type discardResponse struct{}

func (discardResponse) Header() http.Header         { return http.Header{} }
func (discardResponse) Write(b []byte) (int, error) { return len(b), nil }
func (discardResponse) WriteHeader(int)             {}

// Stream serves an answer without end at pattern, a path. The caller needs the right to
// that very path (nonResourceURLs), so it must not lie below /api or /apis, to which a
// cluster gives everyone the right. RequestTimeout and the bound on requests at once do
// not hold for it; it ends when the Server does, or the caller. Stream is called before
// Run.
func (s *Server) Stream(pattern string, h http.Handler) {
	s.streams[pattern] = true
	s.Handle(pattern, nil, h)
}

// isLongRunning adds streams to the requests that the library holds to be long.
func (s *Server) isLongRunning(long request.LongRunningRequestCheck) request.LongRunningRequestCheck {
	return func(r *http.Request, info *request.RequestInfo) bool {
		return s.streams[r.URL.Path] || long != nil && long(r, info)
	}
}
