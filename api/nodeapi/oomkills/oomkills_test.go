package oomkills_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/zap"

	"github.com/weir-metrics/weir/api/nodeapi/oomkills"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/cluster/endlog"
	"github.com/weir-metrics/weir/cluster/informer"
	"github.com/weir-metrics/weir/internal/feature"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/test/background"
)

// factsOf returns the facts of nodes n1, n2, … and of the pods.
func factsOf(nodes int, pods ...*cluster.Pod) *cluster.Facts {
	change := cluster.FactsChange{Synced: true, Pods: pods}
	for i := range nodes {
		change.Nodes = append(change.Nodes, &cluster.Node{Name: metric.NodeName(fmt.Sprintf("n%d", i+1)), Ready: true})
	}
	var none *cluster.Facts
	return none.With(change)
}

func pod(name string) *cluster.Pod {
	return &cluster.Pod{
		PodRef: metric.PodRef{Namespace: "shop", Name: metric.PodName(name)}, UID: metric.PodUID("uid-" + name), Node: "n1", Phase: cluster.Running,
		Owner:      &cluster.Owner{Kind: "StatefulSet", Name: "web"},
		Containers: []cluster.Container{{Name: "app", ID: metric.ContainerID("id-" + name), State: cluster.StateRunning}},
	}
}

// agent runs a watch that finds kills, one list a look, and then checks its metrics and its report.
func agent(t *testing.T, facts *cluster.Facts, check func(*prometheus.Registry, *endlog.KillReport), found ...[]endlog.Kill) {
	t.Helper()
	registry := prometheus.NewRegistry()
	synctest.Test(t, func(t *testing.T) {
		h := &feature.Host{Log: zap.NewNop(), Registry: registry, Facts: func() *cluster.Facts { return facts }, Cluster: &feature.Cluster{Options: informer.Options{Ends: endlog.New(endlog.Options{})}}}
		looks := 0
		w := &oomkills.Watch{Node: "n1", Interval: time.Second, Look: func(now time.Time) (kills []endlog.Kill, err error) {
			if looks++; looks == 1 {
				return nil, errors.New("unreadable")
			}
			if len(found) > 0 {
				kills, found = found[0], found[1:]
			}
			for i := range kills {
				kills[i].After, kills[i].At = now.Add(-time.Second), now
			}
			return kills, nil
		}}
		if err := w.Open(t.Context(), h); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(len(found)+2)*time.Second)
		defer cancel()
		if err := feature.Run(ctx, h.Parts); err != nil {
			t.Error(err)
		}
		check(registry, w.Report()())
	})
}

// TestKillsAreCounted checks the series of an agent, and their bounds.
func TestKillsAreCounted(t *testing.T) {
	child := endlog.Kill{UID: "uid-web-0", ContainerID: "id-web-0", Scope: endlog.Child, Limit: endlog.InPod, Processes: 2, New: 2}
	agent(t, factsOf(1, pod("web-0")), func(registry *prometheus.Registry, report *endlog.KillReport) { checkCounts(t, registry, report) },
		[]endlog.Kill{{UID: "uid-web-0", Scope: endlog.InContainer, Limit: endlog.InContainer, Processes: 9, New: 1, Whole: true}, {UID: "gone", Scope: endlog.InNode, Limit: endlog.InNode, Processes: 1, New: 1}},
		[]endlog.Kill{child}, []endlog.Kill{child})
}

