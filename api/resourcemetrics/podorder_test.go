package resourcemetrics_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sinks/memory"
	"github.com/weir-metrics/weir/test/cmptest"
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
		got := ask(t, warm, apiPath+path, "", "identity")
		want := ask(t, serve(t, options), apiPath+path, "", "identity")
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
			restarted.Containers = []cluster.Container{{Name: "app", State: cluster.StateRunning, Previous: cluster.PreviousRun{EndedAt: noon.Add(time.Second)}.OrNil()}}
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

// Between two reads of a node, the API server reports that containers have ended or begun again. A
// number of a run that has ended is not served: not in a LIST, in the next one, of a selection or in
// a GET. The next read restores the pods.
func TestRunsEndBetweenReads(t *testing.T) {
	w := newFixture()
	app := func(state cluster.ContainerState, started, ended time.Duration) cluster.Container {
		c := cluster.Container{Name: "app", State: state, StartedAt: noon.Add(started)}
		if ended != 0 {
			c.Previous = cluster.PreviousRun{EndedAt: noon.Add(ended)}.OrNil()
		}
		return c
	}
	var pods []*cluster.Pod
	change := func(containers map[string][]cluster.Container) {
		pods = nil
		for name, of := range containers {
			p := running("shop", name, "n1", name)
			p.Containers = of
			pods = append(pods, p)
		}
		w.know([]*cluster.Node{{Name: "n1", Ready: true}}, pods)
	}
	mesh := cluster.Container{Name: "mesh", State: cluster.StateRunning, Role: cluster.Sidecar, StartedAt: noon.Add(-time.Hour)}
	long := app(cluster.StateRunning, -time.Hour, 0)
	change(map[string][]cluster.Container{"stays": {long}, "restarts": {long}, "crashes": {long}, "half": {long, mesh}, "again": {long, mesh}})
	read := func() {
		b := batch("n1")
		for _, p := range pods {
			for _, c := range p.Containers {
				measured(b, container(p, c.Name), 0, 15*time.Second, 1e6, 1<<20).Instance.Start = c.StartedAt.UnixNano()
			}
		}
		w.write(t, b)
	}
	read()
	c, warned := client(t, serve(t, w.options()), "")
	check := func(when string, want ...string) {
		t.Helper()
		slices.Sort(want)
		names := func(o metav1.ListOptions) (got []string) {
			list, err := c.MetricsV1beta1().PodMetricses("").List(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range list.Items {
				for _, c := range p.Containers {
					got = append(got, p.Name+"/"+c.Name)
				}
			}
			return got
		}
		for _, o := range []metav1.ListOptions{{}, {}, {LabelSelector: "app"}, {LabelSelector: "app!=nothing"}} {
			cmptest.Equal(t, fmt.Sprintf("%s, LIST %q", when, o.LabelSelector), want, names(o))
		}
		for _, p := range pods {
			_, err := c.MetricsV1beta1().PodMetricses("shop").Get(t.Context(), string(p.Name), metav1.GetOptions{})
			if served := slices.ContainsFunc(want, func(name string) bool { return strings.HasPrefix(name, string(p.Name)+"/") }); served != (err == nil) {
				t.Errorf("%s, GET %s: %v, want it served: %v", when, p.Name, err, served)
			}
		}
	}
	all := []string{"stays/app", "restarts/app", "crashes/app", "half/app", "half/mesh", "again/app", "again/mesh"}
	check("after the read", slices.Clone(all)...)
	warned.Take()
	change(map[string][]cluster.Container{
		"stays":    {long},
		"restarts": {app(cluster.StateRunning, 2*time.Second, time.Second)},
		"crashes":  {app(cluster.StateWaiting, 0, time.Second)},
		"half":     {app(cluster.StateTerminated, -time.Hour, time.Second), mesh},
		"again":    {app(cluster.StateRunning, 2*time.Second, 0), mesh},
	})
	check("between reads", "stays/app", "half/mesh")
	if got := strings.Join(warned.Take(), "\n"); !strings.Contains(got, "2 of 4 running pods have no metrics: 2 NodeNotScrapedYet") {
		t.Errorf("got warnings %s", got)
	}
	_, err := c.MetricsV1beta1().PodMetricses("shop").Get(t.Context(), "restarts", metav1.GetOptions{})
	if err == nil || !strings.Contains(err.Error(), "after its node was last read (NodeNotScrapedYet)") {
		t.Errorf("got %v, want that it began again after the read", err)
	}
	// The node's clock was put back by an hour, and all containers have run since before that.
	now := app(cluster.StateRunning, time.Hour, 0)
	change(map[string][]cluster.Container{"stays": {now}, "restarts": {now}, "crashes": {now}, "half": {now, mesh}, "again": {now, mesh}})
	read()
	check("after the clock was put back", slices.Clone(all)...)
}

// A number that may be of another instance is not served: the API cannot mark it.
func TestDoubtfulNumbersAreMissing(t *testing.T) {
	w := newFixture()
	web, db := running("shop", "web", "n1", "web", "app"), running("shop", "db", "n1", "db", "app")
	w.know([]*cluster.Node{{Name: "n1", Ready: true}}, []*cluster.Pod{web, db})
	b := batch("n1")
	measured(b, container(db, "app"), 0, time.Second, 1, 1)
	s := measured(b, container(web, "app"), 0, time.Second, 1, 1)
	s.Reasons[metric.CPU], s.Reasons[metric.Memory] = metric.Ambiguous, metric.Ambiguous
	w.write(t, b)
	c, warned := client(t, serve(t, w.options()), "")
	list, err := c.MetricsV1beta1().PodMetricses("").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 || list.Items[0].Name != "db" {
		t.Errorf("got %v and %v, want db", list, err)
	}
	const why = "two instances have this name, nothing distinguishes them, and one was chosen; this API cannot mark its numbers as doubtful (Ambiguous)"
	if got := warned.Take(); len(got) != 3 || got[0] != "1 of 2 running pods has no metrics: 1 Ambiguous" {
		t.Errorf("got warnings %q", got)
	}
	_, err = c.MetricsV1beta1().PodMetricses("shop").Get(t.Context(), "web", metav1.GetOptions{})
	if want := `podmetrics.metrics.k8s.io "web" not found: ` + why; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
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
