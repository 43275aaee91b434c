package endlog_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/cluster/endlog"
	"github.com/weir-metrics/weir/metric"
)

// killed ends the run of the first container as the kernel does.
func killed(p *cluster.Pod) {
	ended(&p.Containers[0], 137, 2*time.Second)
	p.Containers[0].Previous.EndReason = "OOMKilled"
}

// kill returns a kill two seconds before noon, after a change.
func kill(change func(*endlog.Kill)) endlog.Kill {
	k := endlog.Kill{UID: "u1", Scope: endlog.InContainer, Limit: endlog.InContainer, Processes: 1, After: noon.Add(-2500 * time.Millisecond), At: noon.Add(-2250 * time.Millisecond)}
	if change != nil {
		change(&k)
	}
	return k
}

func child(k *endlog.Kill) { k.Scope, k.ContainerID = endlog.Child, "app-1" }

// report has the agent of n1 report kills.
func report(l *endlog.Log, p *cluster.Pod, kills ...endlog.Kill) {
	pods := map[metric.PodUID]*cluster.Pod{}
	if p != nil {
		pods[p.ReportedUID()] = p
	}
	l.AddKills("n1", kills, pods, ready("n1"))
}

// TestKillsEndRuns checks which end a kill is of, whichever of the two is known first.
func TestKillsEndRuns(t *testing.T) {
	error137 := func(p *cluster.Pod) { killed(p); p.Containers[0].Previous.EndReason = "Error" }
	for what, c := range map[string]struct {
		pod  func(*cluster.Pod)
		kill func(*endlog.Kill)
		want bool
	}{
		"the runtime reports it":      {killed, nil, true},
		"the agent saw the container": {killed, func(k *endlog.Kill) { k.ContainerID = "app-1" }, true},
		"another container":           {killed, func(k *endlog.Kill) { k.ContainerID = "proxy-1" }, false},
		"another pod":                 {killed, func(k *endlog.Kill) { k.UID = "u2" }, false},
		"a child, long before": {killed, func(k *endlog.Kill) {
			child(k)
			k.At, k.After = k.At.Add(-20*time.Second), k.After.Add(-20*time.Second)
		}, false},
		"a child, right before":    {killed, child, true},
		"a child, and an own exit": {crash, child, false},
		"a run that began after it": {func(p *cluster.Pod) {
			p.Containers = p.Containers[:1]
			p.Containers[0].StartedAt = noon.Add(-2 * time.Second)
			killed(p)
			p.Containers[0].Previous.EndedAt = noon
		}, nil, false},
		"a container that took long to end": {killed, func(k *endlog.Kill) {
			k.ContainerID, k.Whole = "app-1", true
			k.At, k.After = k.At.Add(-30*time.Second), k.After.Add(-30*time.Second)
		}, true},
		"a minute before": {killed, func(k *endlog.Kill) { k.At, k.After = k.At.Add(-time.Minute), k.After.Add(-time.Minute) }, false},
		"a minute later":  {killed, func(k *endlog.Kill) { k.At, k.After = k.At.Add(time.Minute), k.After.Add(time.Minute) }, false},
		"the same second, which is cut": {killed, func(k *endlog.Kill) {
			k.After, k.At = noon.Add(-1200*time.Millisecond), noon.Add(-1100*time.Millisecond)
		}, true},
		"an own exit":                           {crash, nil, false},
		"the runtime did not notice":            {error137, func(k *endlog.Kill) { k.ContainerID = "app-1" }, true},
		"it did not, and it may be the other's": {error137, nil, false},
		"a static pod":                          {func(p *cluster.Pod) { killed(p); p.ConfigHash = cluster.NewConfigHash("h1") }, func(k *endlog.Kill) { k.UID = "h1" }, true},
		"an agent that speaks of another's":     {func(p *cluster.Pod) { killed(p); p.Node = "n2" }, nil, false},
		"a scope that there is not":             {killed, func(k *endlog.Kill) { k.Scope = "all" }, true},
		"a limit that there is not":             {killed, func(k *endlog.Kill) { k.Scope, k.Limit = "zone", "zone" }, true},
		"a process' name without an end":        {killed, func(k *endlog.Kill) { k.Process = &endlog.Process{Name: strings.Repeat("x", 2000)} }, false},
		"an end before its begin":               {killed, func(k *endlog.Kill) { k.After = k.At.Add(time.Second) }, false},
	} {
		for _, first := range []string{"kill", "end"} {
			now := noon
			l := newLog(10, &now)
			p := pod(c.pod)
			if first == "kill" {
				report(l, p, kill(c.kill))
			}
			l.Changed(pod(func(o *cluster.Pod) { o.ConfigHash, o.Node = p.ConfigHash, p.Node }), p, nil, ready)
			if first == "end" {
				report(l, p, kill(c.kill))
			}
			got := false
			for _, e := range l.In("") {
				got = got || e.Run.ExitCode != 0 && e.Kill != nil
			}
			if got != c.want {
				t.Errorf("%s, and the %s is known first: the end has the kill: %v, want %v", what, first, got, c.want)
			}
		}
	}
}

