package resize_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-metrics/weir/resize"
)

const mebibyte = 1 << 20

// readings are those of a cgroup in steps of 15 s, in millicores and MiB.
type readings struct {
	cgroup      string
	cpu, memory []float64
}

// node returns a node of 4 cores and 8Gi, of which each cgroup has readings.
func node(name string, all ...readings) resize.NodeUsage {
	var n resize.NodeReadings
	for _, of := range all {
		points := func(values []float64, unit float64) (points []resize.UsagePoint) {
			for i, v := range values {
				points = append(points, resize.UsagePoint{At: noon.Add(time.Duration(i) * 15 * time.Second), Value: v * unit})
			}
			return points
		}
		n.Add(name, of.cgroup, resize.CPU, points(of.cpu, 1e-3))
		n.Add(name, of.cgroup, resize.Memory, points(of.memory, mebibyte))
	}
	size := resize.Amounts{CPU: resize.Of(4000), Memory: resize.Of(8192 * mebibyte)}
	return resize.NodeUsage{Name: name, Capacity: size, Allocatable: size, Points: n.Of(name)}
}

func same(v float64) []float64 { return []float64{v, v, v, v} }

// The proposal is the highest use of any node plus headroom, rounded up to 10m and 16Mi.
func TestReserve(t *testing.T) {
	f := func(about, want string, nodes ...resize.NodeUsage) {
		t.Helper()
		g := resize.Reserve(nodes, resize.Defaults(), 100*mebibyte)
		var got []string
		for _, v := range g.Values {
			text := "unknown"
			if v.Proposed != nil {
				text = v.Proposed.String() + " by " + v.Node
			}
			got = append(got, text)
		}
		if g.Sum != nil {
			got = append(got, fmt.Sprintf("sum %v %v", g.Sum.Of(resize.CPU), g.Sum.Of(resize.Memory)))
		}
		if got := strings.Join(got, ", "); got != want {
			t.Errorf("%s:\n got %s\nwant %s", about, got, want)
		}
	}
	whole, pods := readings{"", same(1000), same(3000)}, readings{"pods", same(500), same(2000)}
	kubelet, runtime := readings{"kubelet", same(60), same(120)}, readings{"runtime", same(40), same(80)}

	f("all parts: 100m*1.15, 200Mi*1.2, 400m*1.15, 800Mi*1.2", "120m by a, 240Mi by a, 460m by a, 960Mi by a, sum 580m 1300Mi",
		node("a", whole, pods, kubelet, runtime))
	f("paths", "120m by a, 240Mi by a, 460m by a, 960Mi by a, sum 580m 1300Mi",
		node("a", whole, readings{"/kubepods.slice", pods.cpu, pods.memory}, readings{"/system.slice/kubelet.service", kubelet.cpu, kubelet.memory},
			readings{"/system.slice/containerd.service", runtime.cpu, runtime.memory}, readings{"/system.slice", same(900), same(900)}))
	f("names of the kubelet before paths", "120m by a, 240Mi by a, 460m by a, 960Mi by a, sum 580m 1300Mi",
		node("a", whole, pods, kubelet, runtime, readings{"/system.slice/kubelet.service", same(900), same(900)}))
	f("the highest of two nodes, each value by itself", "120m by a, 288Mi by b, 500m by b, 960Mi by a, sum 620m 1348Mi",
		node("a", whole, pods, kubelet, runtime), node("b", whole, pods, kubelet, readings{"runtime", same(10), []float64{80, 120, 80, 80}}))
	f("kubelet and runtime peak at different times", "120m by a, 208Mi by a, 460m by a, 1008Mi by a, sum 580m 1316Mi",
		node("a", whole, pods, readings{"kubelet", same(60), []float64{160, 80, 80, 80}}, readings{"runtime", same(40), []float64{10, 90, 80, 80}}))
	f("no runtime: it is part of the system", "70m by a, 144Mi by a, 510m by a, 1056Mi by a, sum 580m 1300Mi", node("a", whole, pods, kubelet))
	f("neither", "unknown, unknown, 580m by a, 1200Mi by a, sum 580m 1300Mi", node("a", whole, pods))
	f("no pods", "120m by a, 240Mi by a, unknown, unknown", node("a", whole, kubelet, runtime))
	f("no node", "120m by a, 240Mi by a, unknown, unknown", node("a", pods, kubelet, runtime))
	f("nothing", "unknown, unknown, unknown, unknown", node("a"))
	f("pods above the node, which was read earlier: at least the floor", "120m by a, 240Mi by a, 10m by a, 16Mi by a, sum 130m 356Mi",
		node("a", readings{"", same(400), same(1900)}, pods, kubelet, runtime))
}

