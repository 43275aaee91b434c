package usage

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/weir-metrics/weir/api/weirdev"
)

// Request is what is asked for.
type Request struct {
	Resource Resource
	Query    Query
	// Everywhere says that the answer may tell of more than the one namespace
	// that Query then names.
	Everywhere bool
}

// ParseRequest reads the path and the query of r. What is wrong with them is a
// *wire.Problem. Who decides what a caller must be allowed goes by the same reading as
// who answers.
func ParseRequest(r *http.Request) (Request, error) {
	rest, ok := strings.CutPrefix(r.URL.EscapedPath(), weirdev.Path)
	parts := strings.Split(rest, "/")
	within := len(parts) == 3 && parts[0] == "namespaces"
	resource, known := ParseResource(parts[len(parts)-1])
	if !ok || !known || !within && len(parts) != 1 || within && !resource.Namespaced() {
		return Request{}, &weirdev.Problem{Status: http.StatusNotFound, Message: "nothing is at " + strconv.Quote(r.URL.Path),
			Hint: "There are nodes, pods, containers and cgroups below " + weirdev.Path + ", and pods and containers below " + weirdev.Path + "namespaces/NAME/."}
	}
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return Request{}, refuse(err)
	}
	q, err := ParseQuery(values)
	if err != nil {
		return Request{}, refuse(err)
	}
	if !within {
		return Request{resource, q, !resource.Namespaced() || !isLabel(q.Namespace)}, nil
	}
	switch {
	case values.Has("namespace"):
		return Request{}, &weirdev.Problem{Status: http.StatusBadRequest, Message: "the path names a namespace, and so does the query",
			Hint: "Leave namespace out of the query, or ask " + weirdev.Path + string(resource) + "."}
	case !isLabel(parts[1]):
		return Request{}, &weirdev.Problem{Status: http.StatusBadRequest, Message: "no namespace can be called " + strconv.Quote(parts[1]),
			Hint: "A pattern goes into the query: " + weirdev.Path + string(resource) + "?namespace=PATTERN."}
	}
	q.Namespace = parts[1]
	return Request{resource, q, false}, nil
}

// refuse answers a query that cannot be read; what is wrong with it says what to do.
func refuse(err error) *weirdev.Problem {
	return &weirdev.Problem{Status: http.StatusBadRequest, Message: err.Error()}
}

// isLabel reports whether a namespace can be called s: it is no pattern then, and
// means itself in a path.
func isLabel(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return s != "" && len(s) <= 63
}

// Paths returns the patterns, as http.ServeMux has them, of all that is served.
func Paths() []string {
	var paths []string
	for _, r := range Resources() {
		paths = append(paths, weirdev.Path+string(r))
		if r.Namespaced() {
			paths = append(paths, weirdev.Path+"namespaces/{namespace}/"+string(r))
		}
	}
	return paths
}
