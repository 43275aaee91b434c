//go:build linux

package vitals

import (
	"cmp"
	"slices"

	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/weir-metrics/weir/sources/host/disk"
)

// podStats says what was found of a pod in the kubelet's words, with what others know of it.
func (r *round) podStats(p *pod, known *Pod) stats.PodStats {
	s := stats.PodStats{
		PodRef: stats.PodReference{Name: known.Name, Namespace: known.Namespace, UID: string(cmp.Or(known.UID, p.uid))},
		Memory: p.memory.orNil(), CPU: p.cpu,
	}
	sandbox := p.sandbox(known.Containers)
	if !p.unlisted {
		n := uint64(p.processes)
		if sandbox >= 0 {
			n -= uint64(p.containers[sandbox].processes)
		}
		s.ProcessStats = &stats.ProcessStats{ProcessCount: &n}
	}
	if r.depth == Containers {
		for i, c := range p.containers {
			if i != sandbox {
				name := cmp.Or(known.Containers[string(c.id)], string(c.id))
				s.Containers = append(s.Containers, stats.ContainerStats{Name: name, Memory: c.memory.orNil()})
			}
		}
	}
	if r.options.Disks != nil {
		if d, ok := r.options.Disks.Pod(p.uid); ok {
			addDisks(&s, d)
		}
	}
	slices.SortStableFunc(s.Containers, func(a, b stats.ContainerStats) int { return cmp.Compare(a.Name, b.Name) })
	return s
}

// sandbox returns the index of the sandbox's container, which is the only one without a name; -1 if
// that tells none.
func (p *pod) sandbox(names map[string]string) int {
	at := -1
	for i, c := range p.containers {
		if _, named := names[string(c.id)]; named {
			continue
		}
		if at >= 0 || len(names) == 0 {
			return -1
		}
		at = i
	}
	return at
}

// addDisks adds what a pod uses of disks. A container that has ended still has its layer: it is
// listed for that.
func addDisks(s *stats.PodStats, d *disk.Pod) {
	s.VolumeStats, s.EphemeralStorage = d.Volumes, d.Ephemeral
	for name, c := range d.Containers {
		i := slices.IndexFunc(s.Containers, func(has stats.ContainerStats) bool { return has.Name == name })
		if i < 0 {
			i = len(s.Containers)
			s.Containers = append(s.Containers, stats.ContainerStats{Name: name})
		}
		s.Containers[i].Rootfs, s.Containers[i].Logs = c.Rootfs, c.Logs
	}
}

// orNil is m in the kubelet's words; nil if nothing of it is known.
func (m *memory) orNil() *stats.MemoryStats {
	if m == nil || m.UsageBytes == nil && m.RSSBytes == nil {
		return nil
	}
	return &m.MemoryStats
}
