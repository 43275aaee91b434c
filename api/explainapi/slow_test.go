package explainapi

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/weir-metrics/weir/api/rights"
	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/explain/slow"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/test/cmptest"
)

// slowMemory is a node on which all pods wait for a CPU that batch/hog has.
type slowMemory []*metric.Sample

func newSlowMemory(pods int) (m slowMemory) {
	add := func(e metric.Entity, id metric.ID, v float64) {
		s := &metric.Sample{Entity: e}
		s.Values.Set(id, v)
		s.Times[metric.CPU] = time.Now().UnixNano()
		m = append(m, s)
	}
	add(metric.Entity{Kind: metric.Node, Node: "n1"}, metric.CPUNodeCapacity, 4e9)
	add(metric.Entity{Kind: metric.Pod, Node: "n1", Namespace: "batch", Pod: "hog"}, metric.CPUPressureSome, 1)
	for i := range pods {
		add(metric.Entity{Kind: metric.Pod, Node: "n1", Namespace: "shop", Pod: metric.PodName(fmt.Sprint("web-", i))}, metric.CPUPressureSome, 1)
	}
	return m
}

func (m slowMemory) Each(kind metric.Kind, do func(*metric.Sample) bool) {
	for _, s := range m {
		if s.Entity.Kind == kind && !do(s) {
			return
		}
	}
}

func (m slowMemory) EachOn(_ metric.NodeName, kind metric.Kind, do func(*metric.Sample) bool) {
	m.Each(kind, do)
}

func (m slowMemory) PastPods(metric.NodeName) iter.Seq[metric.Entity] {
	return func(func(metric.Entity) bool) {}
}

func (m slowMemory) Lookup(e metric.Entity) (*metric.Sample, bool) {
	for _, s := range m {
		if s.Entity == e {
			return s, true
		}
	}
	return nil, false
}

func (m slowMemory) Pod(ref metric.PodRef) (*metric.Sample, []*metric.Sample) {
	s, _ := m.Lookup(metric.Entity{Kind: metric.Pod, Node: "n1", Namespace: ref.Namespace, Pod: ref.Name})
	return s, nil
}

func (m slowMemory) Points(e metric.Entity, id metric.ID, from, to time.Time) iter.Seq2[time.Time, float64] {
	value := 0.0
	switch {
	case id == metric.CPUPressureSomeRate && e.Namespace == "shop":
		value = 0.5
	case id == metric.CPUUsageRate && e.Kind == metric.Node:
		value = 4e9
	case id == metric.CPUUsageRate && e.Namespace == "batch":
		value = 3.9e9
	}
	return func(yield func(time.Time, float64) bool) {
		for at := from.Truncate(15 * time.Second).Add(15 * time.Second); !at.After(to); at = at.Add(15 * time.Second) {
			if !yield(at, value) {
				return
			}
		}
	}
}

func slowHandler(m slow.View) http.Handler {
	return NewSlowHandler(func() slow.View { return m }, func() *cluster.Facts { return nil })
}

// The client reads what the handler wrote. A list is bounded.
func TestSlow(t *testing.T) {
	server := serve(t, SlowPaths(), slowHandler(newSlowMemory(250)))
	c := client(t, server.URL, nil)
	f := func(what string, q slow.Query, pods, leftOut int, summary string) {
		t.Helper()
		r, err := c.Slow(t.Context(), q)
		if err != nil || len(r.Pods) != pods || r.LeftOut != leftOut || r.Summary != summary {
			t.Errorf("%s: got %+v, %v; want %d pods, %d left out and %q", what, r, err, pods, leftOut, summary)
		}
	}
	f("the cluster", slow.Query{}, slow.MaxPods, 150, "250 pods in the cluster waited for CPU, memory or disk I/O for more than 1% of the last 5m.")
	f("a namespace", slow.Query{Namespace: "batch", Window: time.Minute}, 0, 0, "No pod in namespace batch waited for CPU, memory or disk I/O for more than 1% of the last 1m.")
	f("a pod", slow.Query{Namespace: "shop", Pod: "web-7"}, 1, 0, "Pod shop/web-7 waited for CPU 50% of the last 5m, because of batch/hog.")
	answers(t, server.URL, map[string]string{
		"slow":                                   "200 SlowReport",
		"slow?window=15m":                        "200 SlowReport",
		"slow?window=16m":                        "400 Status",
		"slow?window=-1m":                        "400 Status",
		"slow?window=soon":                       "400 Status",
		"slow?pod=web-7":                         "400 Status",
		"namespaces/shop/slow?pod=web-7":         "200 SlowReport",
		"namespaces/shop/slow?pod=web-999999999": "404 Status",
	})
}

// Neighbours are named for callers that may list the pods of their namespace.
func TestNeighboursNeedTheirRight(t *testing.T) {
	h := slowHandler(newSlowMemory(1))
	for may, want := range map[rights.Right]bool{
		rights.ListPods(""):     true,
		rights.ListPods("shop"): false, // the hog is in namespace batch
		{}:                      false,
	} {
		r := httptest.NewRequest(http.MethodGet, weirdev.Path+"namespaces/shop/slow?pod=web-0", nil)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r.WithContext(rights.WithReviewer(r.Context(), func(_ context.Context, needed []rights.Right) (missing []string, _ error) {
			for _, n := range needed {
				if n != may {
					missing = append(missing, n.String())
				}
			}
			return missing, nil
		})))
		if got := strings.Contains(w.Body.String(), "hog"); w.Code != http.StatusOK || got != want || !strings.Contains(w.Body.String(), `"neighbours":[{`) {
			t.Errorf("a caller with %q: status %d, names the hog: %v; want %v: %s", may, w.Code, got, want, w.Body)
		}
	}
}

// Before the first round there is no answer.
func TestSlowIsNotMeasuredYet(t *testing.T) {
	w := httptest.NewRecorder()
	slowHandler(nil).ServeHTTP(w, httptest.NewRequest(http.MethodGet, weirdev.Path+"slow", nil))
	if w.Code != http.StatusServiceUnavailable {
		t.Errorf("status %d: %s; want 503", w.Code, w.Body)
	}
}

// A reader needs the rights to the numbers of the pods.
func TestSlowRights(t *testing.T) {
	for path, want := range map[string][]rights.Right{
		"slow":                             {rights.ListPods("")},
		"namespaces/shop/slow":             {rights.ListPods("shop")},
		"namespaces/sh%6Fp/slow":           {rights.ListPods("shop")},
		"namespaces/shop/slow?pod=web":     {rights.GetPod("shop", "web")},
		"namespaces/shop/slow?window=soon": rights.Everything(),
		"slow?pod=web":                     rights.Everything(),
	} {
		cmptest.Equal(t, path, want, SlowRights(httptest.NewRequest(http.MethodGet, weirdev.Path+path, nil)))
	}
}
