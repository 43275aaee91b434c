package simulator

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-metrics/weir/test/cmptest"
)

// victimOf returns the pod that the faults of these tests concern: the fifth
// pod of the first node, which belongs to a StatefulSet.
func victimOf(t *testing.T, f *Fleet) *Pod {
	t.Helper()
	p := f.Nodes()[0].Pods()[4]
	if !strings.HasSuffix(p.Name, "-store-0-0") {
		t.Fatalf("the fifth pod is %s, want a StatefulSet's", p.Name)
	}
	return p
}

// line is a container's CPU line of one endpoint.
type line struct {
	name string // of the container
	path string // cadvisor only
	ms   int64
	cpu  float64
}

// lines returns the CPU lines of the StatefulSet pods' containers.
func lines(t *testing.T, f *Fleet, n *Node, e Endpoint, now time.Time) (found []line) {
	t.Helper()
	for _, m := range families(t, f.Append(nil, n, e, now))["container_cpu_usage_seconds_total"].Metric {
		l := labelsOf(m)
		if strings.HasSuffix(l["pod"], "-store-0-0") && l["container"] != "" {
			found = append(found, line{l["container"], l["id"], m.GetTimestampMs(), m.Counter.GetValue()})
		}
	}
	return found
}

// starts returns the start lines of the containers named app in those pods, in
// seconds.
func starts(t *testing.T, f *Fleet, now time.Time) (found []float64) {
	t.Helper()
	for _, m := range families(t, f.Append(nil, f.Nodes()[0], Resource, now))["container_start_time_seconds"].Metric {
		if l := labelsOf(m); strings.HasSuffix(l["pod"], "-store-0-0") && l["container"] == "app" {
			found = append(found, m.Gauge.GetValue())
		}
	}
	return found
}

func after(s float64) time.Time { return start.Add(time.Duration(s * 1e9)) }

func names(ls []line) string {
	var s []string
	for _, l := range ls {
		s = append(s, l.name)
	}
	slices.Sort(s)
	return strings.Join(s, " ")
}

func TestRestart(t *testing.T) {
	f := newFleet(t, Options{Pods: 6, Fresh: true}, "restart pod=*-store-0-0 container=app at=30s for=4s")
	p := victimOf(t, f)
	c := p.Containers[0]
	old, fresh := c.ID(after(29)), c.ID(after(40))
	if old == fresh {
		t.Fatalf("the ID is still %s", old)
	}
	if got := c.Started(after(40)); !got.Equal(after(34)) {
		t.Errorf("new run started %v, want %v", got, after(34))
	}
	if got := names(lines(t, f, p.Node, Resource, after(32))); got != "proxy" {
		t.Errorf("between two runs, got lines of %q, want proxy only", got)
	}
	before, later := lines(t, f, p.Node, Resource, after(29))[0].cpu, lines(t, f, p.Node, Resource, after(40))[0].cpu
	if later >= before || later != float64(c.CPU(after(40)))/1e9 {
		t.Errorf("counter was %v, is %v; want it to have begun again, at %v", before, later, float64(c.CPU(after(40)))/1e9)
	}
	if a, b := p.CPU(after(29)), p.CPU(after(40)); b < a {
		t.Errorf("the pod's counter fell from %d to %d", a, b)
	}
	var got []string
	for _, u := range p.Node.Truth(after(20), after(60)) {
		if u.Pod == p.Name && u.Container == "app" {
			got = append(got, fmt.Sprintf("%v to %v, %v", time.Unix(0, u.From).Sub(start), time.Unix(0, u.To).Sub(start), u.Current))
			if u.CPUTo <= u.CPUFrom || u.Rate != float64(u.CPUTo-u.CPUFrom)/float64(u.To-u.From) {
				t.Errorf("truth %+v does not add up", u)
			}
		}
	}
	if want := []string{"20s to 30s, false", "34s to 1m0s, true"}; !slices.Equal(got, want) {
		t.Errorf("truth: got %q, want %q", got, want)
	}
}

