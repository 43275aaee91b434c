//go:build linux

package host

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/google/cadvisor/lib/model"
	"github.com/opencontainers/cgroups"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/host/cgroupfs"
)

// fillCgroup sets every metric in o. It is for a cgroup other than the node's.
func fillCgroup(s *metric.Sample, o *observation) {
	fillCPU(s, o)
	if o.has(cpu) {
		setValue(s, metric.CPUThrottled, o.stats.Cpu.CFS.ThrottledTime)
		setValue(s, metric.CPUPeriods, o.stats.Cpu.CFS.Periods)
		setValue(s, metric.CPUThrottledPeriods, o.stats.Cpu.CFS.ThrottledPeriods)
	}
	fillMemory(s, o)
	if o.has(memory) {
		failures := o.stats.Memory.Failcnt
		if o.v2 {
			failures = o.stats.Memory.Events.Max
		}
		setValue(s, metric.MemoryFailures, failures)
		if o.ooms >= 0 {
			setValue(s, metric.MemoryOOMEvents, uint64(o.ooms))
		}
	}
	if o.has(blkio) {
		s.Times[metric.IO] = o.times[blkio]
	}
	if o.has(pids) {
		setValue(s, metric.ProcessThreads, o.raw.PidsStats.Current)
		if limit := o.raw.PidsStats.Limit; limit > 0 { // libcontainer converts "max" to 0
			setValue(s, metric.ProcessLimit, limit)
		}
		s.Times[metric.Process] = o.times[pids]
	}
	fillLimits(s, o)
}

func fillCPU(s *metric.Sample, o *observation) {
	if !o.cpu.at.IsZero() {
		setValue(s, metric.CPUUsage, o.cpu.nanoseconds)
		s.Times[metric.CPU] = o.cpu.at.UnixNano()
	}
	if o.has(cpuacct) {
		setValue(s, metric.CPUUser, o.stats.Cpu.Usage.User)
		setValue(s, metric.CPUSystem, o.stats.Cpu.Usage.System)
	}
	if s.Times[metric.CPU] == 0 {
		s.Times[metric.CPU] = max(o.times[cpuacct], o.times[cpu])
	}
	if s.Times[metric.CPU] == 0 {
		s.Reasons[metric.CPU] = metric.Unsupported // the cgroup is in no hierarchy that counts CPU time
	}
	fillPressure(s, o.raw.CpuStats.PSI, metric.CPUPressureSome, metric.CPUPressureFull, !o.noCPUFull)
}

func fillMemory(s *metric.Sample, o *observation) {
	fillPressure(s, o.raw.MemoryStats.PSI, metric.MemoryPressureSome, metric.MemoryPressureFull, true)
	if !o.has(memory) {
		return
	}
	m := o.stats.Memory
	s.Times[metric.Memory] = o.times[memory]
	setValue(s, metric.MemoryUsage, m.Usage)
	setValue(s, metric.MemoryWorkingSet, m.WorkingSet)
	setValue(s, metric.MemoryRSS, m.RSS)
	setValue(s, metric.MemoryCache, m.Cache)
	setValue(s, metric.MemoryMappedFile, m.MappedFile)
	setValue(s, metric.MemoryPageFaults, pageFaults(o, "pgfault"))
	setValue(s, metric.MemoryMajorPageFaults, pageFaults(o, "pgmajfault"))
	if o.swap {
		setValue(s, metric.MemorySwap, m.Swap)
	}
}

// pageFaults returns a counter of memory.stat for the cgroup and all cgroups below it. On version 1
// cAdvisor's counter does not include those below it.
func pageFaults(o *observation, key string) uint64 {
	if !o.v2 {
		if n, ok := o.raw.MemoryStats.Stats["total_"+key]; ok {
			return n
		}
	}
	return o.raw.MemoryStats.Stats[key]
}

