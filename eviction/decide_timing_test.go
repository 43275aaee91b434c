package eviction

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// crowded returns a node with n pods of two containers. The node is low on nothing.
func crowded(tb testing.TB, n int) *Input {
	tb.Helper()
	thresholds, err := Parse(&ThresholdConfig{
		EvictionHard:           map[string]string{"memory.available": "100Mi", "nodefs.available": "10%", "nodefs.inodesFree": "5%", "imagefs.available": "15%", "imagefs.inodesFree": "5%", "pid.available": "10%"},
		EnforceNodeAllocatable: []string{"pods"},
		Pressure:               []string{"memory.pressure.some.avg10>20"},
	})
	if err != nil {
		tb.Fatal(err)
	}
	in := &Input{
		Now:      t0,
		Settings: &Settings{Thresholds: thresholds, TransitionPeriod: 5 * time.Minute, LocalLimits: true},
		State:    DecisionState{LayoutKnown: true},
		Summary:  &stats.Summary{},
	}
	const gi = uint64(1 << 30)
	memory := &stats.MemoryStats{Time: metav1.NewTime(t0), AvailableBytes: new(32 * gi), WorkingSetBytes: new(32 * gi), UsageBytes: new(40 * gi)}
	fs := &stats.FsStats{Time: metav1.NewTime(t0), AvailableBytes: new(50 * gi), CapacityBytes: new(100 * gi), InodesFree: new(gi), Inodes: new(2 * gi)}
	in.Summary.Node = stats.NodeStats{
		Memory: memory, SystemContainers: []stats.ContainerStats{{Name: "pods", Memory: memory}},
		Fs: fs, Runtime: &stats.RuntimeStats{ImageFs: fs, ContainerFs: fs}, Rlimit: &stats.RlimitStats{Time: metav1.NewTime(t0), MaxPID: new(int64(32768)), NumOfRunningProcesses: new(int64(900))},
	}
	for i := range n {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("web-%03d", i), UID: types.UID(fmt.Sprintf("5f1a7a0e-0000-4000-8000-%012d", i))}}
		pod.Spec.Priority = new(int32(i % 3))
		podStats := stats.PodStats{PodRef: stats.PodReference(refOf(pod)), Memory: &stats.MemoryStats{Time: metav1.NewTime(t0), WorkingSetBytes: new(uint64(i%37) << 22)}, ProcessStats: &stats.ProcessStats{ProcessCount: new(uint64(i))}}
		for _, name := range [...]string{"app", "proxy"} {
			c := corev1.Container{Name: name}
			c.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("32Mi"), corev1.ResourceEphemeralStorage: resource.MustParse("1Gi")}
			c.Resources.Limits = c.Resources.Requests
			pod.Spec.Containers = append(pod.Spec.Containers, c)
			used := &stats.FsStats{Time: metav1.NewTime(t0), UsedBytes: new(uint64(i) << 20), InodesUsed: new(uint64(i))}
			podStats.Containers = append(podStats.Containers, stats.ContainerStats{Name: name, Memory: podStats.Memory, Rootfs: used, Logs: used})
		}
		in.Pods, in.Summary.Pods = append(in.Pods, pod), append(in.Summary.Pods, podStats)
	}
	return in
}

// BenchmarkDecide decides about a node of 110 pods, the kubelet's default maximum: without
// pressure, and low on memory or disk, so that the pods are ranked.
func BenchmarkDecide(b *testing.B) {
	for _, c := range []struct {
		name string
		low  func(*stats.NodeStats)
	}{
		{"calm", func(*stats.NodeStats) {}},
		{"memory", func(n *stats.NodeStats) { n.Memory.AvailableBytes = new(uint64(1 << 20)) }},
		{"disk", func(n *stats.NodeStats) { n.Fs.AvailableBytes = new(uint64(1 << 20)) }},
	} {
		b.Run(c.name+"/pods=110", func(b *testing.B) {
			in := crowded(b, 110)
			c.low(&in.Summary.Node)
			ranked := 0
			b.ReportAllocs()
			for b.Loop() {
				ranked = len(Decide(in).Ranking)
			}
			if want := map[string]int{"calm": 0, "memory": 110, "disk": 110}[c.name]; ranked != want {
				b.Fatalf("ranked %d pods, want %d", ranked, want)
			}
		})
	}
}
