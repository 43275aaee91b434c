//go:build linux

package vitals

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/weir-metrics/weir/sources/host/cgroupfs"
	"github.com/weir-metrics/weir/sources/host/podcgroup"
)

// readMemory reads the memory of a cgroup. Figures that could not be read are nil. The result is
// nil if there are no figures.
//
// The root cgroup has no limit. On version 2 it also has no file with the usage. The usage is then
// the sum of anonymous memory and page cache, as in the kubelet and at the root of version 1.
func (r *round) readMemory(c *cgroup) (*stats.MemoryStats, error) {
	usage, err := r.readNumber(&c.usage, c.dir)
	m := &stats.MemoryStats{Time: metav1.Now()}
	s, statErr := r.readMemoryStat(c)
	if c.path == "/" && cgroupfs.IsRemoved(err) && statErr == nil {
		usage, err = s.Anonymous+s.Cache, nil
	}
	if err == nil {
		m.UsageBytes = &usage
	}
	if statErr == nil {
		addMemoryStat(m, &s)
	}
	var limitErr error
	if c.path != "/" && (c.Kind != podcgroup.Pod || r.depth > Memory) {
		var limit uint64
		limit, limitErr = r.readNumber(&c.limit, c.dir)
		if limitErr == nil && limit < cgroupfs.NoLimit && m.WorkingSetBytes != nil {
			m.AvailableBytes = new(limit - min(*m.WorkingSetBytes, limit))
		}
	}
	if m.UsageBytes == nil && m.RSSBytes == nil {
		m = nil
	}
	return m, errors.Join(err, statErr, limitErr)
}

func addMemoryStat(m *stats.MemoryStats, s *cgroupfs.MemoryStat) {
	m.RSSBytes = new(s.Anonymous)
	if m.UsageBytes != nil {
		m.WorkingSetBytes = new(*m.UsageBytes - min(s.InactiveFile, *m.UsageBytes))
	}
}

func (r *round) readMemoryStat(c *cgroup) (s cgroupfs.MemoryStat, err error) {
	data, err := r.read(&c.stat, c.dir)
	if err != nil {
		return s, err
	}
	if s, err = r.version.ParseMemoryStat(data); err != nil {
		return s, fmt.Errorf("memory.stat: %w", err)
	}
	return s, nil
}

// meminfo has the used fields of /proc/meminfo, in bytes.
type meminfo struct {
	total uint64
	// MemoryStat replaces the figures of the root cgroup if it has none. Its Cache includes buffers.
	cgroupfs.MemoryStat
	complete bool // whether all fields except total were found
}

func parseMeminfo(data []byte) (m meminfo, err error) {
	var buffers uint64
	missing := readMeminfo(data, meminfoField{"MemTotal", &m.total}, meminfoField{"AnonPages", &m.Anonymous}, meminfoField{"Cached", &m.Cache},
		meminfoField{"Buffers", &buffers}, meminfoField{"Inactive(file)", &m.InactiveFile})
	if slices.Contains(missing, "MemTotal") {
		return meminfo{}, errors.New("no number for MemTotal")
	}
	m.complete = len(missing) == 0
	m.Cache += buffers
	return m, nil
}

// meminfoField is a field of /proc/meminfo, and where its bytes go.
type meminfoField struct {
	name  string
	bytes *uint64
}

// readMeminfo sets fields of /proc/meminfo, and returns the names of those that it does not have. It
// stops at the last of them, because the rest of the file is longer.
func readMeminfo(data []byte, fields ...meminfoField) (missing []string) {
	found := 0
	for name, value := range cgroupfs.Pairs(data) {
		for i, f := range fields {
			if f.bytes != nil && string(name) == f.name {
				*f.bytes = value
				fields[i].bytes = nil
				found++
			}
		}
		if found == len(fields) {
			return nil
		}
	}
	for _, f := range fields {
		if f.bytes != nil {
			missing = append(missing, f.name)
		}
	}
	return missing
}

// minRateWindow is the shortest window of a CPU rate. Notices of the kernel can follow each other
// within milliseconds, which is too short for a rate.
const minRateWindow = time.Second

// cpuReading is a counter of CPU time in nanoseconds, with the time of the read.
type cpuReading struct {
	at    time.Time
	value uint64
}

// cpuRate keeps two readings that are at least minRateWindow apart, so that one of them is old
// enough at any later read. The zero cpuRate has no reading.
type cpuRate struct{ older, newer cpuReading }

// update adds a reading and returns the rate since an earlier one, in nanocores. It returns false
// if no reading is old enough.
func (r *cpuRate) update(now cpuReading) (uint64, bool) {
	if r.newer.at.IsZero() || now.value < r.newer.value || now.at.Before(r.newer.at) {
		*r = cpuRate{newer: now}
		return 0, false
	}
	since := r.older
	if now.at.Sub(r.newer.at) >= minRateWindow {
		since, r.older, r.newer = r.newer, r.newer, now
	}
	if since.at.IsZero() {
		return 0, false
	}
	return uint64(float64(now.value-since.value) / now.at.Sub(since.at).Seconds()), true
}

// readCPU reads a pod's CPU time. It returns nil if version 1 has no cpuacct controller.
func (r *round) readCPU(c *cgroup) (*stats.CPUStats, error) {
	if r.version == cgroupfs.V1 && r.cpuacctDir == "" {
		return nil, nil
	}
	data, err := r.read(&c.cpu, c.dir)
	if err != nil {
		return nil, cgroupfs.IgnoreRemoved(err) // on version 1 the cgroup may exist in another hierarchy only
	}
	n, err := r.version.ParseCPUTime(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.cpu.name, err)
	}
	now := cpuReading{time.Now(), n}
	s := &stats.CPUStats{Time: metav1.NewTime(now.at), UsageCoreNanoSeconds: &n}
	if rate, ok := c.rate.update(now); ok {
		s.UsageNanoCores = &rate
	}
	return s, nil
}

// pressureFiles are the pressure (PSI) files of the node or of a cgroup.
type pressureFiles struct{ cpu, memory, io openFile }

func (p *pressureFiles) close() {
	for _, h := range [...]*openFile{&p.cpu, &p.memory, &p.io} {
		h.close()
	}
}

// readPressure adds pressure to the figures of the node or of a cgroup. The files' names may be
// relative to the directory at. Some kernels do not have them.
func (r *round) readPressure(from *pressureFiles, at int, cpu **stats.CPUStats, memory **stats.MemoryStats, io **stats.IOStats) error {
	var errs []error
	read := func(h *openFile) (*stats.PSIStats, metav1.Time) {
		data, err := r.read(h, at)
		now := metav1.Now()
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EOPNOTSUPP) {
			return nil, now
		}
		var p stats.PSIStats
		if err == nil {
			if p, err = cgroupfs.ParsePressure(data); err != nil {
				err = fmt.Errorf("%s: %w", h.name, err)
			}
		}
		if err != nil {
			errs = append(errs, err)
			return nil, now
		}
		return &p, now
	}
	if psi, readAt := read(&from.cpu); psi != nil {
		if *cpu == nil {
			*cpu = &stats.CPUStats{Time: readAt}
		}
		(*cpu).PSI = psi
	}
	if psi, readAt := read(&from.memory); psi != nil {
		if *memory == nil {
			*memory = &stats.MemoryStats{Time: readAt}
		}
		(*memory).PSI = psi
	}
	if psi, readAt := read(&from.io); psi != nil {
		*io = &stats.IOStats{Time: readAt, PSI: psi}
	}
	return errors.Join(errs...)
}
