package endlog_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/cluster/endlog"
	"github.com/weir-metrics/weir/metric"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// pod returns a running pod with two containers, after a change.
func pod(change func(*cluster.Pod)) *cluster.Pod {
	p := &cluster.Pod{PodRef: metric.PodRef{Namespace: "shop", Name: "web"}, UID: "u1", Node: "n1", Phase: cluster.Running, Started: noon.Add(-time.Hour)}
	for _, name := range []string{"app", "proxy"} {
		p.Containers = append(p.Containers, cluster.Container{Name: name, ID: metric.ContainerID(name + "-1"), State: cluster.StateRunning, StartedAt: noon.Add(-time.Hour)})
	}
	if change != nil {
		change(p)
	}
	return p
}

// ended ends the run of a container, and lets the next one wait.
func ended(c *cluster.Container, code int32, ago time.Duration) {
	c.Previous = &cluster.PreviousRun{LastID: c.ID, StartedAt: c.StartedAt, EndedAt: noon.Add(-ago), StateReason: "CrashLoopBackOff", EndReason: "Error", ExitCode: code}
	c.State, c.StartedAt = cluster.StateWaiting, time.Time{}
}

// stop terminates all containers.
func stop(p *cluster.Pod) {
	for i := range p.Containers {
		p.Containers[i].State = cluster.StateTerminated
		p.Containers[i].Previous = &cluster.PreviousRun{EndedAt: noon.Add(-time.Second), EndReason: "Error", ExitCode: 143}
	}
}

func crash(p *cluster.Pod)  { ended(&p.Containers[0], 3, time.Second) }
func remove(p *cluster.Pod) { p.Deleted = noon.Add(30 * time.Second) }

