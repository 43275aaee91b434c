package resourcemetrics_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sinks/memory"
)

// TestPodOrder changes pods between LISTs: they come, go, move, change and fail to be measured.
// It compares the answers of a server that keeps the last podOrder with those of a new server.
func TestPodOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	w := newFixture()
	options := w.options()
	warm := serve(t, options)
	nodes := []metric.NodeName{"n1", "n2", "n3", "n4"}
	var change cluster.FactsChange
	change.Synced, change.At = true, noon
	for _, n := range nodes {
		change.Nodes = append(change.Nodes, &cluster.Node{Name: n, Ready: true})
	}
	w.facts = w.facts.With(change)
	answered := 0
	for round := range 60 {
		next := cluster.FactsChange{Synced: true, At: noon.Add(time.Duration(round) * time.Second)}
		for range r.IntN(4) {
			p := running([]string{"shop", "data"}[r.IntN(2)], fmt.Sprint("pod-", r.IntN(12)), nodes[r.IntN(len(nodes))], "app", "a", "b")
			switch r.IntN(6) {
			case 0:
				next.GonePods = append(next.GonePods, p.PodRef)
				continue
			case 1:
				p.Phase = cluster.Succeeded
			case 2:
				p.UID += "-again"
			}
			p.Labels["round"] = fmt.Sprint(round)
			next.Pods = append(next.Pods, p)
		}
		w.facts = w.facts.With(next)
		for range r.IntN(4) {
			node := nodes[r.IntN(len(nodes))]
			b := batch(node)
			if r.IntN(8) == 0 {
				b.Source = "kubelet:summary" // a second source of the node
			}
			b.Ended = noon.Add(time.Duration(round) * time.Millisecond)
			measured(b, nodeEntity(node), 0, time.Second, 1, 1)
			for _, p := range w.facts.PodsOn(node) {
				for _, c := range p.Containers {
					s := measured(b, container(p, c.Name), 0, time.Second, float64(r.IntN(1e9)), float64(r.IntN(1e9)))
					if r.IntN(4) > 0 {
						s.Instance.UID = p.UID
					}
					if r.IntN(20) == 0 {
						s.Values.Set(metric.CPUUsageRate, -1)
					}
				}
			}
			if r.IntN(10) == 0 {
				w.sink.Forget(b.Source, node)
				continue
			}
			w.write(t, b)
		}
		if round%10 == 9 && r.IntN(3) == 0 {
			w.sink = memory.New(memory.Options{})
		}
		path := []string{"/pods", "/pods", "/pods?labelSelector=round+notin+(1,2,3)", "/namespaces/shop/pods"}[r.IntN(4)]
		got := ask(t, warm, path, "", "identity")
		want := ask(t, serve(t, options), path, "", "identity")
		if got != want {
			t.Fatalf("round %d, %s (-asked for the first time +remembers):\n%s", round, path, cmp.Diff(want, got))
		}
		if path == "/pods" && strings.HasPrefix(got, "200") {
			warnsOfAll(t, got, w.facts)
		}
		if len(got) > 1000 {
			answered++
		}
	}
	if answered < 20 {
		t.Errorf("%d answers had pods: too few to show anything", answered)
	}
}

// warnsOfAll checks that the warning in an answer with all pods has the number of pods that run
// by facts and are not in the answer.
func warnsOfAll(t *testing.T, answer string, facts *cluster.Facts) {
	t.Helper()
	_, body, _ := strings.Cut(answer, "{")
	var list metricsv1beta1.PodMetricsList
	if err := json.Unmarshal([]byte("{"+body), &list); err != nil {
		t.Fatal(err)
	}
	served := map[metric.PodRef]bool{}
	for i := range list.Items {
		served[metric.PodRef{Namespace: metric.Namespace(list.Items[i].Namespace), Name: metric.PodName(list.Items[i].Name)}] = true
	}
	run, lack := 0, 0
	facts.EachPod(func(p *cluster.Pod) bool {
		if p.Phase == cluster.Running {
			run++
			if !served[p.PodRef] {
				lack++
			}
		}
		return true
	})
	if warns := strings.Contains(answer, fmt.Sprintf("%d of %d running pod", lack, run)); warns != (lack > 0) || lack == 0 && strings.Contains(answer, " running pod") {
		t.Errorf("%d of %d pods are not served, and the answer says otherwise:\n%s", lack, run, answer)
	}
}

// The last read came between two runs of a container, so its last known value is served. It
// ends as soon as the API server reports the end of the first run: in a LIST, in the next one,
// and in a GET.
func TestLastKnownUntilReported(t *testing.T) {
	w := newFixture()
	web := running("shop", "web", "n1", "web", "app")
	w.know([]*cluster.Node{{Name: "n1", Ready: true}}, []*cluster.Pod{web})
	b := batch("n1")
	measured(b, container(web, "app"), 0, time.Second, 1, 1).LastKnown = 1<<metric.CPU | 1<<metric.Memory
	w.write(t, b)
	c, _ := client(t, serve(t, w.options()), "")
	for _, want := range []int{1, 1, 0, 0} {
		if want == 0 {
			restarted := *web
			restarted.Containers = []cluster.Container{{Name: "app", State: cluster.StateRunning, Previous: cluster.NewPreviousRun("", noon.Add(time.Second), "")}}
			w.facts = w.facts.With(cluster.FactsChange{Synced: true, At: noon, Pods: []*cluster.Pod{&restarted}})
		}
		list, err := c.MetricsV1beta1().PodMetricses("").List(t.Context(), metav1.ListOptions{})
		if err != nil || len(list.Items) != want {
			t.Fatalf("LIST: %d pods and %v, want %d", len(list.Items), err, want)
		}
		if _, err = c.MetricsV1beta1().PodMetricses("shop").Get(t.Context(), "web", metav1.GetOptions{}); (err == nil) != (want == 1) {
			t.Fatalf("GET: %v, want it served: %v", err, want == 1)
		}
	}
}

// A pod that one node reports and the API server binds to another node is not kept in the
// podOrder: it may end without a change of either generation of the first node.
func TestPodOrderOfMovedPods(t *testing.T) {
	w := newFixture()
	web := running("shop", "web", "n1", "web", "app")
	w.know([]*cluster.Node{{Name: "n1", Ready: true}}, []*cluster.Pod{web})
	b := batch("n1")
	measured(b, container(web, "app"), 0, time.Second, 1, 1)
	w.write(t, b)
	moved := *web
	moved.Node = "n2"
	w.know(nil, []*cluster.Pod{&moved})
	c, _ := client(t, serve(t, w.options()), "")
	for _, want := range []int{1, 0} {
		list, err := c.MetricsV1beta1().PodMetricses("").List(t.Context(), metav1.ListOptions{})
		if err != nil || len(list.Items) != want {
			t.Fatalf("got %d pods and %v, want %d", len(list.Items), err, want)
		}
		w.facts = w.facts.With(cluster.FactsChange{Synced: true, At: noon, GonePods: []metric.PodRef{web.PodRef}})
	}
}
