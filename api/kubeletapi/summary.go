package kubeletapi

import (
	"cmp"
	"path"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/weir-metrics/weir/metric"
)

// summary returns t as a kubelet's summary, laid over base, which it changes; base may
// be nil. Pods that base has and t has not began since; pods that have no name are left
// out.
func (t *tree) summary(base *stats.Summary) *stats.Summary {
	if base == nil {
		base = &stats.Summary{}
	}
	out := base
	n := &out.Node
	n.NodeName = string(t.name)
	overlay{&n.StartTime, &n.CPU, &n.Memory, &n.IO, &n.Swap}.with(t.node.Sample)
	n.Network = networkOf(t.node, n.Network)
	if n.Fs == nil {
		n.Fs = fsOf(t.node.Sample)
	}
	if n.Rlimit == nil {
		n.Rlimit = rlimitOf(t.node.Sample)
	}
	t.allPods(n)

	had := out.Pods
	out.Pods = make([]stats.PodStats, 0, max(len(had), len(t.pods)))
	known := map[string]*stats.PodStats{}
	for i := range had {
		known[had[i].PodRef.UID] = &had[i]
	}
	for _, p := range t.pods {
		var one stats.PodStats
		for _, uid := range [...]metric.PodUID{p.uid, p.known} {
			if b := known[string(uid)]; b != nil && uid != "" {
				one = *b
				delete(known, string(uid))
			}
		}
		p.over(&one)
		out.Pods = append(out.Pods, one)
	}
	for i := range had {
		if b := &had[i]; known[b.PodRef.UID] == b && b.PodRef.Name != "" {
			out.Pods = append(out.Pods, *b)
		}
	}
	slices.SortStableFunc(out.Pods, func(a, b stats.PodStats) int {
		return cmp.Or(cmp.Compare(a.PodRef.Namespace, b.PodRef.Namespace), cmp.Compare(a.PodRef.Name, b.PodRef.Name))
	})
	for i := range out.Pods {
		if p := &out.Pods[i]; p.Containers == nil {
			p.Containers = []stats.ContainerStats{} // a kubelet's is never null
		}
	}
	return out
}

// over lays what is known of p over one.
func (p *pod) over(one *stats.PodStats) {
	one.PodRef = stats.PodReference{Namespace: string(p.ref.Namespace), Name: string(p.ref.Name), UID: string(p.uid)}
	overlay{&one.StartTime, &one.CPU, &one.Memory, &one.IO, &one.Swap}.with(p.Sample)
	one.Network = networkOf(p.cgroup, one.Network)
	if v, _, ok := get(p.Sample, metric.ProcessCount); ok && one.ProcessStats == nil {
		one.ProcessStats = &stats.ProcessStats{ProcessCount: number(v)}
	}
	had := one.Containers
	one.Containers = make([]stats.ContainerStats, 0, max(len(had), len(p.containers)))
	done := map[string]bool{}
	for _, c := range p.containers {
		own := stats.ContainerStats{Name: c.name}
		for i := range had {
			if had[i].Name == c.name {
				own = had[i]
			}
		}
		done[c.name] = true
		overlay{&own.StartTime, &own.CPU, &own.Memory, &own.IO, &own.Swap}.with(c.Sample)
		one.Containers = append(one.Containers, own)
	}
	for i := range had {
		if name := had[i].Name; name != "" && !done[name] {
			one.Containers = append(one.Containers, had[i])
		}
	}
}

// allPods lays the cgroup that all pods lie in over the system container that a
// kubelet calls "pods".
func (t *tree) allPods(n *stats.NodeStats) {
	var root *metric.Sample
	for _, c := range t.others {
		p := string(c.Instance.Path)
		if b := path.Base(p); (b == "kubepods" || strings.HasSuffix(b, "kubepods.slice")) &&
			(root == nil || len(p) < len(root.Instance.Path)) {
			root = c.Sample
		}
	}
	if root == nil {
		return
	}
	var own *stats.ContainerStats
	for i := range n.SystemContainers {
		if n.SystemContainers[i].Name == stats.SystemContainerPods {
			own = &n.SystemContainers[i]
		}
	}
	if own == nil {
		n.SystemContainers = append(n.SystemContainers, stats.ContainerStats{Name: stats.SystemContainerPods})
		own = &n.SystemContainers[len(n.SystemContainers)-1]
	}
	overlay{&own.StartTime, &own.CPU, &own.Memory, &own.IO, &own.Swap}.with(root)
}

// keepCPUAndMemory drops what a kubelet leaves out of a summary of CPU and memory.
func keepCPUAndMemory(s *stats.Summary) {
	n := &s.Node
	n.IO, n.Network, n.Fs, n.Runtime, n.Rlimit = nil, nil, nil, nil, nil
	containers(n.SystemContainers)
	for i := range s.Pods {
		p := &s.Pods[i]
		p.IO, p.Network, p.VolumeStats, p.EphemeralStorage, p.ProcessStats = nil, nil, nil, nil, nil
		containers(p.Containers)
	}
}

func containers(all []stats.ContainerStats) {
	for i := range all {
		all[i].IO, all[i].Rootfs, all[i].Logs, all[i].Accelerators = nil, nil, nil, nil
	}
}

func number(v float64) *uint64 { n := uint64(v); return &n }

func at(ns int64) metav1.Time {
	if ns == 0 {
		return metav1.Time{}
	}
	return metav1.Unix(ns/1e9, ns%1e9)
}
