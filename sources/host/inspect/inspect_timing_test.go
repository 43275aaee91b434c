package inspect

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/test/transcript"
)

// BenchmarkInspect reads and judges a node of 110 pods with three containers each in hybrid
// hierarchies. This is the cost of one scrape of the metrics.
func BenchmarkInspect(b *testing.B) {
	f := newFixture(b, "hybrid")
	pods := &Pods{From: "the API server", At: transcript.Epoch}
	for n := range 110 {
		uid := fmt.Sprintf("%08d-0000-4000-8000-%012d", n, n)
		pods.List = append(pods.List, &cluster.Pod{UID: metric.PodUID(uid), QoS: "Burstable", Phase: cluster.Running})
		for k := range 3 {
			pid := fmt.Sprint(1000 + 3*n + k)
			f.process(pid, "app", "S", 0)
			f.cgroup(fmt.Sprintf("/kubepods/burstable/pod%s/%s", uid, strings.Repeat(fmt.Sprint(k), 64)), "all", "pids="+pid)
		}
	}
	i := f.inspector("/")
	b.ReportAllocs()
	for b.Loop() {
		tree, err := i.Read()
		if err != nil {
			b.Fatal(err)
		}
		if r := Judge(tree, pods, transcript.Epoch); r.Count(Live) != 110 {
			b.Fatalf("%d of 110 pods live", r.Count(Live))
		}
	}
}