func checkCounts(t *testing.T, registry *prometheus.Registry, report *endlog.KillReport) {
	t.Helper()
	want := `
# HELP weir_oom_kills_total How often the kernel killed processes of pods of this node for memory, by whose limit: container, pod, slice, node; child if the container went on. Those of a group are killed together, which counts once.
# TYPE weir_oom_kills_total counter
weir_oom_kills_total{namespace="shop",scope="child",workload="web",workload_kind="StatefulSet"} 4
weir_oom_kills_total{namespace="shop",scope="container",workload="web",workload_kind="StatefulSet"} 1
weir_oom_kills_total{namespace="",scope="node",workload="",workload_kind=""} 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "weir_oom_kills_total"); err != nil {
		t.Error(err)
	}
	if got, err := testutil.GatherAndCount(registry, "weir_oom_kill_timestamp_seconds"); err != nil || got != 2 {
		t.Errorf("%d pods have a time of their last kill, want 2: those of a pod that is known", got)
	}
	if len(report.Kills) != 4 || report.Kills[0].Pod != "web-0" && report.Kills[1].Pod != "web-0" || report.Since.IsZero() {
		t.Errorf("the report has %+v, want 4 kills, with the names of their pods", report)
	}
}

// TestSeriesAreBounded has the kernel kill in a thousand workloads whose names have escapes in them.
func TestSeriesAreBounded(t *testing.T) {
	var pods []*cluster.Pod
	var kills []endlog.Kill
	for i := range 1000 {
		p := pod(fmt.Sprintf("web-\x1b[31m%d", i))
		p.Owner = &cluster.Owner{Kind: "Job", Name: string(p.Name)}
		pods = append(pods, p)
		kills = append(kills, endlog.Kill{UID: p.UID, Scope: endlog.InContainer, Limit: endlog.InContainer, Processes: 1, New: 1})
	}
	agent(t, factsOf(1, pods...), func(registry *prometheus.Registry, _ *endlog.KillReport) {
		for name, most := range map[string]int{"weir_oom_kills_total": 501, "weir_oom_kill_timestamp_seconds": 200} {
			if got, err := testutil.GatherAndCount(registry, name); err != nil || got != most {
				t.Errorf("%s has %d series, %v; want %d", name, got, err, most)
			}
		}
	}, kills)
}

// TestAgentsAreAsked checks how often the agents of a cluster are asked: all soon after the start, then all
// in five minutes, and that of a kill in the next second.
func TestAgentsAreAsked(t *testing.T) {
	for _, nodes := range []int{3, 1000} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			asked := map[string]int{}
			var started time.Time
			var prompt time.Duration
			leads := true
			g := &oomkills.Gatherer{
				Ends: endlog.New(endlog.Options{}), Facts: func() *cluster.Facts { return factsOf(nodes) }, Log: zap.NewNop(),
				Leads: func() bool { mu.Lock(); defer mu.Unlock(); return leads },
				Ask: func(_ context.Context, node string) (*endlog.KillReport, error) {
					mu.Lock()
					defer mu.Unlock()
					if asked[node]++; node == "n2" && prompt == 0 && !started.IsZero() {
						prompt = time.Since(started)
					}
					return nil, errors.New("no agent")
				},
			}
			background.Run(t, g.Run)
			counts := func() (least, most, all int) {
				mu.Lock()
				defer mu.Unlock()
				for _, n := range asked {
					most, all = max(most, n), all+n
				}
				if least = most; len(asked) < nodes {
					least = 0
				}
				for _, n := range asked {
					least = min(least, n)
				}
				return least, most, all
			}
			time.Sleep(45 * time.Second)
			if least, most, all := counts(); least != 1 || most != 1 {
				t.Errorf("%d nodes: after 45s agents were asked %d to %d times, %d times in all, want once each", nodes, least, most, all)
			}
			time.Sleep(20 * time.Minute)
			if least, most, all := counts(); least < 4 || most > 6 {
				t.Errorf("%d nodes: after 20min agents were asked %d to %d times, %d times in all, want about 5 times", nodes, least, most, all)
			}
			mu.Lock()
			started = time.Now()
			mu.Unlock()
			for range 1000 {
				g.Want("n2")
			}
			time.Sleep(10 * time.Second)
			mu.Lock()
			if prompt == 0 || prompt > time.Second {
				t.Errorf("%d nodes: after a kill, its agent was asked within %v, want 1s", nodes, prompt)
			}
			before := asked["n2"]
			leads = false
			mu.Unlock()
			g.Want("n2")
			time.Sleep(time.Minute)
			if mu.Lock(); asked["n2"] != before || before > 12 {
				t.Errorf("%d nodes: a replica that does not lead asked, or one asked too often: %d times, then %d", nodes, before, asked["n2"])
			}
			mu.Unlock()
		})
	}
}

// TestGatheredKillsEndRuns checks that what an agent reports is in the record of ends.
func TestGatheredKillsEndRuns(t *testing.T) {
	ends := endlog.New(endlog.Options{})
	g := &oomkills.Gatherer{
		Ends: ends, Facts: func() *cluster.Facts { return factsOf(1, pod("web-0")) }, Log: zap.NewNop(),
		Ask: func(_ context.Context, node string) (*endlog.KillReport, error) {
			now := time.Now()
			return &endlog.KillReport{Kills: []endlog.Kill{{UID: "uid-web-0", ContainerID: "id-web-0", Scope: endlog.Child, Processes: 1, After: now.Add(-time.Second), At: now}}}, nil
		},
	}
	g.Refresh(t.Context(), "n1")
	got := ends.In("shop")
	if !slices.ContainsFunc(got, func(e *endlog.End) bool { return e.GoesOn() && e.Container == "app" }) {
		t.Errorf("got %d ends, want that of a child in container app", len(got))
	}
}

// TestLimitOfTheOnlyContainer checks whose limit it is if the kubelet set that of the pod's cgroup.
func TestLimitOfTheOnlyContainer(t *testing.T) {
	two, own, debugged, left := pod("two"), pod("own"), pod("debugged"), pod("left")
	debugged.Containers = append(debugged.Containers, cluster.Container{Name: "debugger", Role: cluster.Ephemeral, State: cluster.StateRunning})
	ended := pod("ended")
	ended.Containers = append(ended.Containers, cluster.Container{Name: "debugger", Role: cluster.Ephemeral, State: cluster.StateTerminated, Previous: &cluster.PreviousRun{EndedAt: time.Unix(1, 0)}})
	two.Containers = append(two.Containers, cluster.Container{Name: "proxy"})
	own.Spec.Set(metric.MemoryLimit, 64<<20)
	one := pod("one")
	one.Containers = append(one.Containers, cluster.Container{Name: "setup", Role: cluster.Init})
	var kills []endlog.Kill
	for _, p := range []*cluster.Pod{one, two, own, debugged, ended, left} {
		for _, scope := range []endlog.Scope{endlog.InPod, endlog.Child} {
			kills = append(kills, endlog.Kill{UID: p.UID, ContainerID: p.Containers[0].ID, Scope: scope, Limit: endlog.InPod, Processes: 1, New: 1, Files: p == left})
		}
	}
	agent(t, factsOf(1, one, two, own, debugged, ended, left), func(_ *prometheus.Registry, report *endlog.KillReport) {
		got := map[string]bool{}
		for _, k := range report.Kills {
			got[fmt.Sprintf("%s: %s, by the limit of the %s", k.Pod, k.Scope, k.Limit)] = true
		}
		for _, want := range []string{
			"one: container, by the limit of the container", "one: child, by the limit of the container", "two: pod, by the limit of the pod",
			"two: child, by the limit of the pod", "own: pod, by the limit of the pod", "own: child, by the limit of the pod",
			"debugged: pod, by the limit of the pod", "debugged: child, by the limit of the pod", "ended: container, by the limit of the container", "left: pod, by the limit of the pod",
		} {
			if !got[want] {
				t.Errorf("got %v, want %s", got, want)
			}
		}
	}, kills)
}
