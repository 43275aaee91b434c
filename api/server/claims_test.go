package server_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/weir-metrics/weir/api/server"
)

// In turn, an API of weir is answered by weir, by another server, by nobody, and by weir again.
func TestClaims(t *testing.T) {
	c := newCluster(t)
	token := c.user("weir", "get /apis/weir.dev/v1alpha1")
	s := start(t, c, nil, func(s *server.Server) {
		if err := s.Announce(server.AnnouncedGroup{
			GroupVersion: schema.GroupVersion{Group: "weir.dev", Version: "v1alpha1"},
			Resources:    []metav1.APIResource{{Name: "missing", Kind: "Missing", Verbs: metav1.Verbs{"get"}}},
		}); err != nil {
			t.Fatal(err)
		}
	})
	var answers string
	apiServer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch answers {
		case "weir":
			got := s.get(t, r.URL.Path, bearer(token))
			w.Header().Set("Server", got.header.Get("Server")) // as kube-apiserver hands on all headers
			w.WriteHeader(got.code)
			fmt.Fprint(w, got.body)
		case "another server":
			fmt.Fprint(w, `{"kind":"APIResourceList"}`)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(apiServer.Close)
	registry := prometheus.NewRegistry()
	core, logs := observer.New(zap.InfoLevel)
	claims, err := s.NewClaims(&rest.Config{Host: apiServer.URL}, registry, zap.New(core))
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct{ answers, metric, log string }{
		{"weir", "1", ""},
		{"another server", "0", "another server answers this API"},
		{"another server", "0", ""},
		{"nobody", "", ""},
		{"weir", "1", "weir answers this API again"},
	} {
		answers = step.answers
		claims.Look(t.Context())
		want := ""
		if step.metric != "" {
			want = `# HELP weir_api_answered_by_weir Whether the cluster's API server sends requests for an API group that weir serves to weir (1) or to another server (0). Absent without an APIService.
# TYPE weir_api_answered_by_weir gauge
weir_api_answered_by_weir{api="weir.dev/v1alpha1"} ` + step.metric + "\n"
		}
		if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
			t.Errorf("%s answers: %v", step.answers, err)
		}
		var got string
		for _, entry := range logs.TakeAll() {
			got += entry.Message
		}
		if !strings.HasPrefix(got, step.log) || step.log == "" && got != "" {
			t.Errorf("%s answers: logged %q, want %q", step.answers, got, step.log)
		}
	}
}
