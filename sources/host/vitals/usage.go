//go:build linux

package vitals

import (
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/weir-metrics/weir/sources/host/cgroupfs"
)

// memory is the memory of a cgroup. Its pointers point to its own fields, so it is one
// allocation.
type memory struct {
	stats.MemoryStats
	usage, workingSet, rss, available uint64
}

// readMemory reads the memory of a cgroup. Figures that could not be read are nil.
func (r *round) readMemory(c *cgroup) (*memory, error) {
	m := &memory{}
	var err, limitErr error
	if m.usage, err = r.readNumber(&c.usage, c.dir); err == nil {
		m.UsageBytes = &m.usage
	}
	m.Time = metav1.NewTime(time.Now())
	s, statErr := r.readMemoryStat(c)
	if statErr == nil {
		m.fill(&s)
	}
	var limit uint64
	if limit, limitErr = r.readNumber(&c.limit, c.dir); limitErr == nil && limit < cgroupfs.NoLimit && m.WorkingSetBytes != nil {
		m.available = limit - min(m.workingSet, limit)
		m.AvailableBytes = &m.available
	}
	return m, errors.Join(err, statErr, limitErr)
}

// readRoot reads the memory of the root cgroup. On version 2 that has no file with the usage,
// and the usage is the sum of anonymous memory and page cache, as in the kubelet and at the
// root of version 1.
func (r *round) readRoot(c *cgroup) (*memory, error) {
	m := &memory{}
	usage, err := r.readNumber(&c.usage, c.dir)
	m.Time = metav1.NewTime(time.Now())
	s, statErr := r.readMemoryStat(c)
	if err != nil && cgroupfs.IsRemoved(err) && statErr == nil {
		usage, err = s.Anonymous+s.Cache, nil
	}
	if err == nil {
		m.usage = usage
		m.UsageBytes = &m.usage
	}
	if statErr == nil {
		m.fill(&s)
	}
	return m, errors.Join(err, statErr)
}

// fill sets the figures from memory.stat.
func (m *memory) fill(s *cgroupfs.MemoryStat) {
	m.rss = s.Anonymous
	m.RSSBytes = &m.rss
	if m.UsageBytes != nil {
		m.workingSet = m.usage - min(s.InactiveFile, m.usage)
		m.WorkingSetBytes = &m.workingSet
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
	// anonymous, cache (with buffers) and inactive replace the root cgroup's figures if it
	// has none.
	anonymous, cache, inactive uint64
	complete                   bool // all fields except total were found
}

func parseMeminfo(data []byte) (m meminfo, err error) {
	found := 0
	for name, value := range cgroupfs.Pairs(data) {
		switch string(name) {
		case "MemTotal":
			m.total, found = value, found|1
		case "AnonPages":
			m.anonymous, found = value, found|2
		case "Cached":
			m.cache, found = m.cache+value, found|4
		case "Buffers":
			m.cache, found = m.cache+value, found|8
		case "Inactive(file)":
			m.inactive, found = value, found|16
		}
	}
	m.complete = found|1 == 31
	if found&1 == 0 {
		return m, errors.New("no number for MemTotal")
	}
	return m, nil
}

// minRateWindow is the shortest window of a CPU rate. Notifications of the kernel can follow
// each other within milliseconds, which is too short for a rate.
const minRateWindow = time.Second

// cpuReading is a counter of CPU time in nanoseconds, and when it was read.
type cpuReading struct {
	at    time.Time
	value uint64
}

// cpuRate keeps two readings that are at least minRateWindow apart, so at any later read one of
// them is old enough. The zero cpuRate has no reading.
type cpuRate struct{ older, newer cpuReading }

// update adds a reading and returns the rate since an earlier one, in nanocores. It returns
// false if none is old enough.
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