// TestLimitOfANewerAgent checks that a kill at a limit that this weir does not know is kept, without the limit.
func TestLimitOfANewerAgent(t *testing.T) {
	for scope, want := range map[endlog.Scope]endlog.Scope{"zone": endlog.InContainer, endlog.Child: endlog.Child} {
		now := noon
		l := newLog(10, &now)
		report(l, pod(nil), kill(func(k *endlog.Kill) { k.Scope, k.Limit, k.Slice, k.NUMA, k.Inner = scope, "zone", "/z", true, true }))
		kills := l.Kills()
		if len(kills) != 1 {
			t.Fatalf("scope %s: %d kills are kept, want 1", scope, len(kills))
		}
		if k := kills[0]; k.Scope != want || k.Limit != "" || k.Slice != "" || k.Doubt != endlog.Unrecognized || k.NUMA || k.Inner {
			t.Errorf("scope %s: got %+v, want scope %s, no limit, and the doubt %s", scope, k, want, endlog.Unrecognized)
		}
	}
}

// TestEndedBySIGKILL checks that a signal that is reported counts more than the exit code.
func TestEndedBySIGKILL(t *testing.T) {
	for run, want := range map[endlog.Run]bool{{ExitCode: 137}: true, {Signal: 9}: true, {ExitCode: 137, Signal: 9}: true, {ExitCode: 137, Signal: 15}: false, {ExitCode: 143}: false, {}: false} {
		if got := run.EndedBySIGKILL(); got != want {
			t.Errorf("exit code %d, signal %d: got %v, want %v", run.ExitCode, run.Signal, got, want)
		}
	}
}

// TestChildIsAnEnd checks that a kill of a child is in the record by itself, once, with its last time, and
// also if its container was not known at first.
func TestChildIsAnEnd(t *testing.T) {
	now := noon
	l := newLog(10, &now)
	report(l, nil, kill(child))
	if got := l.In(""); len(got) != 0 {
		t.Errorf("an unknown pod has %d ends, want none", len(got))
	}
	again := kill(func(k *endlog.Kill) { child(k); k.Processes, k.At = 5, noon.Add(-time.Second) })
	for range 2 {
		report(l, pod(nil), kill(child))
		report(l, pod(nil), again)
	}
	got := l.In("shop")
	if len(got) != 1 || !got[0].GoesOn() || got[0].Container != "app" || got[0].Kill.Processes != 5 || !got[0].At.Equal(again.At) {
		t.Errorf("got %d ends, the first %+v; want one of container app, with 5 processes, at %v", len(got), got, again.At)
	}
	if kills := l.Kills(); len(kills) != 1 || kills[0].Pod != "web" {
		t.Errorf("kills: %+v, want one of pod web", kills)
	}
	now = noon.Add(2 * time.Hour)
	if ends, kills := l.In(""), l.Kills(); len(ends) != 0 || len(kills) != 0 {
		t.Errorf("two hours later there are %d ends and %d kills, want none", len(ends), len(kills))
	}
}

// run returns the pod after a run of a container, by its ID, that SIGKILL ended.
func run(container, id string, began, ended time.Duration) *cluster.Pod {
	return pod(func(p *cluster.Pod) {
		c := &p.Containers[map[string]int{"app": 0, "proxy": 1}[container]]
		c.ID, c.State, c.StartedAt = "", cluster.StateWaiting, time.Time{}
		c.Previous = &cluster.PreviousRun{LastID: metric.ContainerID(id), StartedAt: noon.Add(began), EndedAt: noon.Add(ended), EndReason: "OOMKilled", ExitCode: 137}
	})
}

