package server

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/weir-metrics/weir/api/rights"
)

// FuzzPathMeansOneThing checks that no path shows a caller another namespace than the one that was
// reviewed, and that none of weir's own paths is served without its rule.
func FuzzPathMeansOneThing(f *testing.F) {
	for _, path := range []string{
		"/api/v1/model/namespaces/web/pods", "/api/v1/model/namespaces/web/../other/pods", "/api/v1/model/namespaces/web/%2e%2e/other/x",
		"/api/v1/model//namespaces/web/pods", "/api/v1/model/namespaces/web%2Fother/pods", "/%61pi/v1/model/namespaces/web/pods",
		"/api/v1/model/namespaces/%2e/pods", "/metrics/cluster", "/metrics/cluster/", "//metrics/cluster", "/metrics/./cluster", "*", "/", "",
		"/metrics/%63luster", "/api/v1/pods", "/apis/metrics.k8s.io/v1beta1/pods",
	} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		u, err := url.ParseRequestURI(path)
		if err != nil || u.Host != "" {
			return
		}
		var reviewed, shown []string
		ruled := false
		routes := newRoutes(serializer.NewCodecFactory(newScheme()))
		routes.handle("/api/v1/model/namespaces/{namespace}/", func(r *http.Request) []rights.Right {
			reviewed = append(reviewed, r.PathValue("namespace"))
			return []rights.Right{rights.ListPods(r.PathValue("namespace"))}
		}, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { shown = append(shown, r.PathValue("namespace")) }))
		routes.handle("/metrics/cluster", func(*http.Request) []rights.Right { ruled = true; return []rights.Right{rights.ListPods("")} },
			http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
				if !ruled {
					t.Errorf("%q is shown without a rule", path)
				}
			}))
		others := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if matchFrom(r.Context()) != nil {
				t.Errorf("%q was found and is served by others", path)
			}
		})
		resolve := pathInfoResolver{&request.RequestInfoFactory{}}
		chain := routes.matchRoute(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			info, err := resolve.NewRequestInfo(r)
			if err == nil && matchFrom(r.Context()) != nil && info.IsResourceRequest {
				t.Errorf("%q is weir's own and a resource", path)
			}
			routes.serveMatched(others).ServeHTTP(w, r)
		}))
		w := httptest.NewRecorder()
		chain.ServeHTTP(w, &http.Request{Method: http.MethodGet, URL: u, Header: http.Header{}, RequestURI: path})
		if len(shown) > 0 && !slices.Equal(shown, reviewed) {
			t.Errorf("%q: reviewed %q, shown %q", path, reviewed, shown)
		}
		for _, namespace := range shown {
			if namespace == "." || namespace == ".." || namespace == "" {
				t.Errorf("%q shows namespace %q", path, namespace)
			}
			if !strings.Contains(namespace, "/") && !strings.HasPrefix(u.Path, "/api/v1/model/namespaces/"+namespace+"/") {
				t.Errorf("%q shows namespace %q", path, namespace)
			}
		}
	})
}
