package usage

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/test/cmptest"
)

// asked returns the request of a path and query as a server receives it.
func asked(t *testing.T, target string) *http.Request {
	t.Helper()
	u, err := url.Parse("http://weir" + target)
	if err != nil {
		t.Fatal(err)
	}
	return &http.Request{Method: http.MethodGet, URL: u}
}

func TestParseRequest(t *testing.T) {
	f := func(target string, want Request) {
		t.Helper()
		got, err := ParseRequest(asked(t, weirdev.Path+target))
		if err != nil {
			t.Errorf("%s: %v", target, err)
		}
		cmptest.Equal(t, target, want, got)
	}
	f("nodes", Request{Nodes, Query{}, true})
	f("nodes?namespace=shop", Request{Nodes, Query{Namespace: "shop"}, true})
	f("cgroups?node=n1", Request{Cgroups, Query{Node: "n1"}, true})
	f("pods", Request{Pods, Query{}, true})
	f("pods?namespace=shop", Request{Pods, Query{Namespace: "shop"}, false})
	f("pods?namespace=sh*", Request{Pods, Query{Namespace: "sh*"}, true})
	f("pods?namespace=sh%3fp", Request{Pods, Query{Namespace: "sh?p"}, true})
	f("namespaces/shop/pods", Request{Pods, Query{Namespace: "shop"}, false})
	f("namespaces/shop/containers?pod=web*&limit=500&timeout=5s", Request{Containers, Query{Namespace: "shop", Pod: "web*"}, false})
}

func TestParseRequestRefuses(t *testing.T) {
	f := func(status int, targets ...string) {
		t.Helper()
		for _, target := range targets {
			_, err := ParseRequest(asked(t, target))
			var p *weirdev.Problem
			if !errors.As(err, &p) || p.Status != status || status == http.StatusNotFound && p.Hint == "" {
				t.Errorf("%s: got %#v, want status %d, and with 404 a hint", target, err, status)
			}
		}
	}
	f(http.StatusNotFound, "/pods", weirdev.Path, weirdev.Path+"pds", weirdev.Path+"pods/", weirdev.Path+"pods/web", weirdev.Path+"namespaces/shop", weirdev.Path+"namespaces/shop/nodes",
		weirdev.Path+"namespaces/shop/cgroups", weirdev.Path+"namespaces/shop/x/pods", weirdev.Path+"other/shop/pods", weirdev.Path+"%70ods", "/x"+weirdev.Path+"pods",
		weirdev.Path+"namespaces//pods", weirdev.Path+"namespaces/../pods")
	f(http.StatusBadRequest, weirdev.Path+"namespaces/*/pods", weirdev.Path+"namespaces/sho%3F/pods",
		weirdev.Path+"namespaces/shop%2F..%2Fbank/pods", weirdev.Path+"namespaces/"+strings.Repeat("a", 64)+"/pods",
		weirdev.Path+"namespaces/shop/pods?namespace=shop", weirdev.Path+"namespaces/shop/pods?namespace=", weirdev.Path+"pods?namespace=a;b", weirdev.Path+"pods?Namespace=a",
		weirdev.Path+"pods?watch=true", weirdev.Path+"pods?fieldSelector=a")
}

// A request that needs only the rights to one namespace names that namespace and no other, and one
// of Paths serves it.
func FuzzRequest(f *testing.F) {
	for _, seed := range []string{"pods?namespace=shop", "namespaces/shop/pods", "namespaces/%2A/pods?metrics=", "namespaces/a/b/pods", "nodes", "%"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, target string) {
		u, err := url.Parse("http://weir" + weirdev.Path + target)
		if err != nil {
			return
		}
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.URL = u
		got, err := ParseRequest(r)
		if err != nil {
			return
		}
		if !got.Everywhere && (strings.ContainsAny(got.Query.Namespace, "*?/") || got.Query.Namespace == "" || !got.Resource.Namespaced()) {
			t.Errorf("%q is said to be of one namespace: %+v", target, got)
		}
		mux := http.NewServeMux()
		for _, path := range Paths() {
			mux.Handle(path, http.NotFoundHandler())
		}
		if _, pattern := mux.Handler(r); !slices.Contains(Paths(), pattern) {
			t.Errorf("%q is read as %+v, and no path leads there", target, got)
		}
	})
}
