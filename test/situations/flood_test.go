package situations

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-metrics/weir/cluster/informer"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sinks/memory"
	"github.com/weir-metrics/weir/sources/kubelet"
)

// TestAFloodOfNames reads twenty nodes that answer well, and one that makes up other names in every
// round. The memory that is in use must not grow with what the bad node sends, and the others keep
// their numbers.
func TestAFloodOfNames(t *testing.T) {
	const good, pods, rounds, mostHeap = 20, 10, 20, 48 << 20
	// name returns a made-up name of that length.
	name := func(round, i, length int) string {
		return fmt.Sprintf("%s%d-%d", strings.Repeat("x", length-16), round, i)
	}
	const longLabel, longName = 63, 253
	floods := []struct {
		name      string
		size      int // bytes of an answer
		label, of int // lengths of names
		says      string
	}{
		{"55 MB", 55 << 20, longLabel, longName, "larger than max-bytes"},
		{"as much as is read", 2<<20 + pods*64<<10 - 1024, longLabel, longName, "All 10 pods on it that should have metrics have them"},
		{"names of 10 kB", 2 << 20, 10_000, 10_000, "names on it were refused"},
	}
	for _, flood := range floods {
		t.Run(flood.name, func(t *testing.T) {
			round, at := 0, int64(0) // at is the time of the round in ms
			answer := func(w io.Writer, node string) {
				fmt.Fprintf(w, "node_cpu_usage_seconds_total %d.5 %d\n", 100+round, at)
				fmt.Fprintf(w, "node_memory_working_set_bytes 1000000 %d\n", at)
				var cpu, memory bytes.Buffer
				for i := range pods {
					labels := fmt.Sprintf(`{container="app",namespace="default",pod="%s-%d"}`, node, i)
					fmt.Fprintf(&cpu, "container_cpu_usage_seconds_total%s %d.25 %d\n", labels, 10+round, at)
					fmt.Fprintf(&memory, "container_memory_working_set_bytes%s 5000 %d\n", labels, at)
				}
				w.Write(cpu.Bytes())
				if node == "bad" {
					for i, sent := 0, 0; sent < flood.size-4096; i++ {
						n, err := fmt.Fprintf(w, "container_cpu_usage_seconds_total{container=%q,namespace=%q,pod=%q} 1.5 %d\n",
							name(round, i, flood.label), name(round, i/100, flood.label), name(round, i, flood.of), at)
						if err != nil {
							return // weir has closed the connection
						}
						sent += n
					}
				}
				w.Write(memory.Bytes())
			}
			var nodes corev1.NodeList
			var bound corev1.PodList
			for i := range good + 1 {
				node := fmt.Sprintf("good-%d", i)
				if i == good {
					node = "bad"
				}
				server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					w.Header()["Date"] = nil // it would be the real time
					answer(w, node)
				}))
				defer server.Close()
				port := server.Listener.Addr().(*net.TCPAddr).Port
				nodes.Items = append(nodes.Items, corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}, Status: corev1.NodeStatus{
					Addresses:       []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "127.0.0.1"}},
					DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: int32(port)}},
				}})
				for i := range pods {
					bound.Items = append(bound.Items, corev1.Pod{
						ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("%s-%d", node, i), UID: "u"},
						Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "app"}}},
						Status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{
							{Name: "app", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}},
					})
				}
			}
			began := time.Now().Truncate(time.Second)
			scraper, err := kubelet.New(kubelet.Options{Scheme: "http"})
			if err != nil {
				t.Fatal(err)
			}
			defer scraper.Close()
			g := &stage{t: t, s: &situation{noSecondRead: true}, sources: map[metric.NodeName]*source{}, sink: memory.New(memory.Options{}), scraper: scraper}
			heap := func() uint64 {
				runtime.GC()
				runtime.GC()
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				return m.HeapAlloc
			}
			before := heap()
			for ; round < rounds; round++ {
				g.now = began.Add(time.Duration(round) * interval)
				at = g.now.UnixMilli()
				g.facts = informer.FactsFromList(&nodes, &bound, g.now)
				g.round()
			}
			if used := heap() - min(before, heap()); used > mostHeap {
				t.Errorf("%d MiB are in use after %d rounds, want at most %d", used>>20, rounds, mostHeap>>20)
			} else {
				t.Logf("%d MiB are in use", used>>20)
			}
			w := g.explainer()
			for i := range good {
				for j := range pods {
					ref := metric.PodRef{Namespace: "default", Name: metric.PodName(fmt.Sprintf("good-%d-%d", i, j))}
					if e, _ := w.Pod(ref); !strings.Contains(e.Summary, "uses CPU") {
						t.Fatalf("%v: %s", ref, e.Summary)
					}
				}
			}
			if bad, _ := w.Node("bad"); !strings.Contains(bad.Summary, flood.says) {
				t.Errorf("of the bad node: %s, want %q", bad.Summary, flood.says)
			}
		})
	}
}