func TestNewRunIsSilentUntilItIsFirstRead(t *testing.T) {
	f := newFleet(t, Options{Pods: 6}, "restart pod=*-store-0-0 container=app at=30s for=4s")
	p := victimOf(t, f)
	first := after(34).UnixNano() + firstReading(p.Containers[0].runs[1].key)
	if got := names(lines(t, f, p.Node, Resource, time.Unix(0, first-1))); got != "proxy" {
		t.Errorf("before the first reading, got %q, want proxy only", got)
	}
	got := lines(t, f, p.Node, Resource, time.Unix(0, first))
	if len(got) != 2 || got[0].ms != first/1e6 || got[0].cpu <= 0 {
		t.Errorf("at the first reading, got %+v, want app at %d with a positive counter", got, first/1e6)
	}
}

func TestReplace(t *testing.T) {
	f := newFleet(t, Options{Pods: 6, Fresh: true}, "replace pod=*-store-0-0 at=30s for=10s")
	n := f.Nodes()[0]
	pods := n.Pods()
	if len(pods) != 7 || pods[6].Name != pods[4].Name || pods[6].UID() == pods[4].UID() {
		t.Fatalf("got %d pods, want a seventh with the fifth's name and another UID", len(pods))
	}
	for _, c := range []struct {
		at   float64
		want int
	}{{29, 2}, {35, 0}, {45, 2}} {
		if got := lines(t, f, n, Resource, after(c.at)); len(got) != c.want {
			t.Errorf("after %vs: got %d lines, want %d", c.at, len(got), c.want)
		}
	}
}

func TestOldInstanceLivesOn(t *testing.T) {
	f := newFleet(t, Options{Pods: 6, Fresh: true}, "duplicate pod=*-store-0-0 container=app at=30s for=1m")
	n := f.Nodes()[0]
	now := after(60)
	old, fresh := n.Pods()[4], n.Pods()[6]
	got := lines(t, f, n, Resource, now)
	if names(got) != "app app proxy" {
		t.Fatalf("got lines of %q, want the old app, the new app and the new proxy", names(got))
	}
	cpu := []float64{got[0].cpu, got[1].cpu}
	want := []float64{float64(old.Containers[0].CPU(now)) / 1e9, float64(fresh.Containers[0].CPU(now)) / 1e9}
	slices.Sort(cpu)
	slices.Sort(want)
	if !slices.Equal(cpu, want) {
		t.Errorf("got %v, want both instances' counters %v", cpu, want)
	}
	if got := starts(t, f, now); len(got) != 1 {
		t.Errorf("got %d start lines, want the one that has room", len(got))
	}
	if old.Bound(now) || !fresh.Bound(now) {
		t.Errorf("bound: old %v, new %v; want only the new", old.Bound(now), fresh.Bound(now))
	}
	paths := map[string]bool{}
	for _, l := range lines(t, f, n, CAdvisor, now) {
		paths[l.path] = true
	}
	if len(paths) != 3 {
		t.Errorf("/metrics/cadvisor names %d cgroups, want 3", len(paths))
	}
	current := map[bool]int{}
	for _, u := range n.Truth(now, now) {
		if u.Pod == old.Name && u.Container == "app" {
			current[u.Current]++
		}
	}
	if current[true] != 1 || current[false] != 1 {
		t.Errorf("truth has %d current and %d other apps, want 1 and 1", current[true], current[false])
	}
	if got := names(lines(t, f, n, Resource, after(91))); got != "app proxy" {
		t.Errorf("afterwards, got %q, want app proxy", got)
	}
}

