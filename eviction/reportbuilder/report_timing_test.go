package reportbuilder

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/weir-metrics/weir/eviction"
	"github.com/weir-metrics/weir/eviction/guard"
)

// BenchmarkOf makes the report of a node with 110 pods and the kubelet's default thresholds.
func BenchmarkOf(b *testing.B) {
	thresholds, err := eviction.Parse(&eviction.ThresholdConfig{EvictionHard: map[string]string{
		"memory.available": "100Mi", "nodefs.available": "10%", "nodefs.inodesFree": "5%", "imagefs.available": "15%", "imagefs.inodesFree": "5%"}})
	if err != nil {
		b.Fatal(err)
	}
	number := func(n uint64) *uint64 { return &n }
	fs := &stats.FsStats{AvailableBytes: number(5e10), CapacityBytes: number(1e11), InodesFree: number(5e6), Inodes: number(1e7)}
	in := &eviction.Input{Now: noon, Settings: &eviction.Settings{Thresholds: thresholds}, Summary: &stats.Summary{Node: stats.NodeStats{
		Memory: &stats.MemoryStats{AvailableBytes: number(4e9), WorkingSetBytes: number(4e9)},
		Fs:     fs, Runtime: &stats.RuntimeStats{ImageFs: fs, ContainerFs: fs},
	}}}
	for i := range 110 {
		pod := &corev1.Pod{}
		pod.Namespace, pod.Name = "shop", fmt.Sprintf("web-%03d", i)
		pod.UID = types.UID(pod.Name)
		in.Pods = append(in.Pods, pod)
		in.Summary.Pods = append(in.Summary.Pods, stats.PodStats{
			PodRef: stats.PodReference{Namespace: "shop", Name: pod.Name, UID: pod.Name}, Memory: &stats.MemoryStats{WorkingSetBytes: number(uint64(i) << 20)},
			Containers: []stats.ContainerStats{{Name: "app", Rootfs: &stats.FsStats{UsedBytes: number(1e6), InodesUsed: number(10)}}},
		})
	}
	round := &guard.Round{Input: in, Decision: eviction.Decide(in)}
	for b.Loop() {
		New(round, nil, Options{Node: "n1", Mode: "observe", Now: noon})
	}
}