// TestEachRunHasItsKill checks which of several kills is that of which run, in each order in which they can be
// known. Times are those before noon.
func TestEachRunHasItsKill(t *testing.T) {
	at := func(limit endlog.Scope, id string, when time.Duration, change func(*endlog.Kill)) endlog.Kill {
		k := endlog.Kill{UID: "u1", ContainerID: metric.ContainerID(id), Scope: limit, Limit: limit, Processes: 1, After: noon.Add(when - 250*time.Millisecond), At: noon.Add(when)}
		if change != nil {
			change(&k)
		}
		return k
	}
	const s = time.Second
	for what, c := range map[string]struct {
		runs  []*cluster.Pod
		kills []endlog.Kill
		want  string
	}{
		"two runs": {[]*cluster.Pod{run("app", "a1", -3600*s, -9*s), run("app", "a2", -8*s, -4*s)},
			[]endlog.Kill{at("pod", "", -8750*time.Millisecond, nil), at("container", "", -3750*time.Millisecond, nil)}, "a1 pod, a2 container"},
		"two containers": {[]*cluster.Pod{run("app", "a1", -3600*s, -9*s), run("proxy", "p1", -3600*s, -4*s)},
			[]endlog.Kill{at("pod", "", -8750*time.Millisecond, nil), at("container", "", -3750*time.Millisecond, nil)}, "a1 pod, p1 container"},
		"two containers, and one kill": {[]*cluster.Pod{run("app", "a1", -3600*s, -9*s), run("proxy", "p1", -3600*s, -4*s)},
			[]endlog.Kill{at("pod", "", -8750*time.Millisecond, nil)}, "a1 pod"},
		"two containers within a second": {[]*cluster.Pod{run("app", "a1", -3600*s, -4*s), run("proxy", "p1", -3600*s, -4*s)},
			[]endlog.Kill{at("pod", "", -3800*time.Millisecond, nil), at("container", "", -3750*time.Millisecond, nil)}, "a1 pod several, p1 container several"},
		"the same, and the log has the container": {[]*cluster.Pod{run("app", "a1", -3600*s, -4*s), run("proxy", "p1", -3600*s, -4*s)},
			[]endlog.Kill{at("pod", "", -3800*time.Millisecond, nil), at("container", "p1", -3750*time.Millisecond, nil)}, "a1 pod, p1 container"},
		"two containers that were killed together": {[]*cluster.Pod{run("app", "a1", -3600*s, -4*s), run("proxy", "p1", -3600*s, -4*s)},
			[]endlog.Kill{at("node", "", -3800*time.Millisecond, func(k *endlog.Kill) { k.Processes = 2 })}, "a1 node, p1 node"},
		"one of two containers within a second": {[]*cluster.Pod{run("app", "a1", -3600*s, -4*s), run("proxy", "p1", -3600*s, -4*s)},
			[]endlog.Kill{at("pod", "", -3800*time.Millisecond, nil)}, "a1 pod several"},
		"a child that was the end": {[]*cluster.Pod{run("app", "a1", -3600*s, -4*s)},
			[]endlog.Kill{at("child", "a1", -6*s, func(k *endlog.Kill) { k.Limit = "pod" })}, "a1 pod late"},
		"the last of three children was the end": {[]*cluster.Pod{run("app", "a1", -3600*s, -4*s)},
			[]endlog.Kill{at("child", "a1", -6*s, func(k *endlog.Kill) {
				k.Limit, k.Processes, k.After = "pod", 3, noon.Add(-time.Minute)
			})}, "a1 goes on 3, a1 pod late"},
		"a child, and then the container": {[]*cluster.Pod{run("app", "a1", -3600*s, -4*s)},
			[]endlog.Kill{at("child", "a1", -8*s, func(k *endlog.Kill) { k.Limit = "pod" }), at("container", "", -4*s, nil)}, "a1 container, a1 goes on 1"},
	} {
		steps := len(c.runs) + len(c.kills)
		for order := range 1 << steps {
			now := noon
			l := newLog(100, &now)
			before := pod(func(p *cluster.Pod) { p.Containers[0].ID = "a1" })
			do := func(i int) {
				if i < len(c.runs) {
					l.Changed(before, c.runs[i], nil, ready)
				} else {
					report(l, before, c.kills[i-len(c.runs)])
				}
			}
			for _, first := range []bool{true, false} { // those of the set bits come first
				for i := range steps {
					if (order>>i&1 == 1) == first {
						do(i)
					}
				}
			}
			var got []string
			for _, e := range l.In("") {
				switch k := e.Kill; {
				case k == nil:
				case e.GoesOn():
					got = append(got, fmt.Sprintf("%s goes on %d", e.Run.ID, k.Processes))
				default:
					got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s %s", e.Run.ID, k.Limit, k.Doubt)))
				}
			}
			slices.Sort(got)
			if got := strings.Join(got, ", "); got != c.want {
				t.Errorf("%s, in order %b: got %q, want %q", what, order, got, c.want)
			}
		}
	}
}

// TestAsksAboutKills checks which ends an agent is asked about.
func TestAsksAboutKills(t *testing.T) {
	var asked []string
	l := endlog.New(endlog.Options{Now: func() time.Time { return noon }, Killed: func(e *endlog.End) { asked = append(asked, e.Run.Reason) }})
	other := func(p *cluster.Pod) { p.UID = "u2" }
	l.Changed(pod(other), pod(func(p *cluster.Pod) { other(p); crash(p) }), nil, ready)
	l.Changed(pod(nil), pod(killed), nil, ready)
	l.Changed(pod(nil), pod(killed), nil, ready)
	if got, want := fmt.Sprint(asked), "[OOMKilled]"; got != want {
		t.Errorf("asked about %s, want %s", got, want)
	}
}

