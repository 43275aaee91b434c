package promusage

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weir-metrics/weir/internal/history"
	"github.com/weir-metrics/weir/resize"
	"github.com/weir-metrics/weir/test/promtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// began is the time of the first sample in the test's Prometheus. span is the time that the samples
// cover.
var began = time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC)

const span = 2 * time.Hour

// exposition writes the samples of a kubelet and of weir, one line for each minute and series. cart
// restarts after an hour, and for two minutes both its cgroups have samples. web has samples of
// weir only, and for its last ten minutes of both.
func exposition(w io.Writer) {
	type series struct {
		labels   string
		from, to int // from and to are minutes
		value    func(minute int) float64
	}
	metric := func(name, kind string, all ...series) {
		fmt.Fprintf(w, "# TYPE %s %s\n", name, kind)
		for _, s := range all {
			for minute := s.from; minute <= s.to; minute++ {
				fmt.Fprintf(w, "%s%s{%s} %g %d\n", name, map[string]string{"counter": "_total"}[kind], s.labels, s.value(minute), began.Add(time.Duration(minute)*time.Minute).Unix())
			}
		}
	}
	burn := func(cores float64, from int) func(int) float64 {
		return func(minute int) float64 { return cores * 60 * float64(minute-from) }
	}
	flat := func(v float64) func(int) float64 { return func(int) float64 { return v } }
	spike := func(minute int) float64 {
		if minute == 47 {
			return 300 << 20
		}
		return 100 << 20
	}
	const cart = `namespace="shop",pod="cart",container="app"`
	const web = `namespace="shop",pod="web",container="app"`
	metric("container_cpu_usage_seconds", "counter",
		series{cart + `,id="/old"`, 0, 62, burn(0.2, 0)},
		series{cart + `,id="/new"`, 60, 120, burn(0.2, 60)},
		series{web + `,id="/w"`, 110, 120, burn(7, 110)},
		series{`namespace="shop",pod="cart",container="POD",id="/p"`, 0, 120, burn(9, 0)},
		series{`namespace="shop",pod="cart",container="",id="/kubepods/pod"`, 0, 120, burn(9, 0)},
		series{`namespace="bank",pod="vault",container="app",id="/v"`, 0, 120, burn(0.5, 0)})
	metric("container_memory_working_set_bytes", "gauge",
		series{cart + `,id="/old"`, 0, 62, spike},
		series{cart + `,id="/new"`, 60, 120, flat(80 << 20)})
	metric("weir_container_cpu_usage_cores", "gauge", series{web, 0, 120, flat(0.1)})
	metric("weir_container_memory_working_set_bytes", "gauge", series{web, 0, 120, flat(50 << 20)},
		series{`namespace="shop",pod="web",container="log"`, 0, 120, flat(30 << 20)})
	metric("weir_container_cpu_request_cores", "gauge", series{web, 0, 120, flat(0.25)}, series{`namespace="shop",pod="gone",container="app"`, 0, 120, flat(1)})
	metric("kube_pod_container_resource_requests", "gauge", series{cart + `,resource="cpu",unit="core"`, 0, 120, flat(0.5)},
		series{web + `,resource="cpu",unit="core"`, 0, 120, flat(7)}, series{cart + `,resource="memory",unit="byte"`, 0, 120, flat(200 << 20)})
	const nodeCPU, nodeMemory, systemCPU, systemMemory = "weir_node_cpu_usage_cores", "weir_node_memory_working_set_bytes", "weir_system_cpu_usage_cores", "weir_system_memory_working_set_bytes"
	metric(nodeCPU, "gauge", series{`node="n.1"`, 0, 120, flat(2)}, series{`node="nx1"`, 0, 120, flat(3)})
	metric(nodeMemory, "gauge", series{`node="n.1"`, 0, 120, flat(900)}, series{`node="nx1"`, 0, 120, flat(901)})
	metric(systemCPU, "gauge", series{`node="n.1",cgroup="/system.slice/kubelet.service"`, 0, 120, flat(0.1)}, series{`node="n.1",cgroup="/system.slice/cron.service"`, 0, 120, flat(0.7)})
	metric(systemMemory, "gauge", series{`node="n.1",cgroup="/system.slice/kubelet.service"`, 0, 120, flat(70)}, series{`node="n.1",cgroup="pods"`, 0, 120, flat(500)},
		series{`node="n.1",cgroup="/kubepods.slice"`, 0, 120, flat(501)}, series{`node="nx1",cgroup="pods"`, 0, 120, flat(502)})
	fmt.Fprintln(w, "# EOF")
}

// start fills a real Prometheus with the exposition and returns a client.
func start(t *testing.T) *history.Client {
	t.Helper()
	return promtest.Filled(t, exposition, "container_memory_working_set_bytes", began, 1)
}

