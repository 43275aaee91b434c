package nodeapi

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-metrics/weir/api/rights"
	"github.com/weir-metrics/weir/api/weirdev"
)

// What there is to ask of a node: subresources of nodes of the group weir.dev.
const (
	Eviction   = "eviction"
	PodCgroups = "podcgroups"
)

// nodesResource is the resource.
const nodesResource = "nodes"

// Paths returns the patterns, as http.ServeMux has them, of all that is served.
func Paths() []string {
	return []string{
		weirdev.Path + nodesResource + "/{name}/" + Eviction,
		weirdev.Path + nodesResource + "/{name}/" + PodCgroups,
	}
}

// Request is what is asked for.
type Request struct {
	Node        string
	Subresource string // Eviction or PodCgroups
}

// ParseRequest reads the path and the query of r. What is wrong with them is a
// *wire.Problem. Who decides what a caller must be allowed goes by the same reading as
// who answers.
func ParseRequest(r *http.Request) (Request, error) {
	parts, names, ok := weirdev.Parts(r.URL.EscapedPath())
	if !ok || len(parts) != 3 || parts[0] != nodesResource || parts[2] != Eviction && parts[2] != PodCgroups {
		return Request{}, &weirdev.Problem{Status: http.StatusNotFound, Message: "nothing is at " + strconv.Quote(r.URL.Path),
			Hint: "There are nodes/NAME/" + Eviction + " and nodes/NAME/" + PodCgroups + " below " + weirdev.Path + "."}
	}
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return Request{}, &weirdev.Problem{Status: http.StatusBadRequest, Message: err.Error(), Hint: "Ask without parameters."}
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !weirdev.Moot(name) {
			return Request{}, &weirdev.Problem{Status: http.StatusBadRequest, Message: "unknown parameter " + strconv.Quote(name), Hint: "There are none."}
		}
	}
	return Request{Node: names[1], Subresource: parts[2]}, nil
}

// parseReadRequest is ParseRequest of a request that may only read.
func parseReadRequest(w http.ResponseWriter, r *http.Request) (Request, error) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		return Request{}, &weirdev.Problem{Status: http.StatusMethodNotAllowed, Message: "what a node tells cannot be changed", Hint: "GET it."}
	}
	return ParseRequest(r)
}

// path returns the path below wire.Path.
func (r Request) path() []string { return []string{nodesResource, r.Node, r.Subresource} }

// String says what is asked for.
func (r Request) String() string {
	if r.Subresource == PodCgroups {
		return "the pod cgroups of node " + r.Node
	}
	return "evictions on node " + r.Node
}

// APIResources returns what discovery lists.
func APIResources() []metav1.APIResource {
	return []metav1.APIResource{
		{Name: nodesResource + "/" + Eviction, Kind: ExplanationKind, Verbs: metav1.Verbs{"get"}},
		{Name: nodesResource + "/" + PodCgroups, Kind: "PodCgroups", Verbs: metav1.Verbs{"get"}},
	}
}

// Rights returns what the caller of r needs: a right of its own, since the answer names
// every pod of the node.
func Rights(r *http.Request) []rights.Right {
	request, err := ParseRequest(r)
	if err != nil {
		return rights.Everything()
	}
	return []rights.Right{rights.GetOwnNode(request.Node, request.Subresource)}
}
