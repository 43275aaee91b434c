//go:build linux

package host

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path"
	"strings"
	"time"

	"github.com/google/cadvisor/lib/container"
	"github.com/google/cadvisor/lib/container/common"
	"github.com/google/cadvisor/lib/container/libcontainer"
	"github.com/google/cadvisor/lib/model"
	"github.com/opencontainers/cgroups"

	"github.com/weir-metrics/weir/sources/host/cgroupfs"
)

// observation is the result of one read of a cgroup.
type observation struct {
	v2 bool
	// noCPUFull is cgroupMounts.noCPUFull.
	noCPUFull bool
	// cpu is the CPU time. cpu.at is zero if it was not read.
	cpu cpuReading
	// stats are cAdvisor's statistics. raw are libcontainer's, which have fields that cAdvisor omits.
	// Only the fields of the controllers in times are valid.
	stats *model.ContainerStats
	raw   *cgroups.Stats
	spec  model.ContainerSpec
	// times has the time, in Unix nanoseconds, of each controller that was read without an error.
	times map[controllerSet]int64
	// ooms is the number of OOM kills; -1 if it is not known.
	ooms int64
	// swap reports whether the kernel counts the cgroup's swap.
	swap bool
	errs []error
}

// has reports whether a controller was read without an error.
func (o *observation) has(c controllerSet) bool { return o.times[c] != 0 }

// cgroupReader reads one cgroup through cAdvisor.
//
// It is a layer between cAdvisor's handler and libcontainer's cgroup managers: it implements the
// manager that the handler calls. Its GetStats reads each controller separately, so a controller
// that fails does not affect the others, and each has its own time.
type cgroupReader struct {
	cgroups.Manager // the manager of all controllers
	cgroup          *cgroupDir
	paths           map[string]string
	observation
}

// handlerOptions are the options of cAdvisor's handler. With a pid it reads the network and the
// limits of that process, with rootFS as the host's root directory.
type handlerOptions struct {
	rootFS  string
	pid     int
	metrics container.MetricSet
}

// sampleOptions are the options for samples. Processes are not included, because cAdvisor would
// read a link for each open file of each process (see processes.go).
var sampleOptions = handlerOptions{"/", 0, container.MetricSet{
	container.CpuUsageMetrics:    {},
	container.MemoryUsageMetrics: {},
	container.DiskIOMetrics:      {},
	container.PressureMetrics:    {},
}}

// readCgroup reads a cgroup. It returns false if that is not possible, for example after the cgroup
// was removed.
func readCgroup(m *cgroupMounts, at *cgroupDir, machine model.MachineInfoFactory, options handlerOptions) (*observation, bool) {
	r := &cgroupReader{cgroup: at, paths: common.MakeCgroupPaths(m.dirs, string(at.path))}
	r.observation = observation{v2: m.v2, noCPUFull: m.noCPUFull, ooms: -1, times: map[controllerSet]int64{}}
	o := &r.observation
	for _, c := range controllers {
		// The root has no pids files.
		if at.controllers&c.bit == 0 || c.bit == pids && at.path == "/" {
			delete(r.paths, c.v1)
		}
	}
	var err error
	if r.Manager, err = libcontainer.NewCgroupManager(string(at.path), r.paths); err != nil {
		r.addError(err)
		return o, false
	}
	if at.controllers&cpuacct != 0 {
		dir := r.paths["cpuacct"]
		if o.v2 {
			dir = r.paths[""]
		}
		o.cpu, err = readCPUTime(dir, o.v2)
		r.addError(err)
	}
	o.stats, err = libcontainer.NewHandler(r, options.rootFS, options.pid, options.metrics).GetStats()
	r.addError(err)
	if o.spec, err = common.GetSpec(r.paths, machine, false, false); err != nil {
		r.addError(fmt.Errorf("read limits: %w", err))
	}
	if at.controllers&memory != 0 {
		if n, err := r.OOMKillCount(); err == nil && n <= math.MaxInt64 {
			o.ooms = int64(n)
		}
		o.swap = r.countsSwap()
	}
	// libcontainer returns zero and no error for a file that was removed.
	return o, o.stats != nil && at.stillExists()
}

func (r *cgroupReader) addError(err error) {
	if err != nil {
		r.errs = append(r.errs, fmt.Errorf("read cgroup %s: %w", r.cgroup.path, err))
	}
}

func (r *cgroupReader) countsSwap() bool {
	file := path.Join(r.paths["memory"], "memory.memsw.usage_in_bytes")
	if r.v2 {
		if r.cgroup.path == "/" {
			return true // it is read from /proc/meminfo
		}
		file = path.Join(r.paths[""], "memory.swap.current")
	}
	_, err := os.Stat(file)
	return err == nil
}

