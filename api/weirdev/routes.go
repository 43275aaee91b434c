package weirdev

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/weir-metrics/weir/internal/humanize"
)

// Route is a path of an API and the query parameters that it takes.
type Route struct {
	// Path is a pattern below Path, in which a part in braces is any name:
	// "namespaces/{namespace}/events".
	Path string
	// Parameters are the names of the parameters. A parameter is set once, with a value.
	Parameters []string
	// EmptyValues accepts parameters without a value.
	EmptyValues bool
}

// Routes are all paths of an API.
type Routes []Route

// Request is a request that one of the Routes matches.
type Request struct {
	Route
	// Names are the names in the path, unescaped, by the words in braces of the pattern.
	Names map[string]string
	// Values are the parameters that are set.
	Values map[string]string
}

// Patterns returns the paths as patterns of http.ServeMux.
func (ro Routes) Patterns() (patterns []string) {
	for _, r := range ro {
		patterns = append(patterns, Path+r.Path)
	}
	return patterns
}

// Parse parses the path and the query of r. Its error is a *Problem: 404 if no route matches the
// path, 400 if the query is wrong. An API uses it for access rights and for its answer, so that
// rights are checked for the request that is answered.
func (ro Routes) Parse(r *http.Request) (*Request, error) {
	request := ro.match(r.URL.EscapedPath())
	if request == nil {
		return nil, &Problem{Status: http.StatusNotFound, Message: fmt.Sprintf("unknown path %q", r.URL.Path), Hint: ro.hint()}
	}
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, request.BadParameter("%v", err)
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		switch value := values[name]; {
		case isIgnored(name):
		case !slices.Contains(request.Parameters, name):
			return nil, request.BadParameter("unknown parameter %q", name)
		case len(value) != 1 || value[0] == "" && !request.EmptyValues:
			return nil, request.BadParameter("parameter %s needs one value", name)
		default:
			request.Values[name] = value[0]
		}
	}
	return request, nil
}

// BadParameter returns a Problem about the query. Its hint lists the parameters of the path.
func (r *Request) BadParameter(format string, args ...any) error {
	hint := "This path takes no parameters."
	if len(r.Parameters) > 0 {
		hint = "Parameters of this path: " + strings.Join(r.Parameters, ", ") + "."
	}
	return &Problem{Status: http.StatusBadRequest, Message: fmt.Sprintf(format, args...), Hint: hint}
}

// hint lists the paths.
func (ro Routes) hint() string {
	var paths []string
	for _, r := range ro {
		parts := strings.Split(r.Path, "/")
		for i, part := range parts {
			if word, ok := wildcard(part); ok {
				parts[i] = strings.ToUpper(word)
			}
		}
		paths = append(paths, strings.Join(parts, "/"))
	}
	return "Valid paths below " + Path + ": " + humanize.List(paths, 0) + "."
}

// match returns the request for an escaped path, or nil if no route matches. Fixed words are
// compared with the path as received: an API server on the way may read an escaped word differently.
func (ro Routes) match(escaped string) *Request {
	rest, ok := strings.CutPrefix(escaped, Path)
	if !ok {
		return nil
	}
	parts := strings.Split(rest, "/")
	for _, route := range ro {
		if names, ok := route.match(parts); ok {
			return &Request{Route: route, Names: names, Values: map[string]string{}}
		}
	}
	return nil
}

func (r *Route) match(parts []string) (names map[string]string, ok bool) {
	pattern := strings.Split(r.Path, "/")
	if len(pattern) != len(parts) {
		return nil, false
	}
	names = map[string]string{}
	for i, part := range parts {
		word, any := wildcard(pattern[i])
		if !any {
			if part != pattern[i] {
				return nil, false
			}
			continue
		}
		name, err := url.PathUnescape(part)
		if err != nil || name == "" || name == "." || name == ".." {
			return nil, false
		}
		names[word] = name
	}
	return names, true
}

// wildcard returns the word of "{word}".
func wildcard(part string) (word string, ok bool) {
	if strings.HasPrefix(part, "{") {
		return strings.Trim(part, "{}"), true
	}
	return "", false
}

// isIgnored reports whether a parameter is one that "kubectl get" adds by itself and that changes
// nothing.
func isIgnored(parameter string) bool { return parameter == "limit" || parameter == "timeout" }
