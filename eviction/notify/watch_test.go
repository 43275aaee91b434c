package notify

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/weir-metrics/weir/eviction"
)

// TestWatchesOfThresholds checks the figures at which thresholds are crossed. That of memory leaves out huge
// pages, as the threshold does.
func TestWatchesOfThresholds(t *testing.T) {
	amount := func(mib uint64) *uint64 { return new(mib << 20) }
	limit := eviction.ThresholdValue{Quantity: resource.NewQuantity(100<<20, resource.BinarySI)}
	d := eviction.Decide(&eviction.Input{
		Settings: &eviction.Settings{Thresholds: []eviction.Threshold{
			{Signal: eviction.MemoryAvailable, Value: limit, Grace: time.Minute}, {Signal: eviction.AllocatableMemoryAvailable, Value: limit},
		}},
		Summary: &stats.Summary{Node: stats.NodeStats{
			Memory: &stats.MemoryStats{WorkingSetBytes: amount(600), AvailableBytes: amount(400)},
			SystemContainers: []stats.ContainerStats{{Name: "pods", Memory: &stats.MemoryStats{
				WorkingSetBytes: amount(280), AvailableBytes: amount(520),
			}}},
		}},
		MemoryLeft: &eviction.MemoryLeft{HugePages: 50 << 20},
	})
	want := map[eviction.Signal]Watch{
		eviction.MemoryAvailable:            MemoryPoll{eviction.MemoryAvailable, "memory.available<100Mi for 1m0s", "/proc/meminfo", 850 << 20},
		eviction.AllocatableMemoryAvailable: MemoryPoll{eviction.AllocatableMemoryAvailable, "allocatableMemory.available<100Mi", "/memory/kubepods", 700 << 20},
	}
	if len(d.Thresholds) != len(want) {
		t.Fatalf("%d thresholds, want %d", len(d.Thresholds), len(want))
	}
	for i := range d.Thresholds {
		s := &d.Thresholds[i]
		if got := NewMemoryPoll(s, "/memory/kubepods"); got != want[s.Threshold.Signal] {
			t.Errorf("got %+v, want %+v", got, want[s.Threshold.Signal])
		}
	}
	pressure, err := eviction.ParsePressure("memory.pressure.full.avg60>5 for 30s")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := NewStallTrigger(&pressure), (StallTrigger{"/proc/pressure/memory", true, 100 * time.Millisecond, 2 * time.Second}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