func TestTwoLines(t *testing.T) {
	f := newFleet(t, Options{Pods: 6}, "duplicate pod=*-store-0-0 container=app at=30s for=1m style=two-lines")
	n := f.Nodes()[0]
	if len(n.Pods()) != 6 {
		t.Fatalf("got %d pods, want the 6 there were", len(n.Pods()))
	}
	orders := map[bool]bool{}
	for s := 40.0; s < 90; s++ {
		got := lines(t, f, n, Resource, after(s))
		if names(got) != "app app proxy" {
			t.Fatalf("after %vs: got lines of %q, want app app proxy", s, names(got))
		}
		if got[0].ms > got[1].ms {
			t.Errorf("after %vs: lines of one name are not in the order of their times: %+v", s, got)
		}
		orders[got[0].cpu < got[1].cpu] = true
	}
	if len(orders) != 2 {
		t.Error("the two lines never change places")
	}
	if got := names(lines(t, f, n, Resource, after(91))); got != "app proxy" {
		t.Errorf("afterwards, got %q, want app proxy", got)
	}
}

func TestTwoPaths(t *testing.T) {
	f := newFleet(t, Options{Pods: 6, Fresh: true}, "duplicate pod=*-store-0-0 container=app at=30s for=1m style=two-paths")
	p := victimOf(t, f)
	seen := map[float64]bool{}
	orders := map[bool]bool{}
	for s := 30.0; s < 90; s++ {
		for _, v := range starts(t, f, after(s)) {
			seen[v] = true
		}
		got := lines(t, f, p.Node, CAdvisor, after(s))
		if names(got) != "app app proxy" || got[0].path == got[1].path || got[0].cpu != got[1].cpu {
			t.Fatalf("after %vs: got %+v, want app twice, the same under two paths", s, got)
		}
		if got := names(lines(t, f, p.Node, Resource, after(s))); got != "app proxy" {
			t.Errorf("after %vs: /metrics/resource has %q, want app proxy", s, got)
		}
		legacy := f.Append(nil, p.Node, StatsContainer, after(s))
		first, second := bytes.Index(legacy, []byte(`{"id":"`+p.Containers[0].ID(start))), bytes.LastIndex(legacy, []byte(`{"id":"`+p.Containers[0].ID(start)))
		if first == second {
			t.Fatalf("after %vs: /stats/container names the container once, want twice", s)
		}
		orders[bytes.Contains(legacy[:first], []byte(p.path(true)))] = true
	}
	if len(orders) != 2 {
		t.Error("the two paths of /stats/container never change places")
	}
	real := float64(p.Containers[0].Started(start).UnixNano()) / 1e9
	if len(seen) != 2 || !seen[real] {
		t.Errorf("starts seen are %v, want two, one of them %v", seen, real)
	}
}

func TestTwoNodes(t *testing.T) {
	f := newFleet(t, Options{Nodes: 2, Pods: 6, Fresh: true}, "twonodes pod=*-store-0-0 node=node-0002 at=30s for=30s")
	other := f.Nodes()[1]
	for _, c := range []struct {
		at   float64
		want int
	}{{29, 0}, {31, 2}, {61, 0}} {
		if got := len(lines(t, f, other, Resource, after(c.at))); got != c.want {
			t.Errorf("after %vs: the other node has %d lines, want %d", c.at, got, c.want)
		}
	}
	for _, u := range other.Truth(after(31), after(32)) {
		if u.Pod == victimOf(t, f).Name && u.Current {
			t.Errorf("truth calls the other node's %s current", u.Container)
		}
	}
	if bytes.Contains(f.Append(nil, other, PodList, after(31)), []byte(victimOf(t, f).Name)) {
		t.Error("the other node's /pods lists the pod")
	}
}

