package eviction

import stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

// FromStats takes what decisions are made of from a summary in the kubelet's own types. It
// shares the figures with s, which must not be changed after. Of a nil summary both results
// are nil; the pressure also is of one without stall figures of the node.
func FromStats(s *stats.Summary) (*Summary, *Pressure) {
	if s == nil {
		return nil, nil
	}
	n := &s.Node
	to := &Summary{
		Node: NodeStats{NodeName: n.NodeName, SystemContainers: containerStats(n.SystemContainers), Memory: memoryStats(n.Memory), Fs: fsStats(n.Fs)},
		Pods: make([]PodStats, len(s.Pods)),
	}
	if r := n.Runtime; r != nil {
		to.Node.Runtime = &RuntimeStats{ImageFs: fsStats(r.ImageFs), ContainerFs: fsStats(r.ContainerFs)}
	}
	if r := n.Rlimit; r != nil {
		to.Node.Rlimit = &RlimitStats{Time: r.Time.Time, MaxPID: r.MaxPID, Running: r.NumOfRunningProcesses}
	}
	for i := range s.Pods {
		to.Pods[i] = podStats(&s.Pods[i])
	}
	return to, pressureOf(n)
}

func podStats(p *stats.PodStats) PodStats {
	to := PodStats{
		PodRef:     PodRef(p.PodRef),
		Containers: containerStats(p.Containers), Memory: memoryStats(p.Memory), EphemeralStorage: fsStats(p.EphemeralStorage),
	}
	if c := p.CPU; c != nil {
		to.CPU = &CPUStats{Time: c.Time.Time, UsageNanoCores: c.UsageNanoCores}
	}
	if n := p.ProcessStats; n != nil {
		to.Processes = &ProcessStats{Count: n.ProcessCount}
	}
	for i := range p.VolumeStats {
		v := &p.VolumeStats[i]
		to.Volumes = append(to.Volumes, VolumeStats{FsStats: *fsStats(&v.FsStats), Name: v.Name})
	}
	return to
}

func containerStats(list []stats.ContainerStats) (to []ContainerStats) {
	for i := range list {
		c := &list[i]
		to = append(to, ContainerStats{Name: c.Name, Memory: memoryStats(c.Memory), Rootfs: fsStats(c.Rootfs), Logs: fsStats(c.Logs)})
	}
	return to
}

func memoryStats(m *stats.MemoryStats) *MemoryStats {
	if m == nil {
		return nil
	}
	return &MemoryStats{Time: m.Time.Time, AvailableBytes: m.AvailableBytes, UsageBytes: m.UsageBytes, WorkingSetBytes: m.WorkingSetBytes}
}

func fsStats(f *stats.FsStats) *FsStats {
	if f == nil {
		return nil
	}
	return &FsStats{
		Time: f.Time.Time, AvailableBytes: f.AvailableBytes, CapacityBytes: f.CapacityBytes, UsedBytes: f.UsedBytes,
		InodesFree: f.InodesFree, Inodes: f.Inodes, InodesUsed: f.InodesUsed,
	}
}

// pressureOf is what the summary tells of the node's stalls; nil if nothing.
func pressureOf(n *stats.NodeStats) *Pressure {
	var p Pressure
	if m := n.Memory; m != nil && m.PSI != nil {
		p.Memory = stallsOf(m.PSI)
		p.Memory.At = m.Time.Time
	}
	if c := n.CPU; c != nil && c.PSI != nil {
		p.CPU = stallsOf(c.PSI)
		p.CPU.At = c.Time.Time
	}
	if io := n.IO; io != nil && io.PSI != nil {
		p.IO = stallsOf(io.PSI)
		p.IO.At = io.Time.Time
	}
	if p == (Pressure{}) {
		return nil
	}
	return &p
}

func stallsOf(p *stats.PSIStats) *Stalls {
	return &Stalls{Some: stallOf(&p.Some), Full: stallOf(&p.Full)}
}

func stallOf(p *stats.PSIData) Stall { return Stall{Avg10: p.Avg10, Avg60: p.Avg60, Avg300: p.Avg300} }
