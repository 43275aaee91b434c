package server_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/weir-metrics/weir/api/rights"
	"github.com/weir-metrics/weir/api/server"
)

// mill is a group with a path of each shape.
var mill = server.AnnouncedGroup{
	GroupVersion: schema.GroupVersion{Group: "mill.example", Version: "v1alpha1"},
	Resources: []metav1.APIResource{
		{Name: "grists", Kind: "Grist", Namespaced: true, Verbs: metav1.Verbs{"list"}},
		{Name: "grists/reason", Kind: "Reason", Namespaced: true, Verbs: metav1.Verbs{"get"}},
		{Name: "wheels", Kind: "Wheel", Verbs: metav1.Verbs{"list"}},
		{Name: "weighings", Kind: "Weighing", Namespaced: true, Verbs: metav1.Verbs{"create"}}, // not stored
	},
}

func announced(t *testing.T, s *server.Server) {
	t.Helper()
	if err := s.Announce(mill); err != nil {
		t.Fatal(err)
	}
	s.Handle("/apis/mill.example/v1alpha1/wheels", func(*http.Request) []rights.Right { return []rights.Right{rights.ListNodes()} }, echo)
}

// discoverer returns a client of r's discovery, as Kubernetes' controllers use it.
func discoverer(t *testing.T, r *run, token string, legacy bool) *discovery.DiscoveryClient {
	t.Helper()
	d, err := discovery.NewDiscoveryClientForConfig(&rest.Config{
		Host: "https://" + r.Address(), BearerToken: token, TLSClientConfig: rest.TLSClientConfig{Insecure: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	d.UseLegacyDiscovery = legacy
	t.Cleanup(d.RESTClient().(*rest.RESTClient).Client.CloseIdleConnections)
	return d
}

// Clients of both forms of discovery find the group and all its resources.
func TestAnnouncedGroupIsDiscovered(t *testing.T) {
	c := newCluster(t)
	token := c.user("jane", "get /api", "get /apis", "get /apis/mill.example", "get /apis/mill.example/v1alpha1")
	r := start(t, c, nil, func(s *server.Server) { announced(t, s) })
	for _, legacy := range []bool{false, true} {
		d := discoverer(t, r, token, legacy)
		groups, lists, err := d.ServerGroupsAndResources()
		if err != nil {
			t.Fatalf("legacy %v: %v", legacy, err)
		}
		var got []string
		for _, l := range lists {
			for i := range l.APIResources {
				a := &l.APIResources[i]
				got = append(got, strings.Join([]string{l.GroupVersion, a.Name, a.Kind, map[bool]string{true: "namespaced"}[a.Namespaced], strings.Join(a.Verbs, ",")}, " "))
			}
		}
		slices.Sort(got)
		want := []string{
			"mill.example/v1alpha1 grists Grist namespaced list",
			"mill.example/v1alpha1 grists/reason Reason namespaced get",
			"mill.example/v1alpha1 weighings Weighing namespaced create",
			"mill.example/v1alpha1 wheels Wheel  list",
		}
		if diff := cmp.Diff(want, got); diff != "" || len(groups) != 1 || groups[0].PreferredVersion.GroupVersion != "mill.example/v1alpha1" {
			t.Errorf("legacy %v: groups %v, resources (-want +got):\n%s", legacy, groups, diff)
		}
		// Controllers select resources by verbs; they must not select these.
		for what, verbs := range map[string][]string{"namespaces'": {"delete"}, "garbage's": {"delete", "list", "watch"}, "a cache's": {"list", "watch"}} {
			if taken := discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: verbs}, lists); len(taken) > 0 {
				t.Errorf("legacy %v: %s controller would take %v", legacy, what, taken)
			}
		}
	}
}

// An aggregating API server requests these paths before it calls the group available.
func TestAnnouncedGroupIsAvailable(t *testing.T) {
	c := newCluster(t)
	r := start(t, c, nil, func(s *server.Server) { announced(t, s) })
	until(t, "the certificate of the aggregating API server is known", func() bool {
		return r.get(t, "/readyz", nil).code == http.StatusOK
	})
	as := behindProxy(c.proxyCA.client(t, "front-proxy-client"), "system:kube-aggregator")
	c.user("system:kube-aggregator", "get /apis/mill.example/v1alpha1")
	if got := r.get(t, "/apis/mill.example/v1alpha1", as); got.code != http.StatusOK || !strings.Contains(got.body, `"kind":"APIResourceList"`) {
		t.Errorf("the group's version: got %d %s", got.code, got.body)
	}
}

// The rules of Handle serve what is announced, with the caller's own rights.
func TestAnnouncedPathsKeepTheirRules(t *testing.T) {
	c := newCluster(t)
	as := bearer(c.user("jane", "list nodes.metrics.k8s.io"))
	r := start(t, c, nil, func(s *server.Server) { announced(t, s) })
	for path, want := range map[string]int{
		"/apis/mill.example/v1alpha1/wheels": http.StatusOK,
		"/apis/mill.example/v1alpha1/grists": http.StatusForbidden, // announced, but without a handler
	} {
		if got := r.get(t, path, as); got.code != want {
			t.Errorf("%s: got %d %s, want %d", path, got.code, got.body, want)
		}
	}
}

// Announce refuses a group that would mislead clients.
func TestAnnounceRefuses(t *testing.T) {
	c := newCluster(t)
	start(t, c, nil, func(s *server.Server) {
		f := func(want string, change func(*server.AnnouncedGroup)) {
			t.Helper()
			g := mill
			g.Resources = slices.Clone(mill.Resources)
			change(&g)
			if err := s.Announce(g); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want it to say %q", err, want)
			}
		}
		f("a group needs a name and a version", func(g *server.AnnouncedGroup) { g.Version = "" })
		f(`resource "wheels" needs a name, a kind and verbs`, func(g *server.AnnouncedGroup) { g.Resources[2].Kind = "" })
		f(`resource "wheels" has verbs [list watch]`, func(g *server.AnnouncedGroup) { g.Resources[2].Verbs = metav1.Verbs{"list", "watch"} })
		f(`resource "grists" has verbs [delete]`, func(g *server.AnnouncedGroup) { g.Resources[0].Verbs = metav1.Verbs{"delete"} })
		f(`resource "grists" has verbs [list create]`, func(g *server.AnnouncedGroup) { g.Resources[0].Verbs = metav1.Verbs{"list", "create"} })
		f(`resources "grists" and "wheels" share the kind Grist`, func(g *server.AnnouncedGroup) { g.Resources[2].Kind = "Grist" })
		f("scope do not match", func(g *server.AnnouncedGroup) { g.Resources[1].Namespaced = false })
	})
}