func TestReset(t *testing.T) {
	f := newFleet(t, Options{Pods: 6, Fresh: true}, "reset pod=*-store-0-0 container=app at=30s", "reset node=node-0001 at=30s")
	p := victimOf(t, f)
	a, b := lines(t, f, p.Node, Resource, after(29)), lines(t, f, p.Node, Resource, after(45))
	if b[0].cpu >= a[0].cpu || a[0].path != b[0].path {
		t.Errorf("got %+v, then %+v; want the counter to have fallen", a[0], b[0])
	}
	if s := [2][]float64{starts(t, f, after(29)), starts(t, f, after(45))}; !slices.Equal(s[0], s[1]) {
		t.Errorf("start was %v, is %v; want no change", s[0], s[1])
	}
	if x, y := p.Containers[0].ID(after(29)), p.Containers[0].ID(after(45)); x != y {
		t.Errorf("the ID changed from %s to %s", x, y)
	}
	var n []float64
	for _, s := range []float64{29, 45} {
		n = append(n, families(t, f.Append(nil, p.Node, Resource, after(s)))["node_cpu_usage_seconds_total"].Metric[0].Counter.GetValue())
	}
	if want := float64(p.Node.CPU(after(45))-p.Node.CPU(after(30))) / 1e9; n[1] >= n[0] || n[1] != want {
		t.Errorf("the node's counter was %v, is %v; want %v", n[0], n[1], want)
	}
	if p.CPU(after(45)) < p.CPU(after(29)) {
		t.Error("the pod's counter fell too")
	}
}

func TestResetShowsAtTheNextHousekeeping(t *testing.T) {
	f := newFleet(t, Options{Pods: 6}, "reset pod=*-store-0-0 container=app at=30s")
	p := victimOf(t, f)
	now := after(30.000001)
	got := lines(t, f, p.Node, Resource, now)[0]
	if at := housekeeping(p.Containers[0].runs[0].key, now.UnixNano()); got.ms != at/1e6 || got.cpu != float64(p.Containers[0].runs[0].cpu(at))/1e9 {
		t.Errorf("just after the reset, got %+v, want the reading of before", got)
	}
}

func TestJitter(t *testing.T) {
	f := newFleet(t, Options{Pods: 6}, "jitter pod=*-store-0-0 start=±2s at=10s")
	real := float64(victimOf(t, f).Containers[0].Started(start).UnixNano()) / 1e9
	if got := starts(t, f, after(9))[0]; got != real {
		t.Errorf("before, start is %v, want %v", got, real)
	}
	seen := map[float64]bool{}
	for s := 10.0; s < 60; s++ {
		got := starts(t, f, after(s))[0]
		seen[got] = true
		if got < real-2 || got > real+2 {
			t.Errorf("start is %v, want %v ± 2", got, real)
		}
	}
	if len(seen) < 45 {
		t.Errorf("saw %d starts in 50 s, want them all to differ", len(seen))
	}
}

func TestMissingAndZero(t *testing.T) {
	f := newFleet(t, Options{Pods: 6},
		"missing pod=*-store-0-0 container=proxy at=10s for=10s", "zero pod=*-store-0-0 container=app at=10s for=10s", "missing pod=*-store-0-0 at=30s for=5s")
	n := f.Nodes()[0]
	now := after(15)
	got := lines(t, f, n, Resource, now)
	if len(got) != 1 || got[0] != (line{"app", "", now.UnixMilli(), 0}) {
		t.Errorf("got %+v, want app alone, 0 at %d", got, now.UnixMilli())
	}
	for _, m := range families(t, f.Append(nil, n, Resource, now))["container_memory_working_set_bytes"].Metric {
		if l := labelsOf(m); strings.HasSuffix(l["pod"], "-store-0-0") && m.Gauge.GetValue() != 0 {
			t.Errorf("memory of %v is %v, want 0", l, m.Gauge.GetValue())
		}
	}
	if got := names(lines(t, f, n, Resource, after(25))); got != "app proxy" {
		t.Errorf("afterwards, got %q, want app proxy", got)
	}
	for _, e := range []Endpoint{Resource, Summary, CAdvisor, StatsContainer} {
		if bytes.Contains(f.Append(nil, n, e, after(31)), []byte(victimOf(t, f).Name)) {
			t.Errorf("%v speaks of a pod that is missing", e)
		}
	}
}

