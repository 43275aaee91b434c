package kubeletapi

import (
	"cmp"
	"path"
	"slices"
	"strings"

	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/weir-metrics/weir/metric"
)

// summary returns t as a kubelet's summary. It writes t over base and changes base, which may be
// nil. The summary includes pods that only base has, because they began after the round, but no
// pods without a name.
func (t *tree) summary(base *stats.Summary) *stats.Summary {
	if base == nil {
		base = &stats.Summary{}
	}
	n := &base.Node
	n.NodeName = string(t.name)
	overlay{&n.StartTime, &n.CPU, &n.Memory, &n.IO, &n.Swap}.with(t.node.Sample)
	n.Network = networkOf(t.node, n.Network)
	if n.Fs == nil {
		n.Fs = fsOf(t.node.Sample)
	}
	if n.Rlimit == nil {
		n.Rlimit = rlimitOf(t.node.Sample)
	}
	t.overlayAllPods(n)

	pods := make([]stats.PodStats, 0, len(t.pods))
	for _, p := range t.pods {
		var one stats.PodStats
		for _, uid := range [...]metric.PodUID{p.uid, p.apiUID} {
			hasUID := func(b stats.PodStats) bool { return b.PodRef.UID == string(uid) }
			if i := slices.IndexFunc(base.Pods, hasUID); i >= 0 && uid != "" {
				one = base.Pods[i]
				base.Pods = slices.Delete(base.Pods, i, i+1)
			}
		}
		p.overlay(&one)
		pods = append(pods, one)
	}
	unnamed := func(b stats.PodStats) bool { return b.PodRef.Name == "" }
	base.Pods = slices.Concat(pods, slices.DeleteFunc(base.Pods, unnamed))
	slices.SortStableFunc(base.Pods, func(a, b stats.PodStats) int {
		return cmp.Or(cmp.Compare(a.PodRef.Namespace, b.PodRef.Namespace), cmp.Compare(a.PodRef.Name, b.PodRef.Name))
	})
	for i := range base.Pods {
		if p := &base.Pods[i]; p.Containers == nil {
			p.Containers = []stats.ContainerStats{} // a kubelet's is never null
		}
	}
	return base
}

// overlay writes p over one.
func (p *pod) overlay(one *stats.PodStats) {
	one.PodRef = stats.PodReference{Namespace: string(p.ref.Namespace), Name: string(p.ref.Name), UID: string(p.uid)}
	overlay{&one.StartTime, &one.CPU, &one.Memory, &one.IO, &one.Swap}.with(p.Sample)
	one.Network = networkOf(p.cgroup, one.Network)
	if v, _, ok := get(p.Sample, metric.ProcessCount); ok && one.ProcessStats == nil {
		one.ProcessStats = &stats.ProcessStats{ProcessCount: new(uint64(v))}
	}
	containers := make([]stats.ContainerStats, 0, len(p.containers))
	for _, c := range p.containers {
		own := stats.ContainerStats{Name: c.container}
		if i := indexContainer(one.Containers, c.container); i >= 0 {
			own = one.Containers[i]
		}
		overlay{&own.StartTime, &own.CPU, &own.Memory, &own.IO, &own.Swap}.with(c.Sample)
		containers = append(containers, own)
	}
	for _, c := range one.Containers {
		if c.Name != "" && indexContainer(containers, c.Name) < 0 {
			containers = append(containers, c)
		}
	}
	one.Containers = containers
}

func indexContainer(all []stats.ContainerStats, name string) int {
	return slices.IndexFunc(all, func(c stats.ContainerStats) bool { return c.Name == name })
}

// overlayAllPods writes the kubepods cgroup over the system container that a kubelet calls "pods".
func (t *tree) overlayAllPods(n *stats.NodeStats) {
	var root *metric.Sample
	for _, c := range t.system {
		p := string(c.Instance.Path)
		if b := path.Base(p); (b == "kubepods" || strings.HasSuffix(b, "kubepods.slice")) &&
			(root == nil || len(p) < len(root.Instance.Path)) {
			root = c.Sample
		}
	}
	if root == nil {
		return
	}
	i := indexContainer(n.SystemContainers, stats.SystemContainerPods)
	if i < 0 {
		i = len(n.SystemContainers)
		n.SystemContainers = append(n.SystemContainers, stats.ContainerStats{Name: stats.SystemContainerPods})
	}
	own := &n.SystemContainers[i]
	overlay{&own.StartTime, &own.CPU, &own.Memory, &own.IO, &own.Swap}.with(root)
}

// keepCPUAndMemory removes what a kubelet does not report if only CPU and memory are requested.
func keepCPUAndMemory(s *stats.Summary) {
	n := &s.Node
	n.IO, n.Network, n.Fs, n.Runtime, n.Rlimit = nil, nil, nil, nil, nil
	keepContainersCPUAndMemory(n.SystemContainers)
	for i := range s.Pods {
		p := &s.Pods[i]
		p.IO, p.Network, p.VolumeStats, p.EphemeralStorage, p.ProcessStats = nil, nil, nil, nil, nil
		keepContainersCPUAndMemory(p.Containers)
	}
}

func keepContainersCPUAndMemory(all []stats.ContainerStats) {
	for i := range all {
		all[i].IO, all[i].Rootfs, all[i].Logs, all[i].Accelerators = nil, nil, nil, nil
	}
}
