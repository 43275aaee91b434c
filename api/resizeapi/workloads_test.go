package resizeapi_test

import (
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-metrics/weir/api/resizeapi"
	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/resize"
	"github.com/weir-metrics/weir/sinks/memory"
)

var begin = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// history is a weir's memory of Deployments web-0, web-1 and so on, of two pods each on one node. The
// first half of the rounds has other pods, which are gone.
type history struct {
	sink  *memory.Sink
	facts *cluster.Facts
	now   time.Time
}

const containersPerPod = 2

// newHistory returns a history of 60 rounds.
func newHistory(tb testing.TB, workloads, perNode int) *history {
	tb.Helper()
	h := &history{sink: memory.New(memory.Options{}), now: begin.Add(15 * time.Minute)}
	change := cluster.FactsChange{Synced: true, At: h.now}
	for first := 0; first < workloads; first += perNode {
		node := metric.NodeName(fmt.Sprintf("node-%05d", first))
		numbers := make([]int, 0, perNode)
		for i := first; i < min(first+perNode, workloads); i++ {
			numbers = append(numbers, i)
		}
		for round := range 60 {
			at := begin.Add(time.Duration(round) * 15 * time.Second)
			b := &metric.Batch{Source: "s", Node: node, Interval: 15 * time.Second, Resolution: time.Millisecond, Began: at, Ended: at}
			h.eachPod(numbers, round < 30, func(i int, ref metric.PodRef) {
				for c := range containersPerPod {
					add(b, metric.Entity{Kind: metric.Container, Node: node, Namespace: ref.Namespace, Pod: ref.Name, Name: fmt.Sprintf("c%d", c)}, i, round)
				}
			})
			if err := h.sink.Write(tb.Context(), b); err != nil {
				tb.Fatal(err)
			}
		}
		h.eachPod(numbers, false, func(i int, ref metric.PodRef) {
			p := &cluster.Pod{PodRef: ref, Node: node, UID: metric.PodUID(ref.Name), Phase: cluster.Running, QoS: "Burstable", Started: h.now,
				Labels: map[string]string{"pod-template-hash": "7c5ddbdf54"}, Owner: &cluster.Owner{Kind: "ReplicaSet", Name: fmt.Sprintf("web-%d-7c5ddbdf54", i)}}
			for c := range containersPerPod {
				container := cluster.Container{Name: fmt.Sprintf("c%d", c), State: cluster.StateRunning}
				container.Spec.Set(metric.CPURequest, 1e9)
				container.Spec.Set(metric.MemoryRequest, 1<<30)
				p.Containers = append(p.Containers, container)
			}
			change.Pods = append(change.Pods, p)
		})
	}
	h.facts = h.facts.With(change)
	return h
}

func (h *history) eachPod(numbers []int, gone bool, do func(int, metric.PodRef)) {
	hash := "7c5ddbdf54"
	if gone {
		hash = "5f5f5f5f5"
	}
	for _, i := range numbers {
		for _, random := range []string{"x2x4z", "b4b4b"} {
			do(i, metric.PodRef{Namespace: metric.Namespace(fmt.Sprintf("team-%d", i%20)), Name: metric.PodName(fmt.Sprintf("web-%d-%s-%s", i, hash, random))})
		}
	}
}

// add adds a reading: a little over 50m, and 64Mi, and in the first half of the rounds 300Mi.
func add(b *metric.Batch, e metric.Entity, i, round int) {
	s := b.Add(e)
	s.Times[metric.CPU], s.Reasons[metric.CPU] = b.Ended.UnixNano(), metric.Measured
	s.Times[metric.Memory], s.Reasons[metric.Memory] = b.Ended.UnixNano(), metric.Measured
	s.Rates[metric.CPU] = metric.Window{End: b.Ended.UnixNano(), Length: b.Interval}
	s.Values.Set(metric.CPUUsageRate, 50e6+float64((i*7+round*13)%17))
	bytes := 64 << 20
	if round < 30 {
		bytes = 300 << 20
	}
	s.Values.Set(metric.MemoryWorkingSet, float64(bytes))
}

func (h *history) handler() http.Handler {
	return resizeapi.NewHandler(resizeapi.Options{
		Usage: func() resizeapi.UsageReader { return points{h.sink.Snapshot()} }, Facts: func() *cluster.Facts { return h.facts }, Now: func() time.Time { return h.now },
	})
}

