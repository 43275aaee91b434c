//go:build linux

package vitals

import (
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/weir-metrics/weir/sources/host/kernel"
)

// version is how a version of cgroups calls what is read of a cgroup's memory.
type version struct {
	usage, limit string
	// inactive, anonymous and file are lines of memory.stat, which count what is below too. file
	// is of use only in version 2.
	inactive, anonymous, file string
}

var versions = [...]version{
	{"memory.usage_in_bytes", "memory.limit_in_bytes", "total_inactive_file", "total_rss", "total_cache"},
	{"memory.current", "memory.max", "inactive_file", "anon", "file"},
}

// memory is what a cgroup has of it, with room for the figures, so that all of it is one
// allocation.
type memory struct {
	stats.MemoryStats
	usage, workingSet, rss, available uint64
}

// readMemory reads the memory of a cgroup. What the error is about is nil.
func (r *round) readMemory(c *cgroup) (*memory, error) {
	m := &memory{}
	var err, limitErr error
	if m.usage, err = r.number(&c.usage, c.dir); err == nil {
		m.UsageBytes = &m.usage
	}
	m.Time = metav1.NewTime(time.Now())
	s, statErr := r.memoryStat(c)
	if statErr == nil {
		m.fill(&s)
	}
	var limit uint64
	if limit, limitErr = r.number(&c.limit, c.dir); limitErr == nil && limit < kernel.NoLimit && m.WorkingSetBytes != nil {
		m.available = limit - min(m.workingSet, limit)
		m.AvailableBytes = &m.available
	}
	return m, errors.Join(err, statErr, limitErr)
}

// readRoot reads the memory of the root cgroup, which in version 2 has no usage of its own: it
// is then the sum of anonymous memory and page cache, as the kubelet has it, and as version 1
// counts at its root.
func (r *round) readRoot(c *cgroup) (*memory, error) {
	m := &memory{}
	usage, err := r.number(&c.usage, c.dir)
	m.Time = metav1.NewTime(time.Now())
	s, statErr := r.memoryStat(c)
	if err != nil && gone(err) && statErr == nil {
		usage, err = s.anonymous+s.file, nil
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

// fill sets what follows from memory.stat.
func (m *memory) fill(s *memoryStat) {
	m.rss = s.anonymous
	m.RSSBytes = &m.rss
	if m.UsageBytes != nil {
		m.workingSet = m.usage - min(s.inactive, m.usage)
		m.WorkingSetBytes = &m.workingSet
	}
}

// memoryStat is what is of use of memory.stat, in bytes.
type memoryStat struct{ inactive, anonymous, file uint64 }

func (r *round) memoryStat(c *cgroup) (memoryStat, error) {
	data, err := r.read(&c.stat, c.dir)
	if err != nil {
		return memoryStat{}, err
	}
	s, err := parseMemoryStat(data, r.version)
	if err != nil {
		return memoryStat{}, fmt.Errorf("memory.stat: %w", err)
	}
	return s, nil
}

func parseMemoryStat(data []byte, v *version) (s memoryStat, err error) {
	const all = 1 | 2 | 4
	found := 0
	for name, value := range kernel.Pairs(data) {
		switch string(name) {
		case v.inactive:
			s.inactive, found = value, found|1
		case v.anonymous:
			s.anonymous, found = value, found|2
		case v.file:
			s.file, found = value, found|4
		}
		if found == all {
			return s, nil
		}
	}
	return memoryStat{}, fmt.Errorf("no number for %s, %s or %s", v.inactive, v.anonymous, v.file)
}

// meminfo is what is of use of /proc/meminfo, in bytes.
type meminfo struct {
	total uint64
	// anonymous, cache (with buffers) and inactive stand for the root cgroup's where it tells
	// nothing.
	anonymous, cache, inactive uint64
	complete                   bool // all but total are there
}

func parseMeminfo(data []byte) (m meminfo, err error) {
	found := 0
	for name, value := range kernel.Pairs(data) {
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
