package model

import (
	"encoding/json"
	"math"
	"path/filepath"
	"testing"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/cluster/informer"
	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/processors"
	"github.com/weir-metrics/weir/sinks/memory"
	"github.com/weir-metrics/weir/sources/kubelet/payload"
	"github.com/weir-metrics/weir/sources/kubelet/summary"
	"github.com/weir-metrics/weir/test/capture"
)

// TestARealNode runs the responses of a real kubelet through the whole pipeline and compares both
// APIs with what the pipeline measured.
func TestARealNode(t *testing.T) {
	const node = "node1"
	parser, pipeline := summary.New(), processors.New(processors.Options{})
	sink := memory.New(memory.Options{})
	rounds := capture.Glob(t, "01-steady/[0-9][0-9]")
	if len(rounds) == 0 {
		t.Fatal("no rounds found")
	}
	var facts *cluster.Facts
	var at time.Time
	for _, dir := range rounds {
		var meta struct {
			Endpoints map[string]struct {
				Start int64 `json:"start_ns"`
				End   int64 `json:"end_ns"`
			} `json:"endpoints"`
		}
		if err := json.Unmarshal(capture.Read(t, filepath.Join(dir, "meta.json")), &meta); err != nil {
			t.Fatal(err)
		}
		var err error
		if facts, err = informer.FactsFromPods(capture.Read(t, filepath.Join(dir, "pods.json")), time.Unix(0, meta.Endpoints["pods.json"].End)); err != nil {
			t.Fatal(err)
		}
		times := meta.Endpoints["summary.json"]
		at = time.Unix(0, times.End)
		b := &metric.Batch{Source: "kubelet:summary", Node: node, Interval: 10 * time.Second, Resolution: summary.Clock,
			Began: time.Unix(0, times.Start), Ended: at}
		req := payload.Request{Node: node, Expect: node, Received: payload.Midpoint(b.Began, b.Ended)}
		if err := parser.Parse(capture.Read(t, filepath.Join(dir, "summary.json")), req, b); err != nil {
			t.Fatal(err)
		}
		pipeline.Process(facts, b, at)
		if err := sink.Write(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	snapshot := sink.Snapshot()
	h := NewHandler(Options{
		Snapshot: func() ModelReader { return view{snapshot} }, Facts: func() *cluster.Facts { return facts },
		Sources: func() []explain.SourceState { return nil }, Now: func() time.Time { return at }, Resolution: 10 * time.Second,
	})
	ask := func(path string, into any) {
		t.Helper()
		if err := json.NewDecoder(get(t, h, "GET", path).Body).Decode(into); err != nil {
			t.Fatalf("GET %s: %v", path, err)
		}
	}
	pods := 0
	for s := range snapshot.Samples(metric.Pod) {
		cpu, ok := s.Values.Get(metric.CPUUsageRate)
		if !ok || s.Entity.Part != "" {
			continue
		}
		pods++
		ns := string(s.Entity.Namespace)
		var list clientResultList
		ask("/api/v1/model/namespaces/"+ns+"/pod-list/"+string(s.Entity.Pod)+"/metrics/cpu/usage_rate", &list)
		points := list.Items[0].Metrics
		if len(points) < 3 {
			t.Errorf("%v: got %d points of %d rounds, want more", s.Entity, len(points), len(rounds))
			continue
		}
		if got, want := points[len(points)-1].Value, uint64(math.Round(cpu/1e6)); got != want {
			t.Errorf("%v: the newest point says %d millicores, want %d", s.Entity, got, want)
		}
		if age := at.Sub(points[len(points)-1].Timestamp); age < 0 || age >= 10*time.Second {
			t.Errorf("%v: the newest point is %v old, want less than a step", s.Entity, age)
		}
	}
	if pods < 5 {
		t.Errorf("%d pods were measured: the capture has more", pods)
	}
	var names []string
	ask("/api/v1/model/nodes/", &names)
	if len(names) != 1 || names[0] != node {
		t.Errorf("nodes: got %q, want %q", names, node)
	}
	var export []exportSeries
	ask("/api/v1/metric-export", &export)
	if len(export) < pods {
		t.Errorf("the export has %d nodes and containers, want at least one a pod, %d", len(export), pods)
	}
}