func TestRead(t *testing.T) {
	h := start(t)
	used, err := Read(t.Context(), h, Request{Namespace: "shop", From: began.Add(10 * time.Minute), To: began.Add(span)})
	if err != nil {
		t.Fatal(err)
	}
	f := func(pod, container string, r resize.Resource, readings int, least, most float64) {
		t.Helper()
		points := used.Points("shop", pod, container, r)
		if len(points) != readings {
			t.Errorf("%s of %s: got %d readings, want %d", r, pod, len(points), readings)
		}
		for i, p := range points {
			if p.Value < least*0.999 || p.Value > most*1.001 {
				t.Errorf("%s of %s at %v: got %v, want %v to %v", r, pod, p.At, p.Value, least, most)
			}
			if i > 0 && !p.At.After(points[i-1].At) {
				t.Errorf("%s of %s: readings are out of order at %v", r, pod, p.At)
			}
		}
	}
	// The time around the restart does not count twice. Prometheus' rate is slightly low just after
	// it.
	f("cart", "app", resize.CPU, 111, 0.15, 0.2)
	f("cart", "app", resize.Memory, 111, 80<<20, 300<<20)
	// If weir has samples of a container, other samples are ignored.
	f("web", "app", resize.CPU, 111, 0.1, 0.1)
	f("web", "app", resize.Memory, 111, 50<<20, 50<<20)
	// Sandboxes have no usage, and neither has a container that was not requested.
	f("cart", "POD", resize.CPU, 0, 0, 0)
	// A pod's usage is that of its containers together, at each time.
	f("cart", "", resize.CPU, 111, 0.15, 0.2)
	f("web", "", resize.Memory, 111, 80<<20, 80<<20)
	if points := used.Points("bank", "vault", "app", resize.CPU); points != nil {
		t.Errorf("got %d readings of another namespace", len(points))
	}
	highest := 0.0
	for _, p := range used.Points("shop", "cart", "app", resize.Memory) {
		highest = max(highest, p.Value)
	}
	if highest != 300<<20 {
		t.Errorf("the one high reading of memory was lost: got %v", highest)
	}

	// Pod is set and Namespace is empty, so all namespaces are read.
	used, err = Read(t.Context(), h, Request{Pod: "vault", From: began.Add(10 * time.Minute), To: began.Add(span)})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(used.Points("bank", "vault", "app", resize.CPU)); n != 111 {
		t.Errorf("got %d readings of vault, want 111", n)
	}
}

// A trace has what each container used and requested. Weir's own requests are better than those of
// kube-state-metrics, and a container that used nothing is not in it.
func TestEntities(t *testing.T) {
	h := start(t)
	r := Request{Namespace: "shop", From: began.Add(10 * time.Minute), To: began.Add(span)}
	used, err := Read(t.Context(), h, r)
	if err != nil {
		t.Fatal(err)
	}
	requests, err := ReadRequests(t.Context(), h, r)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range used.Entities(requests) {
		for _, name := range slices.Sorted(maps.Keys(e.Metrics)) {
			series := e.Metrics[name]
			got = append(got, fmt.Sprintf("%s %s: %d, the last is %.4g", e.Name, name, len(series), series[len(series)-1].Value))
		}
	}
	want := []string{
		"shop/cart/app cpu: 111, the last is 0.2", "shop/cart/app cpu_request: 111, the last is 0.5",
		"shop/cart/app memory: 111, the last is 8.389e+07", "shop/cart/app memory_request: 111, the last is 2.097e+08",
		"shop/web/app cpu: 111, the last is 0.1", "shop/web/app cpu_request: 111, the last is 0.25",
		"shop/web/app memory: 111, the last is 5.243e+07", "shop/web/log memory: 111, the last is 3.146e+07",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// The parts of nodes are found by the names of their cgroups. A dot in a node's name is a dot.
func TestReadNodes(t *testing.T) {
	h := start(t)
	got := func(names ...string) (lines []string) {
		readings, err := ReadNodes(t.Context(), h, names, began.Add(10*time.Minute), began.Add(span))
		if err != nil {
			t.Fatal(err)
		}
		for _, node := range []string{"n.1", "nx1"} {
			for _, part := range []resize.NodePart{resize.WholeNode, resize.PodsPart, resize.KubeletPart, resize.RuntimePart} {
				for _, r := range resize.Resources() {
					if points := readings.Of(node)(part, r); len(points) > 0 {
						lines = append(lines, fmt.Sprintf("%s %s %s %d of %.4g", node, part, r, len(points), points[0].Value))
					}
				}
			}
		}
		return lines
	}
	one := []string{"n.1 node cpu 111 of 2", "n.1 node memory 111 of 900", "n.1 pods memory 111 of 500", "n.1 kubelet cpu 111 of 0.1", "n.1 kubelet memory 111 of 70"}
	if got := got("n.1"); !slices.Equal(got, one) {
		t.Errorf("n.1:\n got %q\nwant %q", got, one)
	}
	if got, want := got(), append(slices.Clone(one), "nx1 node cpu 111 of 3", "nx1 node memory 111 of 901", "nx1 pods memory 111 of 502"); !slices.Equal(got, want) {
		t.Errorf("all:\n got %q\nwant %q", got, want)
	}
}

// TestStep checks that a week is read in about two thousand steps, and that no step misses the
// highest reading.
func TestStep(t *testing.T) {
	for span, want := range map[time.Duration]time.Duration{
		time.Hour: time.Minute, 24 * time.Hour: time.Minute, 7 * 24 * time.Hour: 5 * time.Minute, 30 * 24 * time.Hour: 21 * time.Minute,
	} {
		if got := stepFor(span); got != want {
			t.Errorf("%v: got %v, want %v", span, got, want)
		}
		r := Request{}
		if got, want := r.queries(resize.Memory, stepFor(span))[1], fmt.Sprintf("max by (namespace, pod, container) (max_over_time(container_memory_working_set_bytes{container!=\"\",container!=\"POD\"}[%ds]))", int(want.Seconds())); got != want {
			t.Errorf("got %s\nwant %s", got, want)
		}
	}
}
