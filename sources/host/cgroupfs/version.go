package cgroupfs

import (
	"errors"
	"fmt"
	"math"
)

// Version has the names of the cgroup files that differ between versions 1 and 2, and parses the
// files.
type Version struct {
	// CPUTime is the file with the used CPU time. On version 1 it is in the hierarchy of the cpuacct
	// controller.
	CPUTime string
	// MemoryUsage and MemoryLimit are files of one number, in bytes.
	MemoryUsage, MemoryLimit string
	// InactiveFile, Anonymous and Cache are names of lines in memory.stat. The lines include the
	// cgroups below; see MemoryStat.
	InactiveFile, Anonymous, Cache string
}

// The versions.
var (
	V1 = &Version{"cpuacct.usage", "memory.usage_in_bytes", "memory.limit_in_bytes", "total_inactive_file", "total_rss", "total_cache"}
	V2 = &Version{"cpu.stat", "memory.current", "memory.max", "inactive_file", "anon", "file"}
)

// ParseCPUTime parses the file CPUTime. It returns nanoseconds.
func (v *Version) ParseCPUTime(data []byte) (uint64, error) {
	if v == V1 {
		return ParseUint(data)
	}
	if value, ok := Number(data, "usage_usec"); ok && value < math.MaxUint64/1000 {
		return value * 1000, nil
	}
	return 0, errors.New("parse cpu.stat: no number for usage_usec")
}

// MemoryStat has the figures of memory.stat that a working set needs, in bytes. They include the
// cgroups below.
type MemoryStat struct {
	// InactiveFile is the size of the file pages that were not used recently.
	InactiveFile uint64
	// Anonymous is memory that does not belong to files. Cache is memory with pages of files.
	Anonymous, Cache uint64
}

// ParseMemoryStat parses memory.stat. It returns an error if a figure is missing.
func (v *Version) ParseMemoryStat(data []byte) (s MemoryStat, err error) {
	const all = 1 | 2 | 4
	found := 0
	for name, value := range Pairs(data) {
		switch string(name) {
		case v.InactiveFile:
			s.InactiveFile, found = value, found|1
		case v.Anonymous:
			s.Anonymous, found = value, found|2
		case v.Cache:
			s.Cache, found = value, found|4
		}
		if found == all {
			return s, nil
		}
	}
	return MemoryStat{}, fmt.Errorf("no number for %s, %s or %s", v.InactiveFile, v.Anonymous, v.Cache)
}
