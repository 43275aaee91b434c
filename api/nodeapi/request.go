package nodeapi

import (
	"net/http"
	"path"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/internal/humanize"
)

// The subresources of nodes in the group weir.dev.
const (
	Eviction   = "eviction"
	PodCgroups = "podcgroups"
	Devices    = "devices"
	Kills      = "kills"
)

// subresources are all of them.
var subresources = []string{Eviction, PodCgroups, Devices, Kills}

// nodesResource is the resource that the subresources belong to.
const nodesResource = "nodes"

var routes = func() (all weirdev.Routes) {
	for _, name := range subresources {
		all = append(all, weirdev.Route{Path: nodesResource + "/{name}/" + name})
	}
	return all
}()

// Paths returns the patterns of the API for http.ServeMux.
func Paths() []string { return routes.Patterns() }

// subresourceNames returns the names of the subresources as text, each after prefix.
func subresourceNames(prefix string) string {
	var names []string
	for _, name := range subresources {
		names = append(names, prefix+name)
	}
	return humanize.List(names, 0)
}

// Request is a request for a subresource of a node.
type Request struct {
	Node        string
	Subresource string // Eviction, PodCgroups, Devices or Kills
}

// ParseRequest parses the path and the query of r. Its error is a *weirdev.Problem. Rights uses it
// too, so that rights are checked for the same request that is answered.
func ParseRequest(r *http.Request) (Request, error) {
	parsed, err := routes.Parse(r)
	if err != nil {
		return Request{}, err
	}
	return Request{Node: parsed.Names["name"], Subresource: path.Base(parsed.Path)}, nil
}

// path returns the path below weirdev.Path.
func (r Request) path() []string { return []string{nodesResource, r.Node, r.Subresource} }

// String describes the request.
func (r Request) String() string {
	switch r.Subresource {
	case PodCgroups:
		return "the pod cgroups of node " + r.Node
	case Devices:
		return "the devices of node " + r.Node
	case Kills:
		return "kills by the kernel on node " + r.Node
	}
	return "evictions on node " + r.Node
}

// APIResources returns the resources for discovery.
func APIResources() []metav1.APIResource {
	return []metav1.APIResource{
		{Name: nodesResource + "/" + Eviction, Kind: ExplanationKind, Verbs: metav1.Verbs{"get"}},
		{Name: nodesResource + "/" + PodCgroups, Kind: "PodCgroups", Verbs: metav1.Verbs{"get"}},
		{Name: nodesResource + "/" + Devices, Kind: DevicesKind, Verbs: metav1.Verbs{"get"}},
		{Name: nodesResource + "/" + Kills, Kind: KillsKind, Verbs: metav1.Verbs{"get"}},
	}
}
