//go:build linux

package host

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/cadvisor/lib/fs"
	_ "github.com/google/cadvisor/lib/fs/btrfs/install"
	_ "github.com/google/cadvisor/lib/fs/overlay/install"
	_ "github.com/google/cadvisor/lib/fs/vfs/install"
	facts "github.com/google/cadvisor/lib/machine"
	"github.com/google/cadvisor/lib/model"
	"github.com/google/cadvisor/lib/utils/sysfs"
	"github.com/opencontainers/cgroups"
	"golang.org/x/sys/unix"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/host/cgroupfs"
)

// nodeReader reads the node's metrics that are not in its root cgroup.
type nodeReader struct {
	rootFS  string
	machine *machine
}

// read sets the metrics of the node's sample, b.Samples[at], and adds its parts.
func (n *nodeReader) read(b *metric.Batch, at int, o *observation) error {
	proc := path.Join(n.rootFS, "proc")
	s := &b.Samples[at]
	s.Instance.Start, s.Instance.Origin = n.machine.boot.UnixNano(), metric.StartRuntime
	fillCPU(s, o)
	fillMemory(s, o)
	err := errors.Join(
		n.fillMemory(s, proc),
		n.fillProcesses(s, proc),
		n.fillPressures(s, o, proc),
	)
	if cores := n.machine.info.NumCores; cores > 0 {
		s.Values.Set(metric.CPUNodeCapacity, float64(cores)*1e9)
	}
	completeTimes(s, time.Now())
	parts := partIndex{}
	return errors.Join(err, n.addDisks(b, at, proc, parts), n.addFilesystems(b, at, parts), n.addNetwork(b, at))
}

// fillMemory sets the memory metrics that only /proc has. If the root cgroup has no memory
// controller, it sets all of them from /proc, as cAdvisor does for version 2.
func (n *nodeReader) fillMemory(s *metric.Sample, proc string) error {
	data, err := os.ReadFile(path.Join(proc, "meminfo"))
	if err != nil {
		return fmt.Errorf("read node memory: %w", err)
	}
	m := pairs(data)
	capacity, ok := m["MemTotal"]
	if !ok {
		return errors.New("read node memory: no MemTotal in meminfo")
	}
	if !s.Values.Has(metric.MemoryUsage) {
		cache := m["Cached"] + m["Buffers"]
		usage := m["AnonPages"] + cache
		setValue(s, metric.MemoryUsage, usage)
		setValue(s, metric.MemoryWorkingSet, subtract(usage, m["Inactive(file)"]))
		setValue(s, metric.MemoryRSS, m["AnonPages"])
		setValue(s, metric.MemoryCache, cache)
		setValue(s, metric.MemoryMappedFile, m["Mapped"])
	}
	setValue(s, metric.MemoryNodeCapacity, capacity)
	if used, ok := s.Values.Get(metric.MemoryWorkingSet); ok {
		s.Values.Set(metric.MemoryAvailable, max(0, float64(capacity)-used))
	}
	setValue(s, metric.MemorySwap, subtract(m["SwapTotal"], m["SwapFree"]))
	setValue(s, metric.MemorySwapAvailable, m["SwapFree"])
	if data, err = os.ReadFile(path.Join(proc, "vmstat")); err != nil {
		return fmt.Errorf("read node memory events: %w", err)
	}
	events := pairs(data)
	for key, id := range map[string]metric.ID{
		"oom_kill": metric.MemoryOOMEvents, "pgfault": metric.MemoryPageFaults, "pgmajfault": metric.MemoryMajorPageFaults,
	} {
		if v, ok := events[key]; ok {
			setValue(s, id, v)
		}
	}
	return nil
}

// fillProcesses sets the number of threads and its limit. The processes are counted with those of
// the cgroups.
func (n *nodeReader) fillProcesses(s *metric.Sample, proc string) error {
	data, err := os.ReadFile(path.Join(proc, "loadavg"))
	if err != nil {
		return fmt.Errorf("count threads: %w", err)
	}
	threads, err := cgroupfs.ParseThreads(data)
	if err != nil {
		return fmt.Errorf("count threads: %w", err)
	}
	setValue(s, metric.ProcessThreads, uint64(threads))
	limit := uint64(0)
	for _, name := range [...]string{"threads-max", "pid_max"} {
		data, err := os.ReadFile(path.Join(proc, "sys/kernel", name))
		if err != nil {
			return fmt.Errorf("read limit of processes: %w", err)
		}
		v, err := cgroupfs.ParseUint(data)
		if err != nil {
			return fmt.Errorf("read limit of processes: %s: %w", name, err)
		}
		if limit == 0 || v < limit {
			limit = v
		}
	}
	setValue(s, metric.ProcessLimit, limit)
	return nil
}

