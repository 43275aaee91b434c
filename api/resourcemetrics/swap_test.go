package resourcemetrics_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/test/cmptest"
)

// TestSwap asks for swap as kubectl top --show-swap does. It is served of nodes with swap space: the
// API server reports it (n1), or something uses it (n2). Kubelets report 0 also of nodes without
// (n3); that is not served, and neither is a swap that the kubelet does not report.
func TestSwap(t *testing.T) {
	w := newFixture()
	nodes, pods := []*cluster.Node{}, []*cluster.Pod{}
	for _, name := range []metric.NodeName{"n1", "n2", "n3"} {
		nodes = append(nodes, &cluster.Node{Name: name, Ready: true, Swap: name == "n1"})
		pods = append(pods, running("shop", "on-"+string(name), name, "web", "idle", "swaps", "unread"))
	}
	w.know(nodes, pods)
	for i, name := range []metric.NodeName{"n1", "n2", "n3"} {
		b := batch(name)
		used := 0.0
		if name != "n3" {
			used = 3 << 20
		}
		add := func(e metric.Entity) *metric.Sample { return measured(b, e, time.Second, 15*time.Second, 1e6, 1<<20) }
		add(nodeEntity(name)).Values.Set(metric.MemorySwap, used)
		add(container(pods[i], "idle")).Values.Set(metric.MemorySwap, 0)
		add(container(pods[i], "swaps")).Values.Set(metric.MemorySwap, used)
		add(container(pods[i], "unread"))
		w.write(t, b)
	}
	want := map[string]string{
		"n1": "3Mi", "n2": "3Mi", "n3": "-",
		"on-n1/idle": "0", "on-n1/swaps": "3Mi", "on-n1/unread": "-",
		"on-n2/idle": "0", "on-n2/swaps": "3Mi", "on-n2/unread": "-",
		"on-n3/idle": "-", "on-n3/swaps": "-", "on-n3/unread": "-",
	}
	config := serve(t, w.options())
	for _, contentType := range []string{"", "application/vnd.kubernetes.protobuf", "application/cbor"} {
		c, _ := client(t, config, contentType)
		got := map[string]string{}
		text := func(usage corev1.ResourceList) string {
			if q, ok := usage["swap"]; ok {
				return q.String()
			}
			return "-"
		}
		ofNodes, err := c.MetricsV1().NodeMetricses().List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatalf("list nodes as %q: %v", contentType, err)
		}
		for _, n := range ofNodes.Items {
			got[n.Name] = text(n.Usage)
		}
		ofPods, err := c.MetricsV1().PodMetricses("").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatalf("list pods as %q: %v", contentType, err)
		}
		one, err := c.MetricsV1().PodMetricses("shop").Get(t.Context(), "on-n1", metav1.GetOptions{})
		if err != nil {
			t.Fatalf("get a pod as %q: %v", contentType, err)
		}
		for _, p := range ofPods.Items {
			for _, container := range p.Containers {
				got[p.Name+"/"+container.Name] = text(container.Usage)
			}
		}
		cmptest.Equal(t, fmt.Sprintf("swap as %q", contentType), want, got)
		if diff := cmp.Diff(ofPods.Items[0].Containers, one.Containers); one.Name != ofPods.Items[0].Name || diff != "" {
			t.Errorf("GET and LIST of %s as %q differ (-list +get):\n%s", one.Name, contentType, diff)
		}
	}
}
