package explainapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-metrics/weir/api/rights"
	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/cluster/endlog"
	"github.com/weir-metrics/weir/explain/death"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/test/cmptest"
)

// ends is a memory of ends.
type ends []*endlog.End

func (e ends) In(namespace metric.Namespace) (all []*endlog.End) {
	for _, end := range e {
		if namespace == "" || end.Pod.Namespace == namespace {
			all = append(all, end)
		}
	}
	return all
}

func (e ends) Since() time.Time { return time.Now().Add(-time.Hour) }
func (e ends) Size() (int, int) { return len(e), 0 }

// manyEnds are two ends of shop/web, one of them without an error, and n of the namespace flood.
func manyEnds(n int) (all ends) {
	add := func(namespace, pod, container string, code int32) {
		p := &cluster.Pod{PodRef: metric.PodRef{Namespace: metric.Namespace(namespace), Name: metric.PodName(pod)}, Containers: []cluster.Container{{Name: container}}}
		now := time.Now()
		all = append(all, &endlog.End{Pod: p, Container: container, Run: endlog.Run{Ended: now, ExitCode: code}, At: now, Seen: now})
	}
	add("shop", "web", "app", 3)
	add("shop", "web", "setup", 0)
	for i := range n {
		add("flood", fmt.Sprint("web-", i), "app", 1)
	}
	return all
}

// serve starts a server with h for these paths.
func serve(t *testing.T, paths []string, h http.Handler) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	for _, path := range paths {
		mux.Handle(path, h)
	}
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server
}

// answers compares the status and the kind of the answer of each path.
func answers(t *testing.T, url string, want map[string]string) {
	t.Helper()
	for path, want := range want {
		resp, err := http.Get(url + weirdev.Path + path)
		if err != nil {
			t.Fatal(err)
		}
		var answer struct{ Kind string }
		err = json.NewDecoder(resp.Body).Decode(&answer)
		resp.Body.Close()
		if got := fmt.Sprint(resp.StatusCode, " ", answer.Kind); err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", path, got, err, want)
		}
	}
}

// The client reads what the handler wrote. A list leaves out runs without an error, and is bounded.
func TestDeaths(t *testing.T) {
	server := serve(t, DeathPaths(), NewDeathHandler(manyEnds(1000), nil, nil))
	c := client(t, server.URL, nil)
	f := func(what string, q death.Query, deaths, completed, leftOut int, summary string) {
		t.Helper()
		r, err := c.Deaths(t.Context(), q)
		if err != nil || len(r.Deaths) != deaths || r.Completed != completed || r.LeftOut != leftOut || r.Summary != summary || r.EventsUnread == "" {
			t.Errorf("%s: got %+v, %v; want %d deaths, %d completed, %d left out and %q", what, r, err, deaths, completed, leftOut, summary)
		}
	}
	f("the cluster", death.Query{}, death.MaxDeaths, 1, 801, "1,001 deaths in the cluster in the last hour. 1 run ended without an error.")
	f("a namespace", death.Query{Namespace: "shop"}, 1, 1, 0, "1 death in namespace shop in the last hour. 1 run ended without an error.")
	f("a pod", death.Query{Namespace: "shop", Pod: "web"}, 2, 0, 0, "2 deaths in pod shop/web in the last hour.")
	f("a container", death.Query{Namespace: "shop", Pod: "web", Container: "app"}, 1, 0, 0, "1 death in container app of pod shop/web in the last hour.")
	f("nothing", death.Query{Namespace: "calm"}, 0, 0, 0, "Nothing ended in namespace calm in the last hour.")

	answers(t, server.URL, map[string]string{
		"deaths":                               "200 DeathReport",
		"namespaces/shop/deaths?pod=web":       "200 DeathReport",
		"namespaces/shop/deaths?container=app": "400 Status",
		"deaths?pod=web":                       "400 Status",
	})
}

// Callers that may read the numbers of a pod, and not the pod itself, do not see what its containers wrote.
func TestWordsNeedTheirRight(t *testing.T) {
	all := manyEnds(0)
	all[0].Run.Message = "password"
	h := NewDeathHandler(all, nil, nil)
	for path, right := range map[string]rights.Right{
		"namespaces/shop/deaths":         {Verb: "list", Resource: "pods", Namespace: "shop"},
		"namespaces/shop/deaths?pod=web": {Verb: "get", Resource: "pods", Namespace: "shop", Name: "web"},
	} {
		for _, may := range []bool{true, false} {
			var asked []rights.Right
			r := httptest.NewRequest(http.MethodGet, weirdev.Path+path, nil)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r.WithContext(rights.WithReviewer(r.Context(), func(_ context.Context, needed []rights.Right) ([]string, error) {
				if asked = needed; may {
					return nil, nil
				}
				return []string{"it"}, nil
			})))
			if got := strings.Contains(w.Body.String(), "password"); w.Code != http.StatusOK || got != may {
				t.Errorf("%s by a caller that may see pods (%v): status %d, shows what the container wrote: %v", path, may, w.Code, got)
			}
			if diff := cmp.Diff([]rights.Right{right}, asked); diff != "" {
				t.Errorf("%s (-want +asked):\n%s", path, diff)
			}
		}
	}
}

// A weir without a cluster says so.
func TestNoEndsAreKept(t *testing.T) {
	w := httptest.NewRecorder()
	NewDeathHandler(nil, nil, nil).ServeHTTP(w, httptest.NewRequest(http.MethodGet, weirdev.Path+"deaths", nil))
	if w.Code != http.StatusNotFound {
		t.Errorf("status %d: %s; want 404", w.Code, w.Body)
	}
}

// A reader needs the rights to the numbers of the pods.
func TestDeathRights(t *testing.T) {
	for path, want := range map[string][]rights.Right{
		"deaths":                               {rights.ListPods("")},
		"namespaces/shop/deaths":               {rights.ListPods("shop")},
		"namespaces/sh%6Fp/deaths":             {rights.ListPods("shop")},
		"namespaces/shop/deaths?pod=web":       {rights.GetPod("shop", "web")},
		"namespaces/shop/deaths?container=app": rights.Everything(),
		"deaths?pod=web":                       rights.Everything(),
		"namespaces/%2e%2e/deaths":             rights.Everything(),
	} {
		cmptest.Equal(t, path, want, DeathRights(httptest.NewRequest(http.MethodGet, weirdev.Path+path, nil)))
	}
}
