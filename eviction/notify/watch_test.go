package notify

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/weir-metrics/weir/eviction"
)

func TestOf(t *testing.T) {
	amount := func(n uint64) *uint64 { return &n }
	mib := func(n int64) eviction.Value {
		return eviction.Value{Quantity: resource.NewQuantity(n<<20, resource.BinarySI)}
	}
	s := &stats.Summary{Node: stats.NodeStats{
		Memory: &stats.MemoryStats{UsageBytes: amount(700 << 20), WorkingSetBytes: amount(600 << 20), AvailableBytes: amount(400 << 20)},
		SystemContainers: []stats.ContainerStats{{Name: "pods", Memory: &stats.MemoryStats{
			UsageBytes: amount(300 << 20), WorkingSetBytes: amount(280 << 20), AvailableBytes: amount(520 << 20),
		}}},
	}}
	at := eviction.Cgroups{Mount: "/memory", Pods: "/kubepods"}
	pressure, err := eviction.ParsePressure("memory.pressure.full.avg60>5 for 30s")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		threshold eviction.Threshold
		want      Watch
	}{
		{
			eviction.Threshold{Signal: eviction.MemoryAvailable, Value: mib(100), Grace: time.Minute},
			UsageThreshold{"memory.available<100Mi for 1m0s", eviction.CgroupThreshold{Path: "/memory", Attribute: "memory.usage_in_bytes", Bytes: 1000 << 20, WorkingSet: 900 << 20}},
		},
		{
			eviction.Threshold{Signal: eviction.AllocatableMemoryAvailable, Value: mib(100)},
			UsageThreshold{"allocatableMemory.available<100Mi", eviction.CgroupThreshold{Path: "/memory/kubepods", Attribute: "memory.usage_in_bytes", Bytes: 720 << 20, WorkingSet: 700 << 20}},
		},
		{pressure, StallTrigger{"/proc/pressure/memory", true, 100 * time.Millisecond, 2 * time.Second}},
	} {
		got, err := WatchFor(&c.threshold, s, at)
		if d := cmp.Diff(c.want, got); d != "" || err != nil {
			t.Errorf("%s: %v, -want +got:\n%s", c.threshold, err, d)
		}
	}
	if _, err := WatchFor(&eviction.Threshold{Signal: eviction.PIDAvailable, Value: mib(1)}, s, at); err == nil {
		t.Error("pid.available: no error")
	}
}

func TestWatchesThatAreWrong(t *testing.T) {
	n, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	f := func(w Watch, want string) {
		t.Helper()
		err := n.Update(w)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got %v, want %q in it", w, err, want)
		}
	}
	f(StallTrigger{Path: "p", Stall: time.Second, Window: 400 * time.Millisecond}, "the window is 400ms; the kernel takes 500ms to 10s")
	f(StallTrigger{Path: "p", Stall: time.Second, Window: 11 * time.Second}, "the window is 11s")
	f(StallTrigger{Path: "p", Stall: 3 * time.Second, Window: 2 * time.Second}, "the stall is 3s; it must be above nothing and at most the window, 2s")
	f(StallTrigger{Path: "p", Window: 2 * time.Second}, "the stall is 0s")
	f(UsageThreshold{CgroupThreshold: eviction.CgroupThreshold{Path: "p", Attribute: "a", Bytes: -5}}, "no usage can cross -5 bytes")
	f(UsageThreshold{CgroupThreshold: eviction.CgroupThreshold{Path: "p", Attribute: "../a", Bytes: 5}}, `"../a" is no file of a cgroup`)
	f(UsageThreshold{}, "name the cgroup's directory")
	f(EventCounters{}, "name the file of counters")
	e := EventCounters{Path: "none"}
	if err := n.Update(e, e); err == nil || !strings.Contains(err.Error(), "it is named twice") {
		t.Errorf("named twice: %v", err)
	}
}
