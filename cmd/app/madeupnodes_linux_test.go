package app

import (
	"fmt"
	"net/http/httptest"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestMadeUpNodes runs a weir in a cluster with 65,000 nodes that no machine has. Its memory, its log and its
// answers must stay small.
func TestMadeUpNodes(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes half a minute")
	}
	const madeUp, read, mostBytes, mostLines = 65_000, 10_000, 400 << 20, 250
	list := metav1.ListMeta{ResourceVersion: "1"}
	nodes := v1.NodeList{TypeMeta: metav1.TypeMeta{Kind: "NodeList", APIVersion: "v1"}, ListMeta: list}
	for i := range madeUp {
		nodes.Items = append(nodes.Items, v1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("made-up-%s%06d", strings.Repeat("x", 200), i)},
			Status: v1.NodeStatus{
				Addresses:       []v1.NodeAddress{{Type: v1.NodeInternalIP, Address: "127.0.0.1"}},
				DaemonEndpoints: v1.NodeDaemonEndpoints{KubeletEndpoint: v1.DaemonEndpoint{Port: 1}}, // nobody listens there
			},
		})
	}
	api := httptest.NewTLSServer(&apiServer{nodes: nodes, pods: v1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, ListMeta: list}})
	t.Cleanup(api.Close) // after weir has ended
	before := heapInUse()
	w := begin(t, "server", "--kubeconfig="+kubeconfig(t, api, "secret"), "--listen=127.0.0.1:0", "--secure-port=0", "--metric-resolution=10s")
	until(t, 2*time.Minute, "all nodes that are read fail", func() bool {
		_, metrics := w.get(t, "/metrics")
		return strings.Contains(metrics, fmt.Sprintf("weir_sources_failing{kind=\"kubelet:resource\"} %d\n", read))
	})
	if grown := heapInUse() - before; grown > mostBytes {
		t.Errorf("%d MiB are in use, want at most %d", grown>>20, mostBytes>>20)
	} else {
		t.Logf("%d MiB are in use, %d kB for each node that is read", grown>>20, grown>>10/read)
	}
	if lines := strings.Count(w.stderr.String(), "\n"); lines > mostLines || !strings.Contains(w.stderr.String(), "more nodes than --max-nodes") {
		t.Errorf("%d lines were logged, want at most %d, one about --max-nodes:\n%.4000s", lines, mostLines, &w.stderr)
	}
	_, metrics := w.get(t, "/metrics")
	if want := fmt.Sprintf("weir_nodes_left_out %d\n", madeUp-read); !strings.Contains(metrics, want) {
		t.Errorf("/metrics has %q, want %q", regexp.MustCompile(`weir_nodes_left_out .*`).FindString(metrics), want)
	}
	missing := w.explain(t, "missing")
	counts := map[string]int{}
	for i := range missing.Causes {
		counts[missing.Causes[i].Reason] += missing.Causes[i].Nodes
	}
	if len(missing.Causes) != 2 || counts["OverLimit"] != madeUp-read {
		t.Errorf("explain missing has %d causes with %v nodes, want 2, and OverLimit for %d", len(missing.Causes), counts, madeUp-read)
	}
}

// heapInUse returns the bytes of the heap that are in use.
func heapInUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