func TestStale(t *testing.T) {
	f := newFleet(t, Options{Nodes: 2, Pods: 6}, "stale pod=*-store-0-0 at=20s for=40s", "stale node=node-0002 at=20s")
	n := f.Nodes()[0]
	want := lines(t, f, n, Resource, after(20))
	for s := 21.0; s < 60; s += 7 {
		if got := lines(t, f, n, Resource, after(s)); !slices.Equal(got, want) {
			t.Errorf("after %vs: got %+v, want %+v still", s, got, want)
		}
	}
	if got := lines(t, f, n, Resource, after(61)); slices.Equal(got, want) {
		t.Error("its counters do not move after the fault has ended")
	}
	other := f.Nodes()[1]
	a, b := f.Append(nil, other, Resource, after(20)), f.Append(nil, other, Resource, after(300))
	if !bytes.Equal(a, b) {
		t.Error("the stale node's answer changed")
	}
}

func TestClockStep(t *testing.T) {
	f := newFleet(t, Options{Pods: 6, Fresh: true}, "clockstep node=node-0001 by=40s at=30s", "clockstep node=node-0001 by=-10s at=60s")
	p := victimOf(t, f)
	for _, c := range []struct {
		at   float64
		by   int64
		note string
	}{{29, 0, "before"}, {31, 40, "after the first step"}, {61, 30, "after the second"}} {
		now := after(c.at)
		got := lines(t, f, p.Node, Resource, now)[0]
		if got.ms != now.UnixMilli()+c.by*1000 || got.cpu != float64(p.Containers[0].CPU(now))/1e9 {
			t.Errorf("%s: got %+v, want the true counter %d s ahead", c.note, got, c.by)
		}
	}
}

func TestConduct(t *testing.T) {
	f := newFleet(t, Options{Nodes: 4}, "slow node=node-0001 delay=5s at=10s for=10s", "hang node=node-0002", "down node=*3 at=1s",
		"refuse node=*4 at=1s for=1s", "refuse node=*4 style=forbidden at=2s for=1s", "certificate node=*4 style=expired at=3s for=1s", "impostor node=*4 as=*2 at=5s")
	f1 := func(node int, at float64, want Conduct) {
		t.Helper()
		if got := f.Nodes()[node].Conduct(after(at)); got != want {
			t.Errorf("node %d after %vs: got %+v, want %+v", node+1, at, got, want)
		}
	}
	f1(0, 9, Conduct{})
	f1(0, 10, Conduct{Delay: 5 * time.Second})
	f1(0, 20, Conduct{})
	f1(1, 0, Conduct{Hang: true})
	f1(2, 0, Conduct{})
	f1(2, 1, Conduct{Down: true})
	f1(3, 1, Conduct{Status: 401})
	f1(3, 2, Conduct{Status: 403})
	f1(3, 3, Conduct{Certificate: Expired, Changed: after(3).UnixNano()})
	f1(3, 4, Conduct{Changed: after(4).UnixNano()})
	f1(3, 5, Conduct{As: f.Nodes()[1], Changed: after(5).UnixNano()})
}

func TestGarbage(t *testing.T) {
	for _, style := range []string{"binary", "html", "truncated"} {
		f := newFleet(t, Options{Nodes: 2}, "garbage node=node-0001 style="+style+" at=10s")
		sane := f.Payload("node-0001", Summary, after(9))
		if !json.Valid(sane) {
			t.Errorf("%s: before, the answer is garbage", style)
		}
		got := f.Append([]byte("["), f.Nodes()[0], Summary, after(11))
		if got[0] != '[' || json.Valid(got[1:]) {
			t.Errorf("%s: the answer is sane: %.100q", style, got)
		}
	}
}

