// Package cgroupfs finds the cgroup hierarchies of a machine and parses the text files in which
// Linux reports figures. The packages host, inspect, vitals and disk use it; each of them reads
// different files.
//
//	hierarchies, err := cgroupfs.Find("", "/proc") // version 1, version 2 or both
//	dir := hierarchies.ControllerDir("memory")     // the version 1 hierarchy that counts memory
//	roots, err := cgroupfs.FindPodRoots(dir)       // the kubepods cgroups
//	ns, err := cgroupfs.V1.ParseCPUTime(data)
//
// The files of this package: hierarchy.go finds hierarchies and kubepods cgroups;
// mountinfo.go parses mountinfo; version.go has the differences between versions 1 and 2;
// parse.go parses the formats that cgroup files and /proc have in common;
// errors.go recognises removed cgroups, and collects errors. The parsers do no I/O.
// Package podcgroup parses the paths of cgroups.
package cgroupfs

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"math"
	"strconv"
	"strings"

	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/weir-metrics/weir/metric"
)

// NoLimit is the lowest number that means "no limit". Version 1 writes the largest multiple of the
// page size below 2^63. Version 2 writes "max".
const NoLimit = 1 << 62

// ParseUint parses a file with one number. It returns math.MaxUint64 for "max".
func ParseUint(data []byte) (uint64, error) {
	text := bytes.TrimSpace(data)
	if string(text) == "max" {
		return math.MaxUint64, nil
	}
	return strconv.ParseUint(string(text), 10, 64)
}

// Pairs returns the names and numbers of lines such as "pgfault 7" and "MemTotal: 16 kB".
// Numbers in kB are returned in bytes. A name has no colon and is a slice of data. Other lines
// are ignored.
func Pairs(data []byte) iter.Seq2[[]byte, uint64] {
	return func(yield func([]byte, uint64) bool) {
		for len(data) > 0 {
			var line []byte
			line, data, _ = bytes.Cut(data, newline)
			name, rest := field(line)
			number, rest := field(rest)
			unit, rest := field(rest)
			value, err := strconv.ParseUint(string(number), 10, 64)
			if err != nil || len(bytes.TrimSpace(rest)) > 0 {
				continue
			}
			switch string(unit) {
			case "":
			case "kB":
				if value > math.MaxUint64/1024 {
					continue
				}
				value *= 1024
			default:
				continue
			}
			if !yield(bytes.TrimSuffix(name, colon), value) {
				return
			}
		}
	}
}

// Number returns the number of the first line with this name, in the form of Pairs. ok is false if there is
// none.
func Number(data []byte, name string) (value uint64, ok bool) {
	for key, value := range Pairs(data) {
		if string(key) == name {
			return value, true
		}
	}
	return 0, false
}

var newline, colon = []byte("\n"), []byte(":")

// field returns the first word of a line, and the rest of the line.
func field(line []byte) (word, rest []byte) {
	from := 0
	for from < len(line) && blank(line[from]) {
		from++
	}
	to := from
	for to < len(line) && !blank(line[to]) {
		to++
	}
	return line[from:to], line[to:]
}

func blank(c byte) bool { return c == ' ' || c == '\t' }

// ParseThreads returns the number of threads of the machine from /proc/loadavg. Each thread has
// a process ID.
func ParseThreads(loadavg []byte) (int64, error) {
	var loads [3]float64
	var runnable, all, lastPID uint32
	if _, err := fmt.Sscanf(string(bytes.TrimSpace(loadavg)), "%g %g %g %d/%d %d", &loads[0], &loads[1], &loads[2], &runnable, &all, &lastPID); err != nil {
		return 0, fmt.Errorf("parse loadavg %q: %w", loadavg, err)
	}
	return int64(all), nil
}

// ProcessIDs returns the process IDs in cgroup.procs. 0 is a process of another PID namespace.
// A line that is not a process ID yields an error.
func ProcessIDs(data []byte) iter.Seq2[int, error] {
	return func(yield func(int, error) bool) {
		for line := range bytes.Lines(data) {
			pid, err := strconv.Atoi(string(bytes.TrimSpace(line)))
			if err != nil || pid < 0 {
				pid, err = 0, fmt.Errorf("%q is not a process ID", line)
			}
			if !yield(pid, err) {
				return
			}
		}
	}
}

// ProcessCgroups returns the cgroup of a process in each hierarchy, from its cgroup file: by the number of
// the hierarchy.
func ProcessCgroups(data string) iter.Seq2[string, metric.CgroupPath] {
	return func(yield func(string, metric.CgroupPath) bool) {
		for line := range strings.Lines(data) {
			// hierarchy:controllers:path
			fields := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
			if len(fields) == 3 && !yield(fields[0], metric.CgroupPath(fields[2])) {
				return
			}
		}
	}
}

// ParsePressure parses a pressure (PSI) file such as /proc/pressure/cpu, or cpu.pressure of a
// cgroup. Totals are in microseconds, and Total*1000 does not overflow. Full is zero if the
// kernel does not report it (older kernels, for the CPUs of the machine).
func ParsePressure(data []byte) (p stats.PSIStats, err error) {
	found := false
	for line := range bytes.Lines(data) {
		kind, rest := field(line)
		var to *stats.PSIData
		switch string(kind) {
		case "some":
			to, found = &p.Some, true
		case "full":
			to = &p.Full
		default:
			continue
		}
		_, err := fmt.Sscanf(string(rest), " avg10=%g avg60=%g avg300=%g total=%d", &to.Avg10, &to.Avg60, &to.Avg300, &to.Total)
		if err != nil {
			return stats.PSIStats{}, fmt.Errorf("parse pressure: %s: %w", kind, err)
		}
		for _, percent := range [...]float64{to.Avg10, to.Avg60, to.Avg300} {
			if !(percent >= 0 && percent <= 100) {
				return stats.PSIStats{}, fmt.Errorf("parse pressure: %s: %v is not a percentage", kind, percent)
			}
		}
		if to.Total > math.MaxUint64/1000 {
			return stats.PSIStats{}, fmt.Errorf("parse pressure: %s: total=%d is too large", kind, to.Total)
		}
	}
	if !found {
		return stats.PSIStats{}, errors.New("parse pressure: no line starts with \"some\"")
	}
	return p, nil
}
