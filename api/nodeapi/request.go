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

// subresources are all of them, with the kinds of their answers and what these are about.
var subresources = []struct{ name, kind, about string }{
	{Eviction, ExplanationKind, "evictions on"},
	{PodCgroups, "PodCgroups", "the pod cgroups of"},
	{Devices, DevicesKind, "the devices of"},
	{Kills, KillsKind, "kills by the kernel on"},
}

var routes = func() (all weirdev.Routes) {
	for _, s := range subresources {
		all = append(all, weirdev.Route{Path: "nodes/{name}/" + s.name})
	}
	return all
}()

// Paths returns the patterns of the API for http.ServeMux.
func Paths() []string { return routes.Patterns() }

// subresourceNames returns the names of the subresources as text, each after prefix.
func subresourceNames(prefix string) string {
	var names []string
	for _, s := range subresources {
		names = append(names, prefix+s.name)
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
func (r Request) path() []string { return []string{"nodes", r.Node, r.Subresource} }

// String describes the request.
func (r Request) String() string {
	for _, s := range subresources {
		if s.name == r.Subresource {
			return s.about + " node " + r.Node
		}
	}
	return "node " + r.Node
}

// APIResources returns the resources for discovery.
func APIResources() (all []metav1.APIResource) {
	for _, s := range subresources {
		all = append(all, metav1.APIResource{Name: "nodes/" + s.name, Kind: s.kind, Verbs: metav1.Verbs{"get"}})
	}
	return all
}
