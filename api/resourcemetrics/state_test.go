package resourcemetrics_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-metrics/weir/api/resourcemetrics"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/test/cmptest"
)

func TestUnavailable(t *testing.T) {
	const unread = "weir has just started and has read no node yet"
	const notSynced = "the API server has not listed pods and nodes yet"
	known := (*cluster.Facts)(nil).With(cluster.FactsChange{Synced: true, Nodes: []*cluster.Node{{Name: "n1"}}})
	for name, tc := range map[string]struct {
		view  resourcemetrics.UsageReader
		facts *cluster.Facts
		want  string
	}{
		"no view":          {facts: known, want: unread},
		"an empty view":    {view: newFixture().sink.Snapshot(), facts: known, want: unread},
		"neither":          {want: unread},
		"facts not synced": {view: village(t).sink.Snapshot(), facts: known.With(cluster.FactsChange{}), want: notSynced},
	} {
		t.Run(name, func(t *testing.T) {
			config := serve(t, resourcemetrics.Options{
				Snapshot: func() resourcemetrics.UsageReader { return tc.view },
				Facts:    func() *cluster.Facts { return tc.facts },
			})
			for _, path := range []string{podsIn, podsIn + "/web-0", apiPath + "/nodes", apiPath + "/nodes/n1"} {
				response, body := get(t, config, path)
				if response.StatusCode != http.StatusServiceUnavailable || response.Header.Get("Retry-After") != "1" || !strings.Contains(string(body), tc.want) {
					t.Errorf("%s: got status %d, Retry-After %q, body %s\nwant 503, 1, %s", path, response.StatusCode, response.Header.Get("Retry-After"), body, tc.want)
				}
			}
		})
	}
}

// TestRetry has a client ask before there is any data.
func TestRetry(t *testing.T) {
	o := village(t).options()
	ready := o.Snapshot
	var asked atomic.Int32
	o.Snapshot = func() resourcemetrics.UsageReader {
		if asked.Add(1) == 1 {
			return nil
		}
		return ready()
	}
	c, _ := client(t, serve(t, o), "")
	list, err := c.MetricsV1beta1().PodMetricses("shop").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 2 || asked.Load() != 2 {
		t.Errorf("asked %d times and got %v with %v, want two pods the second time", asked.Load(), list, err)
	}
}

func TestNoNodes(t *testing.T) {
	c, warned := client(t, serve(t, resourcemetrics.Options{
		Snapshot: func() resourcemetrics.UsageReader { return nil },
		Facts:    func() *cluster.Facts { return (*cluster.Facts)(nil).With(cluster.FactsChange{Synced: true}) },
	}), "")
	list, err := c.MetricsV1beta1().PodMetricses("").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 0 {
		t.Errorf("got %v and %v, want an empty list: there is nothing to measure", list, err)
	}
	if got := warned.Take(); got != nil {
		t.Errorf("got warnings %q", got)
	}
}

// TestStandalone serves kubelets without a cluster.
func TestStandalone(t *testing.T) {
	w := newFixture()
	b := batch("alone")
	measured(b, nodeEntity("alone"), 0, 15*time.Second, 1e9, 1<<30)
	whole, part := running("default", "whole", "alone", ""), running("default", "part", "alone", "")
	measured(b, container(whole, "a"), 0, 15*time.Second, 1e6, 1<<20)
	measured(b, container(whole, "b"), 0, 15*time.Second, 1e6, 1<<20)
	measured(b, container(part, "a"), 0, 15*time.Second, 1e6, 1<<20)
	measured(b, container(part, "b"), 0, 15*time.Second, 1e6, 1<<20).Reasons[metric.CPU] = metric.CounterReset
	w.write(t, b)
	o := w.options()
	o.Facts = func() *cluster.Facts { return nil }
	c, _ := client(t, serve(t, o), "")

	pods := func(namespace string, options metav1.ListOptions) (names []string) {
		t.Helper()
		list, err := c.MetricsV1beta1().PodMetricses(namespace).List(t.Context(), options)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range list.Items {
			names = append(names, p.Name)
		}
		return names
	}
	want := []string{"whole"}
	if got := pods("", metav1.ListOptions{}); !cmp.Equal(got, want) {
		t.Errorf("all pods: got %v, want %v", got, want)
	}
	if got := pods("default", metav1.ListOptions{FieldSelector: "metadata.name=whole"}); !cmp.Equal(got, want) {
		t.Errorf("one pod: got %v, want %v", got, want)
	}
	if got := pods("default", metav1.ListOptions{LabelSelector: "app=web"}); got != nil {
		t.Errorf("by a label: got %v, but nothing has labels", got)
	}
	nodes, err := c.MetricsV1beta1().NodeMetricses().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(nodes.Items) != 1 || nodes.Items[0].Name != "alone" {
		t.Errorf("nodes: got %v, %v", nodes, err)
	}
	if _, err := c.MetricsV1beta1().NodeMetricses().Get(t.Context(), "alone", metav1.GetOptions{}); err != nil {
		t.Errorf("get node: %v", err)
	}
	for name, want := range map[string]string{
		"part":   `podmetrics.metrics.k8s.io "part" not found: container b has no number: the counter fell although nothing restarted (CounterReset)`,
		"nobody": `pods "nobody" not found`,
	} {
		if _, err := c.MetricsV1beta1().PodMetricses("default").Get(t.Context(), name, metav1.GetOptions{}); !apierrors.IsNotFound(err) || err.Error() != want {
			t.Errorf("get %s:\ngot  %v\nwant %s", name, err, want)
		}
	}
	if _, err := c.MetricsV1beta1().NodeMetricses().Get(t.Context(), "other", metav1.GetOptions{}); err == nil || err.Error() != `nodes "other" not found` {
		t.Errorf("get an unknown node: got %v", err)
	}
}

func TestFreshness(t *testing.T) {
	o := village(t).options()
	registry := prometheus.NewRegistry()
	o.Registerer = registry
	c, _ := client(t, serve(t, o), "")
	if _, err := c.MetricsV1beta1().PodMetricses("shop").List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.MetricsV1beta1().NodeMetricses().Get(t.Context(), "n1", metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil || len(families) != 1 {
		t.Fatalf("got %d metrics and %v", len(families), err)
	}
	got := map[string]float64{}
	for _, m := range families[0].Metric {
		got[m.Label[0].GetValue()] = m.Histogram.GetSampleSum()
	}
	// A second after noon: api is 3 s old and web-0 6 s, n1 is 3 s old.
	cmptest.Equal(t, "sums of ages", map[string]float64{"pods": 9, "nodes": 3}, got)
	if problems, err := testutil.GatherAndLint(registry); err != nil || len(problems) > 0 {
		t.Errorf("lint: %v %v", problems, err)
	}
}

func TestInstallRefuses(t *testing.T) {
	if err := resourcemetrics.Install(nil, resourcemetrics.Options{}); err == nil || err.Error() != "install metrics.k8s.io: Options.Snapshot is missing" {
		t.Errorf("without a view: got %v", err)
	}
}
