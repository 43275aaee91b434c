package weirseries_test

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"

	"github.com/weir-metrics/weir/internal/history"
	"github.com/weir-metrics/weir/internal/history/weirseries"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/test/cmptest"
	"github.com/weir-metrics/weir/test/promtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	web   = metric.Entity{Kind: metric.Pod, Namespace: "shop", Pod: "web", Node: "n2"}
	app   = metric.Entity{Kind: metric.Container, Namespace: "shop", Pod: "web", Name: "app"}
	other = metric.Entity{Kind: metric.Container, Namespace: "shop", Pod: "db", Name: "app"}
	node  = metric.Entity{Kind: metric.Node, Node: "n1"}
)

// TestPoints reads from a real Prometheus. It has ten minutes of a pod that moved from one node to
// another, of containers and of a node, scraped from two replicas.
func TestPoints(t *testing.T) {
	end := time.Now().Truncate(15 * time.Second)
	start := end.Add(-10 * time.Minute)
	h := promtest.Filled(t, func(w io.Writer) {
		line := func(name, labels string, value func(i int) float64, from, to int) {
			fmt.Fprintf(w, "# TYPE %s gauge\n", name)
			for i := from; i < to; i++ {
				fmt.Fprintf(w, "%s{%s} %v %d\n", name, labels, value(i), start.Add(time.Duration(i)*15*time.Second).Unix())
			}
		}
		rise := func(i int) float64 { return float64(i) / 1000 }
		line("weir_container_cpu_usage_cores", `namespace="shop",pod="web",container="app",node="n1"`, rise, 0, 41)
		line("weir_container_memory_working_set_bytes", `namespace="shop",pod="db",container="app",node="n1"`, func(i int) float64 { return float64(4096 + i) }, 0, 41)
		line("weir_node_cpu_usage_cores", `node="n1",instance="a"`, rise, 0, 41)
		line("weir_pod_cpu_usage_cores", `namespace="shop",pod="web",node="n1"`, rise, 0, 20)
		fmt.Fprintln(w, "# EOF")
	}, `weir_node_cpu_usage_cores`, end, 1)
	p := weirseries.New(weirseries.Options{History: h})
	from := end.Add(-time.Minute)
	points := func(value func(i int) float64) (want []history.Point) {
		for i := 36; i <= 40; i++ {
			want = append(want, history.Point{At: start.Add(time.Duration(i) * 15 * time.Second), Value: value(i)})
		}
		return want
	}
	for name, c := range map[string]struct {
		e    metric.Entity
		id   metric.ID
		want []history.Point
	}{
		"a container's CPU, in nanocores": {app, metric.CPUUsageRate, points(func(i int) float64 { return float64(i) * 1e6 })},
		"another's memory":                {other, metric.MemoryWorkingSet, points(func(i int) float64 { return float64(4096 + i) })},
		"a node's":                        {node, metric.CPUUsageRate, points(func(i int) float64 { return float64(i) * 1e6 })},
		"what nobody has measured":        {other, metric.CPUUsageRate, nil},
	} {
		t.Run(name, func(t *testing.T) {
			cmptest.Equal(t, "points", c.want, p.Points(c.e, c.id, from, end))
		})
	}
	if got := p.Points(web, metric.CPUUsageRate, start, start.Add(time.Minute)); len(got) != 5 {
		t.Errorf("%d points of a pod that was on another node, want 5", len(got))
	}
	if got := p.Points(app, metric.CPUUsageRate, end, from); got != nil {
		t.Errorf("points %v of no time", got)
	}
	if got := p.Points(app, metric.CPUUsageRate, end.Add(-3*time.Hour), end); len(got) != 41 {
		t.Errorf("%d points of three hours, want the 41 there are", len(got))
	}
}

// TestAsksOnce checks that concurrent callers share one request, and that no request is sent for a
// while after a failure.
func TestAsksOnce(t *testing.T) {
	client, err := history.New(history.Options{URL: "http://" + promtest.Address(t)}) // no server listens there
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	now := time.Unix(1_800_000_000, 0)
	registry := prometheus.NewRegistry()
	p := weirseries.New(weirseries.Options{History: client, Registerer: registry, Now: func() time.Time { return now }})
	ask := func() {
		var wait sync.WaitGroup
		for range 10 {
			wait.Go(func() {
				if got := p.Points(app, metric.CPUUsageRate, now.Add(-time.Minute), now); got != nil {
					t.Errorf("points %v", got)
				}
			})
		}
		wait.Wait()
	}
	ask()
	ask()
	p.Points(node, metric.CPUUsageRate, now.Add(-time.Minute), now)
	now = now.Add(time.Minute)
	ask()
	if err := testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP weir_history_questions_total Requests to the Prometheus of --history, by result: answered or failed.
# TYPE weir_history_questions_total counter
weir_history_questions_total{result="answered"} 0
weir_history_questions_total{result="failed"} 2
`)); err != nil {
		t.Error(err)
	}
}