// fillPressures sets the pressure of the node. It comes from the root cgroup on version 2, or else
// from /proc/pressure.
func (n *nodeReader) fillPressures(s *metric.Sample, o *observation, proc string) error {
	var errs []error
	for _, p := range [...]struct {
		name       string
		some, full metric.ID
		from       *cgroups.PSIStats
	}{
		{"cpu", metric.CPUPressureSome, metric.CPUPressureFull, o.raw.CpuStats.PSI},
		{"memory", metric.MemoryPressureSome, metric.MemoryPressureFull, o.raw.MemoryStats.PSI},
		{"io", metric.IOPressureSome, metric.IOPressureFull, o.raw.BlkioStats.PSI},
	} {
		if p.from == nil {
			data, err := os.ReadFile(path.Join(proc, "pressure", p.name))
			if errors.Is(err, os.ErrNotExist) || errors.Is(err, errors.ErrUnsupported) {
				continue // this is a gap, not an error
			}
			var read stats.PSIStats
			if err == nil {
				read, err = cgroupfs.ParsePressure(data)
			}
			if err != nil {
				errs = append(errs, fmt.Errorf("read %s pressure: %w", p.name, err))
				continue
			}
			p.from = &cgroups.PSIStats{Some: cgroups.PSIData{Total: read.Some.Total}, Full: cgroups.PSIData{Total: read.Full.Total}}
		}
		fillPressure(s, p.from, p.some, p.full, p.full != metric.CPUPressureFull || !o.noCPUFull)
	}
	return errors.Join(errs...)
}

// partIndex has the indexes of the parts in a batch, so that a disk and its file system are one
// part.
type partIndex map[string]int

func (p partIndex) at(b *metric.Batch, whole int, part string) *metric.Sample {
	if i, ok := p[part]; ok {
		return &b.Samples[i]
	}
	p[part] = len(b.Samples)
	return addPart(b, whole, part)
}

// addDisks adds the bytes of each disk, and sets their sum for the node.
func (n *nodeReader) addDisks(b *metric.Batch, at int, proc string, parts partIndex) error {
	now := time.Now()
	data, err := os.ReadFile(path.Join(proc, "diskstats"))
	if err != nil {
		return fmt.Errorf("read disks: %w", err)
	}
	var read, written uint64
	found := false
	for line := range strings.Lines(string(data)) {
		var d struct{ major, minor, reads, merged, in, ms, writes, wmerged, out uint64 }
		var name string
		if _, err := fmt.Sscan(line, &d.major, &d.minor, &name, &d.reads, &d.merged, &d.in, &d.ms, &d.writes, &d.wmerged, &d.out); err != nil {
			return fmt.Errorf("read disks: diskstats: %w", err)
		}
		if !n.machine.isDisk(d.major, d.minor) {
			continue
		}
		found = true
		read, written = read+d.in*sector, written+d.out*sector
		fillDisk(parts.at(b, at, "device:/dev/"+name), d.in*sector, d.out*sector, now)
	}
	if found {
		fillDisk(&b.Samples[at], read, written, now)
	}
	return nil
}

// sector is the unit of /proc/diskstats in bytes. It is the same for every disk.
const sector = 512

func fillDisk(s *metric.Sample, read, written uint64, at time.Time) {
	setValue(s, metric.DiskReadBytes, read)
	setValue(s, metric.DiskWriteBytes, written)
	s.Times[metric.IO] = at.UnixNano()
}

// addFilesystems adds each file system that cAdvisor finds. The root file system is also the node's
// own.
func (n *nodeReader) addFilesystems(b *metric.Batch, at int, parts partIndex) error {
	if n.machine.fs == nil {
		return nil // Gaps has the error of refreshMachine
	}
	now := time.Now()
	all, err := n.machine.fs.GetGlobalFsInfo()
	if err != nil {
		return fmt.Errorf("read file systems: %w", err)
	}
	slices.SortFunc(all, func(a, b fs.Fs) int { return strings.Compare(a.Device, b.Device) }) // cAdvisor iterates over a map
	for i := range all {
		if all[i].Device == n.machine.root {
			fillFilesystem(&b.Samples[at], &all[i], now)
		}
		fillFilesystem(parts.at(b, at, "device:"+all[i].Device), &all[i], now)
	}
	return nil
}

