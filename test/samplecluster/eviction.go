package samplecluster

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/weir-metrics/weir/eviction"
	"github.com/weir-metrics/weir/eviction/evictionreport"
	"github.com/weir-metrics/weir/eviction/execute"
	"github.com/weir-metrics/weir/eviction/guard"
	"github.com/weir-metrics/weir/eviction/notify"
	"github.com/weir-metrics/weir/eviction/reportbuilder"
)

// UnderPressure returns the report of an agent on a node that is out of memory.
// One pod was evicted before, and another is protected by its budget.
func UnderPressure(t testing.TB, node string) *evictionreport.EvictionReport {
	thresholds, err := eviction.Parse(&eviction.ThresholdConfig{
		EvictionHard:            map[string]string{"memory.available": "100Mi", "nodefs.available": "10%", "imagefs.available": "15%"},
		EvictionSoft:            map[string]string{"memory.available": "500Mi"},
		EvictionSoftGracePeriod: map[string]string{"memory.available": "1m30s"},
		Pressure:                []string{"memory.pressure.some.avg10>20"},
	})
	if err != nil {
		t.Fatal(err)
	}
	now := Noon.Add(-2 * time.Second)
	amount := func(n uint64) *uint64 { return &n }
	in := &eviction.Input{
		Now: now, Settings: &eviction.Settings{Thresholds: thresholds, TransitionPeriod: 5 * time.Minute},
		Summary: &stats.Summary{Node: stats.NodeStats{
			Memory: &stats.MemoryStats{Time: metav1.NewTime(now), AvailableBytes: amount(93 << 20), WorkingSetBytes: amount(16<<30 - 93<<20), PSI: &stats.PSIStats{Some: stats.PSIData{Avg10: 12.5}}},
			Fs:     &stats.FsStats{Time: metav1.NewTime(now), AvailableBytes: amount(14 << 30), CapacityBytes: amount(100 << 30)},
		}},
		Blocked: map[types.UID]eviction.BlockedPod{"web-1": {Reason: "PodDisruptionBudget shop/web does not allow it", Hard: true}},
	}
	for _, p := range []struct {
		name   string
		mi     uint64
		static bool
	}{{"etcd", 2048, true}, {"web-1", 1900, false}, {"web-2", 300, false}, {`<i>"mailer"`, 80, false}} {
		pod := &corev1.Pod{}
		pod.Namespace, pod.Name, pod.UID = "shop", p.name, types.UID(p.name)
		if p.static {
			pod.Annotations = map[string]string{"kubernetes.io/config.source": "file"}
		}
		pod.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("100Mi")}}}}
		in.Pods = append(in.Pods, pod)
		in.Summary.Pods = append(in.Summary.Pods, stats.PodStats{
			PodRef: stats.PodReference{Namespace: "shop", Name: p.name, UID: p.name},
			Memory: &stats.MemoryStats{Time: metav1.NewTime(now), WorkingSetBytes: amount(p.mi << 20)},
		})
	}
	d := eviction.Decide(in)
	last := &guard.Round{
		Notice: notify.Notice{At: now.Add(-time.Millisecond), Sources: []notify.NoticeSource{{}}}, ReadAt: now, DecidedAt: now, Input: in, Decision: d,
		Watching:  []notify.Watch{notify.StallTrigger{Path: "/proc/pressure/memory", Stall: 400 * time.Millisecond, Window: 2 * time.Second}},
		Unwatched: []error{errors.New("poll memory.available: read the node's working set: /proc/meminfo: permission denied")},
	}
	before := &guard.Round{DecidedAt: now, Notice: notify.Notice{At: now, Sources: []notify.NoticeSource{{}}}, Outcomes: []execute.ActionOutcome{
		{At: now.Add(-time.Minute), Result: execute.Blocked, Mode: execute.Kill, Pod: eviction.PodIdentity{Namespace: "shop", Name: "web-1"}, NotBefore: Noon.Add(time.Minute),
			Message: "did not evict pod shop/web-1 for memory.available: PodDisruptionBudget shop/web does not allow it"},
		{At: now.Add(-30 * time.Second), Result: execute.Killed, Mode: execute.Kill, Pod: eviction.PodIdentity{Namespace: "shop", Name: "hog"}, Removed: true, Waited: time.Second,
			Message: "deleted pod shop/hog with a grace period of 1 s, for memory.available"},
	}}
	return reportbuilder.New(last, []*guard.Round{before}, reportbuilder.Options{
		Node: node, Mode: "kill", MaxInterval: 10 * time.Second, Now: Noon, Warnings: []string{"the kubelet evicts at memory.available<200Mi, before weir does: set weir's threshold above it"},
	})
}