// fillLimits sets the limits of the cgroup, if it has any, and what is left of them.
func fillLimits(s *metric.Sample, o *observation) {
	if c := o.spec.Cpu; o.spec.HasCpu && c.Quota > 0 && c.Period > 0 {
		s.Values.Set(metric.CPULimit, float64(c.Quota)/float64(c.Period)*1e9)
	}
	m := o.spec.Memory
	if !o.spec.HasMemory || m.Limit >= cgroupfs.NoLimit || m.Limit == 0 && !o.v2 {
		m.Limit = math.MaxUint64
	} else {
		setValue(s, metric.MemoryLimit, m.Limit)
		if o.has(memory) {
			setValue(s, metric.MemoryAvailable, subtract(m.Limit, o.stats.Memory.WorkingSet))
		}
	}
	// Version 1 limits memory and swap together.
	if !o.swap || m.SwapLimit >= cgroupfs.NoLimit {
		return
	}
	if !o.v2 {
		if m.Limit == math.MaxUint64 || m.SwapLimit == 0 {
			return
		}
		m.SwapLimit = subtract(m.SwapLimit, m.Limit)
	}
	setValue(s, metric.SwapLimit, m.SwapLimit)
	if o.has(memory) {
		setValue(s, metric.MemorySwapAvailable, subtract(m.SwapLimit, o.stats.Memory.Swap))
	}
}

// fillIO sets the bytes that were read from and written to block devices, and returns the
// statistics of each device. physical reports whether a device is hardware and not mapped onto
// another one. If some devices are hardware, only those are added up, because bytes of a mapped
// device are counted again on the device below it.
func fillIO(s *metric.Sample, o *observation, physical func(major, minor uint64) bool) []model.PerDiskStats {
	fillPressure(s, o.raw.BlkioStats.PSI, metric.IOPressureSome, metric.IOPressureFull, true)
	if !o.has(blkio) || o.stats.DiskIo == nil {
		return nil
	}
	devices := o.stats.DiskIo.IoServiceBytes
	slices.SortFunc(devices, func(a, b model.PerDiskStats) int { // cAdvisor returns them in random order
		return cmp.Or(cmp.Compare(a.Major, b.Major), cmp.Compare(a.Minor, b.Minor))
	})
	// Version 1 counts nothing for a device without a policy. On version 2 a missing line means that
	// there was no I/O.
	if len(devices) == 0 && !o.v2 {
		return nil
	}
	var all, below [2]uint64
	some := false
	for _, d := range devices {
		read, written := d.Stats["Read"], d.Stats["Write"]
		all[0], all[1] = all[0]+read, all[1]+written
		if physical(d.Major, d.Minor) {
			some = true
			below[0], below[1] = below[0]+read, below[1]+written
		}
	}
	if some {
		all = below
	}
	setValue(s, metric.DiskReadBytes, all[0])
	setValue(s, metric.DiskWriteBytes, all[1])
	return devices
}

// fillPressure sets the two counters of a pressure file. They are in microseconds, although the
// comment in cAdvisor's model has nanoseconds. libcontainer returns 0 for full also if the file does not have
// it: hasFull reports whether it does.
func fillPressure(s *metric.Sample, psi *cgroups.PSIStats, some, full metric.ID, hasFull bool) {
	if psi == nil {
		return
	}
	setValue(s, some, psi.Some.Total*1000)
	if hasFull {
		setValue(s, full, psi.Full.Total*1000)
	}
}

// completeTimes sets the age of the instance. It also sets now as the time of every group that has
// values but no time yet.
func completeTimes(s *metric.Sample, now time.Time) {
	if s.Instance.Start > 0 {
		if age := now.UnixNano() - s.Instance.Start; age >= 0 {
			s.Values.Set(metric.Uptime, float64(age))
		}
	}
	for id := range s.Values.All() {
		if g := id.Describe().Group; s.Times[g] == 0 {
			s.Times[g] = now.UnixNano()
		}
	}
}

func setValue(s *metric.Sample, id metric.ID, value uint64) { s.Values.Set(id, float64(value)) }

func subtract(a, b uint64) uint64 {
	if b > a {
		return 0
	}
	return a - b
}