// Readings further apart than a minute are of different times.
func TestReserveOfDifferentTimes(t *testing.T) {
	var n resize.NodeReadings
	for _, of := range []struct {
		cgroup string
		after  time.Duration
	}{{"", 0}, {"pods", 59 * time.Second}, {"kubelet", 0}, {"runtime", 61 * time.Second}} {
		n.Add("a", of.cgroup, resize.Memory, []resize.UsagePoint{{At: noon.Add(of.after), Value: 100}})
	}
	g := resize.Reserve([]resize.NodeUsage{{Name: "a", Points: n.Of("a")}}, resize.Defaults(), 0)
	for _, v := range g.Values {
		if v.Used != nil {
			t.Errorf("%s %s: got %v, want nothing: the runtime was read 61s later", v.Field, v.Resource, v.Used.Value)
		}
	}
}

// What is allocatable is the capacity without huge pages, and pods on the node with their overhead must fit.
func TestReserveChangesNodes(t *testing.T) {
	list := func(cpu, memory string) corev1.ResourceList {
		return corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse(memory)}
	}
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Status: corev1.NodeStatus{Capacity: list("4", "8Gi"), Allocatable: list("4", "7068Mi")}}
	n.Status.Capacity["hugepages-2Mi"] = resource.MustParse("1Gi")
	pod := func(node, cpu string) *resize.PodResources {
		p := resize.FromPod(&corev1.Pod{Spec: corev1.PodSpec{NodeName: node, Overhead: list("10m", "0"),
			Containers: []corev1.Container{{Name: "app", Resources: corev1.ResourceRequirements{Requests: list(cpu, "1Gi")}}}}})
		return p
	}
	var r resize.NodeReadings
	for _, of := range []struct {
		cgroup string
		value  float64
	}{{"", 0.5}, {"pods", 0.1}, {"kubelet", 0.1}, {"runtime", 0.1}} {
		r.Add("a", of.cgroup, resize.CPU, []resize.UsagePoint{{At: noon, Value: of.value}})
		r.Add("a", of.cgroup, resize.Memory, []resize.UsagePoint{{At: noon, Value: of.value * 1000 * mebibyte}})
	}
	u := resize.NewNodeUsage(n, []*resize.PodResources{pod("a", "1"), pod("a", "2500m"), pod("b", "4")}, &r)
	g := resize.Reserve([]resize.NodeUsage{u}, resize.Defaults(), 100*mebibyte)
	got := g.Nodes[0]
	text := fmt.Sprintf("now %v %v, after %v %v, requested %v %v, over %v", got.Now.Of(resize.CPU), got.Now.Of(resize.Memory), got.After.Of(resize.CPU), got.After.Of(resize.Memory),
		got.Requested.Of(resize.CPU), got.Requested.Of(resize.Memory), got.Over)
	// 230m and 240Mi for each value.
	if want := "now 0 100Mi, after 3540m 6588Mi, requested 3520m 2Gi, over []"; text != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
	u = resize.NewNodeUsage(n, []*resize.PodResources{pod("a", "3540m")}, &r)
	if got := resize.Reserve([]resize.NodeUsage{u}, resize.Defaults(), 100*mebibyte).Nodes[0].Over; !slices.Equal(got, []resize.Resource{resize.CPU}) {
		t.Errorf("3550m requested, 3540m allocatable: got %v, want cpu", got)
	}
	if got, want := g.KubeletConfiguration(), "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nkubeReserved:\n  cpu: 230m\n  memory: 240Mi\nsystemReserved:\n  cpu: 230m\n  memory: 240Mi\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Nodes of one type differ a little in memory, and share a group.
func TestGroupNodes(t *testing.T) {
	var nodes []resize.NodeUsage
	for name, size := range map[string][2]int64{"big": {8000, 16000}, "c": {4000, 8150}, "a": {4000, 8000}, "b": {4000, 8100}, "more": {4000, 8161}, "small": {2000, 8000}} {
		nodes = append(nodes, resize.NodeUsage{Name: name, Capacity: resize.Amounts{CPU: resize.Of(size[0]), Memory: resize.Of(size[1])}})
	}
	var got []string
	for _, g := range resize.GroupNodes(nodes) {
		var names []string
		for _, n := range g {
			names = append(names, n.Name)
		}
		got = append(got, strings.Join(names, " "))
	}
	if got, want := strings.Join(got, ", "), "small, a b c, more, big"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
