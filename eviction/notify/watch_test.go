package notify

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/weir-metrics/weir/eviction"
)

func TestOf(t *testing.T) {
	amount := func(n uint64) *uint64 { return &n }
	mib := func(n int64) eviction.ThresholdValue {
		return eviction.ThresholdValue{Quantity: resource.NewQuantity(n<<20, resource.BinarySI)}
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
			MemoryPoll{eviction.MemoryAvailable, "memory.available<100Mi for 1m0s", "/proc/meminfo", 900 << 20},
		},
		{
			eviction.Threshold{Signal: eviction.AllocatableMemoryAvailable, Value: mib(100)},
			MemoryPoll{eviction.AllocatableMemoryAvailable, "allocatableMemory.available<100Mi", "/memory/kubepods", 700 << 20},
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