// TestKillsAreBounded checks that an agent that reports a flood displaces only its own.
func TestKillsAreBounded(t *testing.T) {
	now := noon
	l := newLog(10, &now)
	quiet := pod(func(p *cluster.Pod) { p.Namespace, p.UID = "quiet", "u0" })
	report(l, quiet, kill(func(k *endlog.Kill) { k.UID = "u0" }))
	for i := range 10 {
		var flood []endlog.Kill
		for j := range 5000 {
			flood = append(flood, kill(func(k *endlog.Kill) { k.ContainerID = metric.ContainerID(fmt.Sprint(i, ".", j)) }))
		}
		report(l, pod(nil), flood...)
	}
	kills := l.Kills()
	if len(kills) > 1000 {
		t.Errorf("%d kills are kept, want at most 1000", len(kills))
	}
	for _, k := range kills {
		if k.UID == "u0" {
			return
		}
	}
	t.Error("the kill of namespace quiet is gone: another namespace's displaced it")
}

// BenchmarkFlood is the cost of an end that the kernel caused, in a minute with a thousand of them on a node,
// which its agent reports each second.
func BenchmarkFlood(b *testing.B) {
	now := noon
	l := endlog.New(endlog.Options{Now: func() time.Time { return now }})
	pods := map[metric.PodUID]*cluster.Pod{}
	for i := range 1000 {
		p := pod(func(p *cluster.Pod) {
			p.Name, p.UID = metric.PodName(fmt.Sprintf("web-\x1b[31m%d", i)), metric.PodUID(fmt.Sprint("u", i))
			killed(p)
		})
		pods[p.UID] = p
	}
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		i := n % 1000
		n++
		p := *pods[metric.PodUID(fmt.Sprint("u", i))]
		p.Containers = append([]cluster.Container{}, p.Containers...)
		previous := *p.Containers[0].Previous
		previous.LastID, previous.EndedAt = metric.ContainerID(fmt.Sprint(n)), now
		p.Containers[0].Previous = &previous
		l.Changed(pod(nil), &p, nil, ready)
		if n%17 == 0 { // a second
			kills := l.Kills()
			for range 17 {
				kills = append(kills, endlog.Kill{UID: p.UID, Scope: endlog.InContainer, Limit: endlog.InContainer, Processes: 1, After: now.Add(-time.Second), At: now})
			}
			now = now.Add(time.Second)
			l.AddKills("n1", kills, pods, ready("n1"))
		}
	}
}

// TestKilledCounts checks how often the kernel killed in containers, pods and nodes: by the runtime's report
// or the agent's, and each child.
func TestKilledCounts(t *testing.T) {
	now := noon
	l := newLog(10, &now)
	l.Changed(pod(nil), pod(killed), nil, ready)
	report(l, pod(nil), kill(func(k *endlog.Kill) { child(k); k.ContainerID, k.Processes = "proxy-1", 4 }))
	container := func(name string) metric.Entity {
		return metric.Entity{Kind: metric.Container, Node: "n1", Namespace: "shop", Pod: "web", Name: name}
	}
	whole := container("")
	whole.Kind = metric.Pod
	want := map[metric.Entity]int{container("app"): 1, container("proxy"): 4, whole: 5, {Kind: metric.Node, Node: "n1"}: 5}
	if diff := cmp.Diff(want, l.Killed()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	outlived := func(p *cluster.Pod) { ended(&p.Containers[1], 1, 0); p.Containers[1].Previous.EndReason = "OOMKilled" }
	l.Changed(pod(killed), pod(func(p *cluster.Pod) { killed(p); outlived(p) }), nil, ready)
	if diff := cmp.Diff(want, l.Killed()); diff != "" {
		t.Errorf("the runtime reports the kill of the child, too (-want +got):\n%s", diff)
	}
}

// TestKillOfChildThatWasTheEndCountsOnce checks counts if a container ends by what seemed to be the kill of a child.
func TestKillOfChildThatWasTheEndCountsOnce(t *testing.T) {
	for processes, since := range map[int]time.Duration{1: 3 * time.Second, 4: time.Minute} {
		now := noon
		l := newLog(10, &now)
		report(l, pod(nil), kill(func(k *endlog.Kill) { child(k); k.Processes, k.After = uint64(processes), noon.Add(-since) }))
		l.Changed(pod(nil), pod(killed), nil, ready)
		if got := l.Killed()[metric.Entity{Kind: metric.Node, Node: "n1"}]; got != processes {
			t.Errorf("%d processes were killed, the last with the container: counted %d", processes, got)
		}
	}
}