func shown(ends []endlog.End) string {
	var all []string
	for _, e := range ends {
		text := fmt.Sprintf("pod %s", noon.Sub(e.At))
		if e.Container != "" {
			text = fmt.Sprintf("%s %d %s", e.Container, e.Run.ExitCode, noon.Sub(e.At))
		}
		if e.Missed > 0 {
			text += fmt.Sprintf(" missed %d", e.Missed)
		}
		if e.Gone {
			text += " gone"
		}
		if e.Unwatched {
			text += " unwatched"
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}

func TestEnds(t *testing.T) {
	f := func(what string, before, after, final *cluster.Pod, want string) {
		t.Helper()
		if got := shown(endlog.Ends(before, after, final, noon, time.Hour)); got != want {
			t.Errorf("%s: got %q, want %q", what, got, want)
		}
	}
	and := func(all ...func(*cluster.Pod)) *cluster.Pod {
		return pod(func(p *cluster.Pod) {
			for _, change := range all {
				change(p)
			}
		})
	}
	fails := func(p *cluster.Pod) { p.Phase, p.Stop = cluster.Failed, &cluster.PodStop{Reason: "Evicted"} }
	again := func(p *cluster.Pod) { p.Containers[0].State, p.Containers[0].StartedAt = cluster.StateRunning, noon }

	f("nothing ended", pod(nil), pod(func(p *cluster.Pod) { p.Ready = cluster.ReadyFalse }), nil, "")
	f("a new pod", nil, pod(nil), nil, "")
	f("a container ended", pod(nil), and(crash), nil, "app 3 1s")
	f("it was started again at once", pod(nil), and(crash, again), nil, "app 3 1s")
	f("it starts again", and(crash), and(crash, again), nil, "")
	f("a new pod whose container has ended", nil, and(crash), nil, "app 3 1s")
	f("a new pod whose container ended long ago", nil, pod(func(p *cluster.Pod) { ended(&p.Containers[0], 3, 2*time.Hour) }), nil, "")
	f("both containers ended by themselves", pod(nil), and(stop), nil, "app 143 1s, proxy 143 1s")
	f("the pod is deleted and still runs", pod(nil), and(remove), nil, "")
	f("one container of a deleted pod ended", and(remove), and(remove, crash), nil, "")
	f("the last one ended", and(remove, crash), and(remove, stop), nil, "pod 1s")
	f("the pod that ended is gone", and(remove, stop), nil, and(remove, stop), "")
	f("a pod is gone at once", pod(nil), nil, and(remove), "pod 0s gone")
	f("a pod is gone with its containers", pod(nil), nil, and(remove, stop), "pod 1s gone")
	f("a pod is missing in a list", pod(nil), nil, nil, "pod 0s gone unwatched")
	f("a pod that had ended is gone", and(stop), nil, and(stop), "")
	f("a pod that waited is gone", pod(func(p *cluster.Pod) { p.Containers = nil }), nil, nil, "")
	f("the kubelet evicts", pod(nil), and(fails, stop), nil, "pod 1s")
	ends := func(disruption string) func(*cluster.Pod) {
		return func(p *cluster.Pod) { p.Phase, p.Stop = cluster.Succeeded, &cluster.PodStop{Disruption: disruption} }
	}
	f("the kubelet evicts, and the containers end without an error", pod(nil), and(ends(cluster.ByKubelet), stop), nil, "pod 1s")
	f("an eviction through the API that came to nothing", pod(nil), and(ends("EvictionByEvictionAPI"), stop), nil, "app 143 1s, proxy 143 1s")
	f("a new pod that was evicted", nil, and(fails, stop), nil, "pod 1s")
	f("a new pod that was refused", nil, and(fails, func(p *cluster.Pod) { p.Containers, p.Started = nil, time.Time{} }), nil, "")
	failed := func(p *cluster.Pod) { p.Phase = cluster.Failed }
	f("a pod that had failed is gone at once", pod(nil), nil, and(failed, stop), "app 143 1s, proxy 143 1s")
	f("a pod is deleted, fails and is gone", pod(nil), nil, and(remove, failed, stop), "pod 1s gone")
	f("a pod that the kubelet evicted is gone", pod(nil), nil, and(fails, stop), "pod 1s gone")
	restarts := func(n int32) func(*cluster.Pod) { return func(p *cluster.Pod) { p.Containers[0].Restarts = n } }
	f("it ended and runs for the fourth time", pod(nil), and(crash, again, restarts(4)), nil, "app 3 1s missed 3")
	f("it ended and waits for the fourth time", pod(nil), and(crash, restarts(3)), nil, "app 3 1s missed 3")
	f("it waited, and ended again", and(crash), and(func(p *cluster.Pod) {
		p.Containers[0].ID = "app-2"
		crash(p)
	}, restarts(1)), nil, "app 3 1s")
	f("it waited, ran and runs again", and(crash), and(func(p *cluster.Pod) {
		p.Containers[0].ID = "app-2"
		crash(p)
	}, again, restarts(2)), nil, "app 3 1s")
	waits := func() *cluster.Pod { return pod(func(p *cluster.Pod) { p.Phase, p.Containers = cluster.Pending, nil }) }
	f("a pod that waited has started, and is gone", waits(), nil, and(remove), "pod 0s gone")
	f("a pod that waited has started, and was stopped", waits(), and(fails, stop), nil, "pod 1s")
	f("a pod that waited was refused", waits(), and(fails, func(p *cluster.Pod) { p.Containers = nil }), nil, "")
	f("a pod whose containers had ended is stopped", and(stop), and(fails, stop), nil, "")
	f("an init container is done, and its pod is gone", waits(), nil, pod(func(p *cluster.Pod) {
		remove(p)
		p.Containers = p.Containers[:1]
		p.Containers[0].Role = cluster.Init
		ended(&p.Containers[0], 0, time.Second)
	}), "")
	f("an eviction begins", pod(nil), pod(func(p *cluster.Pod) { p.Stop = &cluster.PodStop{Disruption: "EvictionByEvictionAPI"} }), nil, "")
	f("a mirror pod is made again", pod(func(p *cluster.Pod) { p.Mirror = true }), nil, pod(func(p *cluster.Pod) { p.Mirror = true }), "")
	setup := func(code int32) *cluster.Pod {
		return pod(func(p *cluster.Pod) { p.Containers[0].Role = cluster.Init; ended(&p.Containers[0], code, time.Second) })
	}
	f("an init container is done", pod(nil), setup(0), nil, "")
	f("an init container failed", pod(nil), setup(1), nil, "app 1 1s")
	lost := func(p *cluster.Pod) {
		p.Containers[0].State, p.Containers[0].Previous = cluster.StateTerminated, &cluster.PreviousRun{EndReason: "ContainerStatusUnknown", ExitCode: 137}
	}
	f("a container is lost", pod(nil), and(lost), nil, "app 137 0s")
	f("a new pod with a container that was lost at an unknown time", nil, and(lost), nil, "")
}

// newLog returns a Log whose time is that of now.
func newLog(limit int, now *time.Time) *endlog.Log {
	return endlog.New(endlog.Options{MaxEnds: limit, Now: func() time.Time { return *now }})
}

func ready(metric.NodeName) endlog.NodeState { return endlog.NodeState{Known: true, Ready: true} }

// A pod that ends is there once, with what was used before it, and is gone later.
func TestEndIsKeptOnce(t *testing.T) {
	now := noon
	l := newLog(10, &now)
	measured := 0
	l.SetUsage(func(*endlog.End) endlog.Usage {
		measured++
		return endlog.Usage{Memory: []endlog.Trend{{Name: "app"}}}
	})
	stopping := pod(func(p *cluster.Pod) { remove(p); stop(p) })
	l.Changed(pod(nil), stopping, nil, ready)
	now = noon.Add(time.Second)
	l.Changed(stopping, nil, stopping, ready)
	ends := l.In("shop")
	if len(ends) != 1 || measured != 1 || !ends[0].Gone || len(ends[0].Before.Memory) != 1 || !ends[0].Seen.Equal(noon) {
		t.Errorf("got %d ends, measured %d times: %+v; want one that is gone, seen at %v", len(ends), measured, ends, noon)
	}
	if got := l.In("bank"); len(got) != 0 {
		t.Errorf("another namespace has %d ends", len(got))
	}
	now = noon.Add(time.Hour)
	if got := l.In(""); len(got) != 0 {
		t.Errorf("an hour later there are %d ends, want none", len(got))
	}
}

// A pod that comes in the place of another one of its name is the end of that one.
func TestReplacedPod(t *testing.T) {
	now := noon
	l := newLog(10, &now)
	next := pod(func(p *cluster.Pod) { p.UID = "u2" })
	l.Changed(pod(nil), next, pod(remove), ready)
	if ends := l.In(""); len(ends) != 1 || ends[0].Pod.UID != "u1" || ends[0].Unwatched {
		t.Errorf("got %+v, want the end of u1", ends)
	}
}

// Several runs of one container are several ends; one run that is reported again is one.
func TestRunsAreToldApart(t *testing.T) {
	now := noon
	l := newLog(10, &now)
	before := pod(nil)
	for i := range 3 {
		now = noon.Add(time.Duration(i) * time.Minute)
		after := pod(func(p *cluster.Pod) {
			p.Containers[0].ID, p.Containers[0].StartedAt = metric.ContainerID(fmt.Sprint("run-", i)), now.Add(-30*time.Second)
			ended(&p.Containers[0], 3, 0)
			p.Containers[0].Previous.EndedAt = now
		})
		l.Changed(before, after, nil, ready)
		l.Changed(nil, after, nil, ready)
		before = after
	}
	if kept, _ := l.Size(); kept != 3 {
		t.Errorf("%d ends are kept of 3 runs", kept)
	}
}

// A namespace with a flood of ends loses its own, and not those of others.
func TestFloodStaysInItsNamespace(t *testing.T) {
	now := noon
	l := newLog(100, &now)
	end := func(namespace string, i int) {
		p := pod(func(p *cluster.Pod) {
			p.Namespace, p.UID = metric.Namespace(namespace), metric.PodUID(fmt.Sprint(namespace, i))
			ended(&p.Containers[0], 3, 30*time.Minute-time.Duration(i)*time.Second)
		})
		l.Changed(nil, p, nil, ready)
	}
	for i := range 30 {
		end("shop", i)
	}
	for i := range 1000 {
		end("attacker", i)
	}
	shop, attacker := len(l.In("shop")), len(l.In("attacker"))
	kept, dropped := l.Size()
	if shop != 30 || attacker < 50 || kept > 100 || kept+dropped != 1030 {
		t.Errorf("%d of 30 ends of the quiet namespace are kept, %d of the flooded, %d in all, %d dropped; want 30, 50 to 70, at most 100", shop, attacker, kept, dropped)
	}
}

// Whoever may patch the status of a pod can write any time into it.
func TestImpossibleTimes(t *testing.T) {
	year := func(y int) time.Time { return time.Date(y, 1, 1, 0, 0, 0, 0, time.UTC) }
	for _, test := range []struct {
		started, ended time.Time
		kept           int
	}{
		{year(-1), year(-1), 0}, // as what ended over an hour ago
		{year(1970), year(1970), 0},
		{year(10_000), year(10_000), 1},
		{year(-1), noon, 1},
		{year(1970), noon, 1},
		{year(10_000), noon, 1},
	} {
		now := noon
		l := newLog(10, &now)
		l.Changed(pod(nil), pod(func(p *cluster.Pod) {
			ended(&p.Containers[0], 3, 0)
			p.Containers[0].Previous.StartedAt, p.Containers[0].Previous.EndedAt = test.started, test.ended
		}), nil, ready)
		ends := l.In("")
		if len(ends) != test.kept {
			t.Errorf("from %v to %v: %d ends, want %d", test.started, test.ended, len(ends), test.kept)
		}
		for _, e := range ends {
			if !e.At.Equal(now) || !e.Run.Started.IsZero() {
				t.Errorf("from %v to %v: the end is at %v, of a run of %v", test.started, test.ended, e.At, e.Run.Started)
			}
		}
	}
}

// Since is when the pods were first listed, and moves on after an hour.
func TestSince(t *testing.T) {
	now := noon
	l := newLog(10, &now)
	if !l.Since().IsZero() {
		t.Errorf("before the pods are listed, ends are known since %v", l.Since())
	}
	l.Synced()
	now = noon.Add(time.Minute)
	l.Synced()
	if diff := cmp.Diff(noon, l.Since()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	now = noon.Add(3 * time.Hour)
	if diff := cmp.Diff(noon.Add(2*time.Hour), l.Since()); diff != "" {
		t.Errorf("three hours later (-want +got):\n%s", diff)
	}
}

// A node that the facts do not have yet, or have no place for, is not called gone.
func TestStateOfNode(t *testing.T) {
	var none *cluster.Facts
	synced := none.With(cluster.FactsChange{Synced: true, Nodes: []*cluster.Node{{Name: "n1", Ready: true}, {Name: "n2"}}})
	limited := synced.With(cluster.FactsChange{Synced: true, LeftOutNodes: 3})
	for what, c := range map[string]struct {
		facts *cluster.Facts
		name  metric.NodeName
		want  endlog.NodeState
	}{
		"a ready node":             {synced, "n1", endlog.NodeState{Known: true, Ready: true}},
		"one that is not":          {synced, "n2", endlog.NodeState{Known: true}},
		"one that is gone":         {synced, "n3", endlog.NodeState{}},
		"one that may be left out": {limited, "n3", endlog.NodeState{Known: true, Ready: true}},
		"before nodes are listed":  {new(cluster.Facts), "n3", endlog.NodeState{Known: true, Ready: true}},
	} {
		if got := endlog.StateOf(c.facts, c.name); got != c.want {
			t.Errorf("%s: got %+v, want %+v", what, got, c.want)
		}
	}
}

// BenchmarkWithoutEnd is the cost of a change of a pod that goes on.
func BenchmarkWithoutEnd(b *testing.B) {
	now := noon
	l := newLog(10, &now)
	before, after := pod(crash), pod(func(p *cluster.Pod) { crash(p); p.Ready = cluster.ReadyTrue })
	b.ReportAllocs()
	for b.Loop() {
		l.Changed(before, after, nil, ready)
	}
}
