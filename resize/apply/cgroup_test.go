package apply

import (
	"slices"
	"strings"
	"testing"

	"github.com/weir-metrics/weir/resize"
)

// TestCheckCgroups checks that only values that the node reports are compared.
func TestCheckCgroups(t *testing.T) {
	pod := &resize.PodResources{Containers: []resize.ContainerResources{{Name: "app", Running: true,
		Requests: resize.Amounts{CPU: resize.Of(100), Memory: resize.Of(64 << 20)}, Limits: resize.Amounts{Memory: resize.Of(128 << 20), CPU: resize.Of(5)}}}}
	number := func(n int64) *int64 { return &n }
	own := Cgroup{Path: "/pod", Pod: true}
	f := func(r resize.Resource, checked bool, reason string, found ...Cgroup) {
		t.Helper()
		c := checkCgroups(found, pod, []resize.ResourceChange{{Container: "app", Resource: r, Request: resize.Of(1)}})
		if c.Checked != checked || strings.Join(c.Problems, "; ")+c.UncheckedReason != reason {
			t.Errorf("got %+v, want checked %v: %s", c, checked, reason)
		}
	}
	f(resize.CPU, false, "the node's agent knows no cgroup of this pod")
	f(resize.CPU, false, "the node's agent does not know which cgroup is that of container app", own)
	f(resize.Memory, false, "none of the cgroup values that the agent reports shows this change", own, Cgroup{Container: "app", Weight: number(4)})
	f(resize.CPU, true, "", own, Cgroup{Container: "app", Weight: number(4)})
	f(resize.CPU, true, "", own, Cgroup{Container: "app", Weight: number(17)})
	f(resize.CPU, true, "cpu.weight of /app is 5, and should be 4 or 17", own, Cgroup{Path: "/app", Container: "app", Weight: number(5)})
	f(resize.CPU, true, "", own, Cgroup{Container: "app", Shares: number(102)})
	// Limits below 10m give the same quota as 10m.
	f(resize.CPU, true, "", own, Cgroup{Container: "app", Quota: number(1000), Period: number(100_000)})
	// A kubelet with cpuCFSQuota: false sets none.
	f(resize.CPU, true, "", own, Cgroup{Container: "app", Weight: number(4), Quota: number(-1), Period: number(100_000)})
	f(resize.CPU, true, "the CPU quota of /app is 2000, and should be 1000", own, Cgroup{Path: "/app", Container: "app", Quota: number(2000), Period: number(100_000)})
	f(resize.CPU, true, "cpu.shares of /app is 512, and should be 102", own, Cgroup{Path: "/app", Container: "app", Shares: number(512)})
	f(resize.Memory, true, "", own, Cgroup{Container: "app", MemoryLimit: number(128 << 20), Shares: number(7)})
	f(resize.Memory, true, "the memory limit of /app is -1, and should be 134217728", own, Cgroup{Path: "/app", Container: "app", MemoryLimit: number(-1)})
	pod.Containers[0].Limits.Memory = resize.Of(500_000_000)
	for _, n := range []int64{500_000_000, 499_998_720, 499_990_528, 499_974_144} { // as it is, and in pages of 4, 16 and 64 KiB
		f(resize.Memory, true, "", own, Cgroup{Container: "app", MemoryLimit: number(n)})
	}
	f(resize.Memory, true, "the memory limit of /app is 499994624, and should be 500000000, 499998720, 499990528 or 499974144", own, Cgroup{Path: "/app", Container: "app", MemoryLimit: number(499_994_624)})
	pod.Containers[0].Running = false
	f(resize.CPU, false, "container app does not run", own)
}

// Both formulas have the same ends, and both give what their runtimes documented for 1 CPU.
func TestWeights(t *testing.T) {
	for shares, want := range map[int64][]int64{2: {1, 1}, 1024: {39, 100}, 262144: {10_000, 10_000}, 1 << 30: {10_000, 10_000}} {
		if got := weights(shares); !slices.Equal(got, want) {
			t.Errorf("weights of %d shares: got %v, want %v", shares, got, want)
		}
	}
}
