package eviction

import (
	"errors"
	"fmt"
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/weir-metrics/weir/test/dice"
)

// random builds a node from bytes.
type random struct{ dice.Dice }

func newRandom(bytes []byte) *random { return &random{dice.Dice{Bytes: bytes}} }

// figure returns a number of bytes (whole mebibytes). Some results are impossible, and some are
// nil.
func (d *random) figure() *uint64 {
	n := uint64(d.Roll(64)) << 20
	switch d.Roll(40) {
	case 0:
		return nil
	case 1:
		return new(uint64(0))
	case 2:
		return new(uint64(math.MaxUint64))
	case 3:
		return new(uint64(math.MaxInt64))
	}
	return &n
}

func (d *random) time(now time.Time) metav1.Time {
	switch d.Roll(30) {
	case 0:
		return metav1.Time{}
	case 1:
		return metav1.NewTime(now.Add(time.Hour))
	}
	return metav1.NewTime(now.Add(-time.Duration(d.Roll(20)) * time.Second))
}

func (d *random) quantity() resource.Quantity {
	return dice.Pick(&d.Dice, *resource.NewQuantity(int64(d.Roll(64))<<20, resource.BinarySI), resource.MustParse("1.5"),
		resource.MustParse("1e30"), resource.Quantity{})
}

// config returns a configuration with thresholds that are often met.
func (d *random) config() *ThresholdConfig {
	c := &ThresholdConfig{EvictionHard: map[string]string{}, EvictionSoft: map[string]string{}, EvictionSoftGracePeriod: map[string]string{}, EvictionMinimumReclaim: map[string]string{}}
	values := []string{"20Mi", "40Mi", "10%", "60%", "1", "0%", "100.0%", "2048.5", "1e30"}
	for _, s := range Signals() {
		if !d.Chance(3) {
			c.EvictionHard[string(s)] = dice.Pick(&d.Dice, values...)
		}
		if d.Chance(3) {
			c.EvictionSoft[string(s)] = dice.Pick(&d.Dice, values...)
			c.EvictionSoftGracePeriod[string(s)] = dice.Pick(&d.Dice, "30s", "0s", "1m30s")
		}
		if d.Chance(3) {
			c.EvictionMinimumReclaim[string(s)] = dice.Pick(&d.Dice, "10Mi", "5%", "1e30", "0")
		}
	}
	if d.Chance(2) {
		c.EnforceNodeAllocatable = []string{"pods"}
	}
	if d.Chance(8) {
		c = &ThresholdConfig{Pressure: []string{dice.Pick(&d.Dice, "memory.pressure.some.avg10>20", "io.pressure.some.avg300>50")}}
	} else if d.Chance(3) {
		c.Pressure = []string{dice.Pick(&d.Dice, "memory.pressure.some.avg10>20", "cpu.pressure.full.avg60>5 for 10s until 1", "io.pressure.some.avg300>50")}
	}
	return c
}

func (d *random) memory(now time.Time) *stats.MemoryStats {
	return &stats.MemoryStats{Time: d.time(now), AvailableBytes: d.figure(), UsageBytes: d.figure(), WorkingSetBytes: d.figure()}
}

func (d *random) fs(now time.Time) *stats.FsStats {
	fs := &stats.FsStats{Time: d.time(now), AvailableBytes: d.figure(), UsedBytes: d.figure(), InodesFree: d.figure(), InodesUsed: d.figure()}
	fs.CapacityBytes, fs.Inodes = d.figure(), d.figure()
	if !d.Chance(4) {
		fs.CapacityBytes, fs.Inodes = new(uint64(64<<20)), new(uint64(64<<20))
	}
	return fs
}

func (d *random) summary(now time.Time, pods []*corev1.Pod) *stats.Summary {
	s := &stats.Summary{}
	s.Node.Memory = d.memory(now)
	s.Node.SystemContainers = []stats.ContainerStats{{Name: dice.Pick(&d.Dice, "pods", "kubelet"), Memory: d.memory(now)}}
	s.Node.Fs = d.fs(now)
	s.Node.Runtime = &stats.RuntimeStats{ImageFs: d.fs(now), ContainerFs: d.fs(now)}
	s.Node.Rlimit = &stats.RlimitStats{Time: d.time(now), MaxPID: new(int64(d.Roll(100))), NumOfRunningProcesses: new(int64(d.Roll(100)) - 2)}
	for _, pod := range pods {
		if d.Chance(6) {
			continue
		}
		p := stats.PodStats{PodRef: stats.PodReference(refOf(pod)), Memory: d.memory(now), EphemeralStorage: d.fs(now), ProcessStats: &stats.ProcessStats{ProcessCount: d.figure()}}
		p.CPU = &stats.CPUStats{Time: d.time(now), UsageNanoCores: d.figure()}
		for _, c := range pod.Spec.Containers {
			p.Containers = append(p.Containers, stats.ContainerStats{Name: c.Name, Memory: d.memory(now), Rootfs: d.fs(now), Logs: d.fs(now)})
		}
		p.VolumeStats = []stats.VolumeStats{{Name: "scratch", FsStats: *d.fs(now)}}
		s.Pods = append(s.Pods, p)
	}
	return s
}