func fillFilesystem(s *metric.Sample, f *fs.Fs, at time.Time) {
	setValue(s, metric.FilesystemLimit, f.Capacity)
	setValue(s, metric.FilesystemUsage, subtract(f.Capacity, f.Free))
	setValue(s, metric.FilesystemAvailable, f.Available)
	if f.Inodes != nil && f.InodesFree != nil {
		setValue(s, metric.FilesystemInodes, *f.Inodes)
		setValue(s, metric.FilesystemInodesFree, *f.InodesFree)
		setValue(s, metric.FilesystemInodesUsed, subtract(*f.Inodes, *f.InodesFree))
	}
	s.Times[metric.Filesystem] = at.UnixNano()
}

// addNetwork adds the interfaces of the host's network namespace. It reads that of process 1, or
// this process's if that cannot be read.
func (n *nodeReader) addNetwork(b *metric.Batch, at int) error {
	t, err := readTraffic(n.rootFS, 1)
	if err != nil {
		var own error
		if t, own = readTraffic(n.rootFS, os.Getpid()); own != nil {
			return err
		}
	}
	addTraffic(b, at, &t, isPhysical)
	return nil
}

func pairs(data []byte) map[string]uint64 {
	m := map[string]uint64{}
	for name, value := range cgroupfs.Pairs(data) {
		m[string(name)] = value
	}
	return m
}

// machine is cAdvisor's description of the machine, its disks and its boot time.
type machine struct {
	info *model.MachineInfo
	fs   fs.FsInfo // the mounts at the time of the last read
	// root is the device of the root file system; empty if unknown.
	root string
	boot time.Time
	// disks has the hardware disks in /sys/block as "major:minor": no mapped devices, no disks
	// in memory, no partitions.
	disks map[string]bool
}

// machineAge is the maximum age of a machine. Mounts and CPUs rarely change, and the read is slow.
const machineAge = time.Minute

// readMachine reads the machine. If there is an error, the fields that could not be read are empty.
func readMachine(rootFS string, boot time.Time) (*machine, error) {
	m := &machine{info: &model.MachineInfo{}, boot: boot}
	var err error
	if m.fs, err = fs.NewFsInfo(fs.Context{}); err != nil {
		return m, fmt.Errorf("list file systems: %w", err)
	}
	if device, err := m.fs.GetDirFsDevice(rootFS); err == nil {
		m.root = device.Device
	}
	m.disks = findDisks("/sys/block")
	info, err := facts.Info(sysfs.NewRealSysFs(), m.fs, true)
	if err != nil {
		return m, fmt.Errorf("describe the machine: %w", err)
	}
	m.info = info
	return m, nil
}

// GetMachineInfo implements model.MachineInfoFactory for cAdvisor's functions.
func (m *machine) GetMachineInfo() (*model.MachineInfo, error) { return m.info, nil }

// GetVersionInfo implements model.MachineInfoFactory. Nothing that this package uses calls it.
func (m *machine) GetVersionInfo() (*model.VersionInfo, error) {
	return nil, errors.ErrUnsupported
}

// isDisk reports whether a device is hardware.
func (m *machine) isDisk(major, minor uint64) bool {
	return m.disks[fmt.Sprintf("%d:%d", major, minor)]
}

func findDisks(sysBlock string) map[string]bool {
	disks := map[string]bool{}
	devices, _ := filepath.Glob(path.Join(sysBlock, "*", "device"))
	for _, d := range devices {
		if number, err := os.ReadFile(path.Join(path.Dir(d), "dev")); err == nil {
			disks[strings.TrimSpace(string(number))] = true
		}
	}
	return disks
}

// bootTime returns the boot time by the current clock. A Host calls it once, so that the boot time
// does not change when the clock is changed.
func bootTime() (time.Time, error) {
	now, up := time.Now(), unix.Timespec{}
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &up); err != nil {
		return time.Time{}, fmt.Errorf("read time since boot: %w", err)
	}
	return now.Add(-time.Duration(up.Nano())).Round(0), nil
}