// GetStats reads each controller and merges the results. The handler calls it. It stores errors in
// the observation, because the handler returns no statistics after an error.
func (r *cgroupReader) GetStats() (*cgroups.Stats, error) {
	o := &r.observation
	o.raw = cgroups.NewStats()
	readTogether := []controllerSet{cpuacct | cpu, memory, pids, blkio}
	if o.v2 {
		readTogether = []controllerSet{r.cgroup.controllers}
	}
	for _, bits := range readTogether {
		manager := r.managerOf(bits)
		if manager == nil {
			continue
		}
		before := time.Now()
		st, err := manager.GetStats()
		at := before.Add(time.Since(before) / 2)
		failed := controllerSet(0)
		if err != nil && !r.isIgnorable(err) {
			r.addError(err)
			failed = r.failedControllers(bits, err)
		}
		if st == nil {
			continue
		}
		for _, c := range controllers {
			if bits&r.cgroup.controllers&^failed&c.bit != 0 {
				o.times[c.bit] = at.UnixNano()
			}
		}
		mergeStats(o.raw, st, bits)
	}
	return o.raw, nil
}

// managerOf returns a manager that reads only the controllers in bits. It returns nil if the cgroup
// has none of them. On version 2 the manager reads all controllers.
func (r *cgroupReader) managerOf(bits controllerSet) cgroups.Manager {
	if r.v2 {
		return r.Manager
	}
	own := map[string]string{}
	for _, c := range controllers {
		if dir, ok := r.paths[c.v1]; ok && bits&c.bit != 0 {
			own[c.v1] = dir
		}
	}
	if len(own) == 0 {
		return nil
	}
	manager, err := libcontainer.NewCgroupManager(string(r.cgroup.path), own)
	if err != nil {
		r.addError(err)
		return nil
	}
	return manager
}

// isIgnorable reports whether err concerns files that the root of version 2 never has.
func (r *cgroupReader) isIgnorable(err error) bool {
	return r.v2 && r.cgroup.path == "/" && strings.Contains(err.Error(), "no such file")
}

// failedControllers returns the controllers in bits that err concerns. On version 1, bits are
// controllers of one hierarchy. On version 2 all controllers are read together, and libcontainer
// joins the errors into one text; only the file names in it show the controllers.
func (r *cgroupReader) failedControllers(bits controllerSet, err error) controllerSet {
	if !r.v2 {
		return bits
	}
	var failed controllerSet
	for _, c := range controllers {
		if strings.Contains(err.Error(), "/"+c.v2+".") {
			failed |= c.bit
		}
	}
	if failed == 0 {
		return bits
	}
	return failed
}

// mergeStats copies the statistics of the controllers in bits.
func mergeStats(to, from *cgroups.Stats, bits controllerSet) {
	if bits&(cpuacct|cpu) != 0 {
		to.CpuStats = from.CpuStats
	}
	if bits&memory != 0 {
		to.MemoryStats = from.MemoryStats
	}
	if bits&pids != 0 {
		to.PidsStats = from.PidsStats
	}
	if bits&blkio != 0 {
		to.BlkioStats = from.BlkioStats
	}
	// Version 2 has pressure without a controller.
	to.CpuStats.PSI = cmp.Or(to.CpuStats.PSI, from.CpuStats.PSI)
	to.MemoryStats.PSI = cmp.Or(to.MemoryStats.PSI, from.MemoryStats.PSI)
	to.BlkioStats.PSI = cmp.Or(to.BlkioStats.PSI, from.BlkioStats.PSI)
}

// cpuReading is the CPU time of a cgroup with the time of the read.
//
// The kernel reports no time with the value. The time of the read is between two readings of the
// clock, before and after it; at is the middle between them and uncertainty their distance. If this
// process lost the CPU between them, the distance is large, and the read is repeated. The attempt
// with the smallest distance is used. The error of at is at most half of uncertainty.
type cpuReading struct {
	nanoseconds uint64
	at          time.Time
	uncertainty time.Duration
}

const (
	// maxUncertainty is the largest distance with which the first attempt is used: about 20 times an
	// undisturbed read, and 1e-5 of the shortest window of a rate.
	maxUncertainty = 100 * time.Microsecond
	maxTries       = 3
)

// readCPUTime reads the CPU time of a cgroup from its directory: cpuacct.usage on version 1,
// usage_usec in cpu.stat on version 2.
func readCPUTime(dir string, v2 bool) (cpuReading, error) {
	version := cgroupfs.V1
	if v2 {
		version = cgroupfs.V2
	}
	file, err := os.Open(path.Join(dir, version.CPUTime))
	if err != nil {
		return cpuReading{}, fmt.Errorf("read CPU time: %w", err)
	}
	defer file.Close()
	var best cpuReading
	var data [1024]byte // usage_usec is cpu.stat's first line
	for try := range maxTries {
		before := time.Now()
		n, err := file.ReadAt(data[:], 0)
		uncertainty := time.Since(before)
		if err != nil && !errors.Is(err, io.EOF) {
			return cpuReading{}, fmt.Errorf("read CPU time: %w", err)
		}
		if try > 0 && uncertainty >= best.uncertainty {
			continue
		}
		value, err := version.ParseCPUTime(data[:n])
		if err != nil {
			return cpuReading{}, fmt.Errorf("read CPU time: parse %s: %w", file.Name(), err)
		}
		best = cpuReading{value, before.Add(uncertainty / 2), uncertainty}
		if uncertainty <= maxUncertainty {
			break
		}
	}
	return best, nil
}
