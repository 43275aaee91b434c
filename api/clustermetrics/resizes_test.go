package clustermetrics

import (
	"strings"
	"testing"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/test/cmptest"
)

// TestResizes writes the requests and limits in force where they differ, and nothing elsewhere.
func TestResizes(t *testing.T) {
	view, facts := small(), known()
	h := New(func() MetricsReader { return view }, Options{Facts: func() *cluster.Facts { return facts }})
	if got := get(t, h, "").Body.String(); strings.Contains(got, "applied") || strings.Contains(got, "weir_pod_resize") {
		t.Errorf("without a resize: got\n%s\nwant nothing about resizes", got)
	}
	web := *facts.Pod(metric.PodRef{Namespace: "shop", Name: "web-0"})
	web.Resize = &cluster.Resize{State: "Deferred", Applied: []cluster.Applied{
		{Container: "app", ID: metric.CPURequest, Spec: 250e6, Value: 100e6},
		{Container: "app", ID: metric.MemoryLimit, Spec: 1 << 30, Value: 1 << 29},
		{Container: "prepare", ID: metric.MemoryLimit, Spec: 1 << 30, Value: -1},
		{ID: metric.CPULimit, Spec: 2e9, Value: 1e9},
	}}
	facts = facts.With(cluster.FactsChange{Pods: []*cluster.Pod{&web}})
	got := append(seriesIn(t, h, "?metric=*_applied_*"), seriesIn(t, h, "?metric=weir_pod_resize")...)
	want := []string{
		`weir_container_cpu_request_applied_cores{node="n1",namespace="shop",pod="web-0",container="app"} 0.1`,
		`weir_container_memory_limit_applied_bytes{node="n1",namespace="shop",pod="web-0",container="app"} 536870912`,
		`weir_pod_cpu_limit_applied_cores{node="n1",namespace="shop",pod="web-0"} 1`,
		`weir_pod_resize{node="n1",namespace="shop",pod="web-0",state="Deferred"} 1`,
	}
	cmptest.Equal(t, "with a resize", want, got)
	if got := seriesIn(t, h, "?namespace=bank&metric=*_applied_*"); len(got) > 0 {
		t.Errorf("of another namespace: got %q, want none", got)
	}
}