func TestBulk(t *testing.T) {
	f := newFleet(t, Options{Nodes: 2, Fresh: true}, "bulk node=node-0001 at=10s")
	if before := f.Payload("node-0001", Resource, after(9)); bytes.Contains(before, []byte(`pod="copy-`)) {
		t.Error("before, the answer has pods that do not exist")
	}
	long := f.Payload("node-0001", Resource, after(11))
	var short []byte
	for line := range bytes.Lines(long) {
		if !bytes.Contains(line, []byte(`pod="copy-`)) {
			short = append(short, line...)
		}
	}
	plain := newFleet(t, Options{Nodes: 2, Fresh: true}).Payload("node-0001", Resource, after(11))
	cmptest.Equal(t, "the lines of existing pods have changed", string(plain), string(short))
	if least := 8 * len(plain); len(long) < least { // comments and lines of the node are not repeated
		t.Errorf("the answer has %d bytes, want at least %d", len(long), least)
	}
}

func TestOwnCounters(t *testing.T) {
	f := newFleet(t, Options{Pods: 6, Fresh: true}, "duplicate pod=*-store-0-0 container=app at=30s style=own-counters")
	p := victimOf(t, f)
	var both, alone int
	for s := 40.0; s < 400; s += 10 {
		found := map[string]float64{}
		for _, l := range lines(t, f, p.Node, CAdvisor, after(s)) {
			if l.name == "app" {
				found[l.path] = l.cpu
			}
		}
		own := float64(p.Containers[0].CPU(after(s))) / 1e9
		switch len(found) {
		case 1:
			alone++
		case 2:
			both++
		}
		for path, cpu := range found {
			if second := strings.HasPrefix(path, p.path(true)); second != (cpu != own) {
				t.Fatalf("after %vs: %s has %v, the container's counter is %v", s, path, cpu, own)
			}
		}
	}
	if both == 0 || alone == 0 {
		t.Errorf("%d times both paths and %d times the second alone, want both kinds", both, alone)
	}
}

func TestOlderIsMissing(t *testing.T) {
	for _, style := range []string{"two-lines", "old-instance"} {
		f := newFleet(t, Options{Pods: 6, Fresh: true}, "duplicate pod=*-store-0-0 container=app at=30s style="+style, "missing pod=*-store-0-0 container=app at=1m for=10s style=older")
		n := f.Nodes()[0]
		for at, want := range map[float64]string{55: "app app proxy", 65: "app proxy", 75: "app app proxy"} {
			if got := names(lines(t, f, n, Resource, after(at))); got != want {
				t.Errorf("%s after %vs: lines of %q, want %q", style, at, got, want)
			}
		}
	}
}

func TestSteadyJitterDoesNotChange(t *testing.T) {
	f := newFleet(t, Options{Pods: 6}, "jitter pod=*-store-0-0 start=±20s style=steady")
	real := float64(victimOf(t, f).Containers[0].Started(start).UnixNano()) / 1e9
	first := starts(t, f, after(10))[0]
	if first == real {
		t.Errorf("start %v is right, want it off", first)
	}
	for s := 20.0; s < 100; s += 7 {
		if got := starts(t, f, after(s))[0]; got != first {
			t.Errorf("after %vs the start is %v, was %v", s, got, first)
		}
	}
}

func TestCPUOfZeroBesideMemory(t *testing.T) {
	f := newFleet(t, Options{Pods: 6}, "zero pod=*-store-0-0 container=app at=30s style=cpu")
	n := f.Nodes()[0]
	if got := lines(t, f, n, Resource, after(60)); got[0].name != "app" || got[0].cpu != 0 || got[0].ms == after(60).UnixMilli() {
		t.Errorf("got %+v, want a CPU of 0 at the time of the reading", got[0])
	}
	for _, m := range families(t, f.Append(nil, n, Resource, after(60)))["container_memory_working_set_bytes"].Metric {
		if l := labelsOf(m); strings.HasSuffix(l["pod"], "-store-0-0") && m.Gauge.GetValue() == 0 {
			t.Errorf("the memory of %v is 0", l)
		}
	}
}
