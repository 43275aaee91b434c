package podmetrics_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/autoscaler/podmetrics"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// TestVerdictsOfPods checks the pods of a decision: regular containers come first, ephemeral ones
// are omitted, and requests in thousandths are rounded up.
func TestVerdictsOfPods(t *testing.T) {
	w := newFixture(t)
	p := running("shop", "web", "n1", map[string]string{"app": "web"})
	p.Ready, p.ReadySince, p.Deleted = cluster.ReadyFalse, noon.Add(-time.Minute), noon
	p.PodLevel = true
	p.Spec.Set(metric.CPURequest, 1)
	p.Spec.Set(metric.MemoryLimit, 1)
	p.Overhead.Set(metric.MemoryRequest, 0.1)
	p.Containers = []cluster.Container{{Name: "setup", Role: cluster.Init}, {Name: "mesh", Role: cluster.Sidecar}, {Name: "app"}, {Name: "debug", Role: cluster.Ephemeral}}
	p.Containers[1].Spec.Set(metric.CPURequest, 1_000_001)
	p.Containers[2].Spec.Set(metric.CPURequest, 0)
	p.Containers[2].Spec.Set(metric.MemoryRequest, 1<<50)
	w.know(p)
	got, err := podmetrics.New(w.options()).Pods("shop", selector(t, "app=web"))
	if err != nil {
		t.Fatal(err)
	}
	want := []autoscaler.PodInput{{
		Name: "web", Labels: labels.Set{"app": "web"}, Phase: cluster.Running, Terminating: true, Started: noon.Add(-time.Hour), Ready: cluster.ReadyFalse, ReadySince: noon.Add(-time.Minute),
		Containers: []autoscaler.ContainerInput{
			{Name: "app", Requests: autoscaler.Requests{CPU: autoscaler.MilliQuantity{Set: true}, Memory: autoscaler.MilliQuantity{Milli: 1000 << 50, Set: true}}},
			{Name: "setup", Role: cluster.Init},
			{Name: "mesh", Role: cluster.Sidecar, Requests: autoscaler.Requests{CPU: autoscaler.MilliQuantity{Milli: 2, Set: true}}},
		},
		Requests: autoscaler.Requests{CPU: autoscaler.MilliQuantity{Milli: 1, Set: true}}, PodLevel: true,
		Overhead: autoscaler.Requests{Memory: autoscaler.MilliQuantity{Milli: 100, Set: true}},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestIndexFindsWhatASearchFinds checks that the index finds the same pods as a search through all
// pods, after random changes.
func TestIndexFindsWhatASearchFinds(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	w := newFixture(t)
	w.know()
	l := podmetrics.New(w.options())
	sets := []map[string]string{nil}
	for i := range 12 { // some of them are equal but not adjacent
		sets = append(sets, map[string]string{"app": []string{"web", "api", "db"}[i%3], "tier": []string{"front", "back"}[i%2]})
	}
	selectors := []string{"", "app=web", "app==db,tier=front", "tier in (back)", "app in (web,db)", "app!=web", "!app", "tier,app notin (api)", "app=nobody", "other=1"}
	known := map[metric.PodRef]*cluster.Pod{}
	found := 0
	for round := range 400 {
		c := cluster.FactsChange{Synced: true}
		if round%97 == 96 { // all pods are listed again
			w.facts = nil
			for _, p := range known {
				again := *p
				c.Pods = append(c.Pods, &again)
			}
			clear(known)
		}
		for range r.IntN(6) {
			p := running([]string{"shop", "data"}[r.IntN(2)], fmt.Sprintf("p%02d", r.IntN(40)), "n1", sets[r.IntN(len(sets))])
			if r.IntN(3) > 0 {
				c.Pods = append(c.Pods, p)
			} else {
				c.Pods = slices.DeleteFunc(c.Pods, func(o *cluster.Pod) bool { return o.PodRef == p.PodRef })
				c.GonePods = append(c.GonePods, p.PodRef)
				delete(known, p.PodRef)
			}
		}
		for _, p := range c.Pods {
			known[p.PodRef] = p
		}
		w.facts = w.facts.With(c)
		for _, text := range selectors {
			sel := selector(t, text)
			for _, namespace := range []string{"shop", "data"} {
				if r.IntN(3) == 0 {
					continue // the next update then has several changes
				}
				want := []string{}
				for ref, p := range known {
					if string(ref.Namespace) == namespace && sel.Matches(labels.Set(p.Labels)) {
						want = append(want, string(ref.Name))
					}
				}
				slices.Sort(want)
				pods, err := l.Pods(namespace, sel)
				got := make([]string, len(pods))
				for i := range pods {
					got[i] = pods[i].Name
				}
				found += len(got)
				if err != nil || !slices.Equal(got, want) {
					t.Fatalf("round %d, %s, %q: got %s, %v, want %s", round, namespace, text, strings.Join(got, " "), err, strings.Join(want, " "))
				}
			}
		}
	}
	if found < 10_000 {
		t.Errorf("%d pods found in all: too few to show anything", found)
	}
	if got, err := l.Pods("shop", labels.Nothing()); len(got) != 0 || err != nil {
		t.Errorf("a selector of nothing: got %d pods, %v", len(got), err)
	}
}

// TestPodsForMany reads pods from several goroutines while the facts change, for the race detector.
func TestPodsForMany(t *testing.T) {
	w := newFixture(t)
	var mu sync.Mutex
	o := w.options()
	o.Facts = func() *cluster.Facts {
		mu.Lock()
		defer mu.Unlock()
		return w.facts
	}
	web := map[string]string{"app": "web"}
	w.know(running("shop", "p00", "n1", web, "app"))
	l, sel := podmetrics.New(o), selector(t, "app=web")
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for range 200 {
				pods, err := l.Pods("shop", sel)
				if err != nil || len(pods) == 0 || !slices.IsSortedFunc(pods, func(a, b autoscaler.PodInput) int { return strings.Compare(a.Name, b.Name) }) {
					t.Errorf("got %d pods, %v", len(pods), err)
					return
				}
			}
		})
	}
	for i := range 200 {
		mu.Lock()
		w.know(running("shop", fmt.Sprintf("p%02d", i%50), "n1", web, "app"))
		mu.Unlock()
	}
	readers.Wait()
}