// get returns the answer to a path below weirdev.Path.
func (h *history) get(tb testing.TB, path string) *resizeapi.RecommendationList {
	tb.Helper()
	w := httptest.NewRecorder()
	h.handler().ServeHTTP(w, httptest.NewRequest("GET", weirdev.Path+path, nil))
	var list resizeapi.RecommendationList
	if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil || w.Code != 200 {
		tb.Fatalf("%s: %d %v %.200s", path, w.Code, err, w.Body)
	}
	return &list
}

// wantLoads are the loads of two pods at each time, whichever they are.
const wantLoads = "cpu : 60 readings of 2 pods, 204; cpu c0: 60 readings of 2 pods, 102; cpu c1: 60 readings of 2 pods, 102; " +
	"memory : 60 readings of 2 pods, 268435456000; memory c0: 60 readings of 2 pods, 134217728000; memory c1: 60 readings of 2 pods, 134217728000"

// loads describes the loads of a workload by the last of their readings.
func loads(rec *resize.PodRecommendation) string {
	var words []string
	for _, l := range rec.Loads {
		last := l.Readings[len(l.Readings)-1]
		n := len(slices.DeleteFunc(l.Readings, func(r resize.LoadReading) bool { return r.Pods != 2 || r.Missing != 0 }))
		words = append(words, fmt.Sprintf("%s %s: %d readings of %d pods, %d", l.Resource, l.Container, n, last.Pods, last.Milli))
	}
	return strings.Join(words, "; ")
}

// The pods of a rollout, old and new, are one workload: the old ones had the highest memory.
func TestWorkloads(t *testing.T) {
	h := newHistory(t, 3, 2)
	for path, want := range map[string]int{"recommendations?workloads=true": 3, "namespaces/team-1/recommendations?workloads=true": 1, "namespaces/team-1/recommendations?workload=deployment/web-1": 1} {
		list := h.get(t, path)
		if len(list.Items) != want {
			t.Errorf("%s: got %d workloads, want %d", path, len(list.Items), want)
		}
		for _, rec := range list.Items {
			if w := rec.Workload; rec.Pod != "" || w == nil || w.Kind != "Deployment" || !strings.HasPrefix(w.Name, "web-") || w.Pods != 2 || w.GonePods != 2 || w.FromTemplate {
				t.Errorf("%s: got pod %q of %+v, want a Deployment of 2 pods and 2 that are gone", path, rec.Pod, w)
			}
			if of := loads(rec); strings.Contains(path, "workload=") != (of != "") || of != "" && of != wantLoads {
				t.Errorf("%s: got loads %s, want %s of the one workload that is named", path, of, wantLoads)
			}
			if len(rec.Requests) != 2*containersPerPod {
				t.Errorf("%s: got %d requests, want %d", path, len(rec.Requests), 2*containersPerPod)
			}
			for _, a := range rec.Requests {
				want := map[resize.Resource]string{resize.CPU: "59m", resize.Memory: "360Mi"}[a.Resource]
				if a.Used == nil || a.Used.Samples != 2*60 || a.Used.Pods != 4 || a.Proposed == nil || a.Proposed.String() != want {
					t.Errorf("%s: %s %s: %q by %+v, want %s by 120 readings of 4 pods", path, a.Container, a.Resource, a.Message, a.Used, want)
				}
			}
		}
	}
}

// BenchmarkWorkloads measures the answer about 10,000 Deployments of two pods and two that are gone, with
// two containers each, from the readings of 15 minutes: 2.4 million of CPU and as many of memory.
func BenchmarkWorkloads(b *testing.B) {
	const workloads = 10_000
	h := newHistory(b, workloads, 25)
	handler := h.handler()
	b.ReportAllocs()
	for b.Loop() {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest("GET", weirdev.Path+"recommendations?workloads=true&all=true", nil))
		if n := strings.Count(w.Body.String(), `"gonePods":2`); n != workloads {
			b.Fatalf("%d %.200s: got %d workloads with their pods, want %d", w.Code, w.Body, n, workloads)
		}
		b.ReportMetric(float64(w.Body.Len()), "bytes/answer")
	}
}

// points is a snapshot with the method that a running weir adds.
type points struct{ *memory.Snapshot }

func (p points) Points(e metric.Entity, id metric.ID, from, to time.Time) iter.Seq2[time.Time, float64] {
	return func(yield func(time.Time, float64) bool) {
		for _, point := range p.History(e, id, from, to) {
			if !yield(time.Unix(0, point.Time), point.Value) {
				return
			}
		}
	}
}