func (d *random) pods() []*corev1.Pod {
	var list []*corev1.Pod
	for i := range d.Roll(8) {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprint("p", i), UID: types.UID(fmt.Sprint("u", i))}}
		pod.Spec.Priority = dice.Pick(&d.Dice, nil, new(int32(d.Roll(3))), new(int32(-5)), new(int32(criticalPriority)))
		pod.Annotations = dice.Pick(&d.Dice, nil, nil, nil, map[string]string{sourceAnnotation: "file"}, map[string]string{mirrorAnnotation: "x"}, map[string]string{sourceAnnotation: fromAPIServer})
		pod.Spec.TerminationGracePeriodSeconds = dice.Pick(&d.Dice, nil, new(int64(d.Roll(60))))
		c := corev1.Container{Name: "app"}
		c.Resources.Requests = corev1.ResourceList{corev1.ResourceMemory: d.quantity(), corev1.ResourceEphemeralStorage: d.quantity(), corev1.ResourceCPU: d.quantity()}
		if d.Chance(6) {
			c.Resources.Limits = corev1.ResourceList{corev1.ResourceEphemeralStorage: d.quantity()}
		}
		pod.Spec.Containers = []corev1.Container{c}
		if d.Chance(4) {
			c.Name, c.RestartPolicy = "init", dice.Pick(&d.Dice, nil, new(corev1.ContainerRestartPolicyAlways))
			pod.Spec.InitContainers = []corev1.Container{c}
		}
		if d.Chance(4) {
			pod.Spec.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceMemory: d.quantity()}}
		}
		if d.Chance(4) {
			pod.Spec.Overhead = corev1.ResourceList{corev1.ResourceMemory: d.quantity(), corev1.ResourceEphemeralStorage: d.quantity()}
		}
		if d.Chance(2) {
			dir := &corev1.EmptyDirVolumeSource{}
			if d.Chance(8) {
				dir.SizeLimit = new(d.quantity())
			}
			pod.Spec.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: dir}}}
		}
		list = append(list, pod)
	}
	return list
}

// rounds returns the inputs of consecutive decisions about a node, without their State, and the
// summaries after collections.
func (d *random) rounds() (list []*Input, after []*stats.Summary) {
	settings := &Settings{TransitionPeriod: time.Duration(d.Roll(3)) * time.Minute, MaxPodGraceSeconds: int64(d.Roll(90)) - 5, LocalLimits: d.Chance(2), Parity: d.Chance(4)}
	var err error
	if settings.Thresholds, err = Parse(d.config()); err != nil {
		panic(err)
	}
	layout := DiskLayout{DedicatedImageFs: d.Chance(2), DedicatedContainerFs: d.Chance(3)}
	now, pods := t0, d.pods()
	for range 1 + d.Roll(4) {
		now = now.Add(time.Duration(d.Roll(50)) * time.Second)
		in := &Input{Now: now, Settings: settings, Layout: layout, Pods: pods, Summary: d.summary(now, pods)}
		at := d.time(now)
		psi := &stats.PSIStats{Some: stats.PSIData{Avg10: float64(d.Roll(101)), Avg60: float64(d.Roll(110)), Avg300: float64(d.Roll(101))}, Full: stats.PSIData{Avg60: dice.Pick(&d.Dice, 10, math.NaN(), -3)}}
		n := &in.Summary.Node
		n.Memory.PSI, n.CPU, n.IO = psi, &stats.CPUStats{Time: at, PSI: psi}, &stats.IOStats{Time: at, PSI: psi}
		if len(pods) > 0 {
			in.Self = dice.Pick(&d.Dice, "", pods[0].UID)
			in.Blocked = dice.Pick(&d.Dice, nil, map[types.UID]BlockedPod{pods[len(pods)-1].UID: {Reason: "a budget", Hard: d.Chance(2)}})
		}
		in.Evicted = dice.Pick(&d.Dice, time.Time{}, now.Add(-time.Duration(d.Roll(30))*time.Second))
		switch d.Roll(30) {
		case 0:
			in.Summary, in.SummaryErr = nil, errors.New("no summary")
		case 1:
			in.LayoutErr = errors.New("no layout")
		}
		list = append(list, in)
		after = append(after, d.summary(now, pods))
	}
	return list, after
}
