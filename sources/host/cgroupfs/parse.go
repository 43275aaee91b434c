// Package cgroupfs finds the cgroup hierarchies of a machine and parses the text files in which
// Linux reports figures. The packages host, inspect, vitals and disk share it; each of them
// reads other files.
//
//	hierarchies, err := cgroupfs.Find("", "/proc") // version 1, version 2 or both
//	dir := hierarchies.ControllerDir("memory")     // where version 1 counts memory
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
)

// NoLimit is the lowest number that means "no limit". Version 1 writes the largest multiple
// of a page below 2^63. Version 2 writes "max".
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
	// 0.20 0.18 0.12 1/80 11206: the fourth field is RUNNABLE/ALL.
	fields := bytes.Fields(loadavg)
	if len(fields) < 5 {
		return 0, fmt.Errorf("parse loadavg: %d fields, want 5", len(fields))
	}
	_, all, ok := bytes.Cut(fields[3], []byte("/"))
	if !ok {
		return 0, fmt.Errorf("parse loadavg: no slash in %q", fields[3])
	}
	n, err := strconv.ParseUint(string(all), 10, 63)
	if err != nil {
		return 0, fmt.Errorf("parse loadavg: %w", err)
	}
	return int64(n), nil
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

// Pressure is the content of a pressure (PSI) file: how long tasks waited for a resource.
type Pressure struct {
	// Some is the time in which at least one task waited. Full is the time in which all
	// tasks did; it is zero if the kernel does not report it (older kernels, for the CPUs of
	// the machine).
	Some, Full Stall
}

// Stall is a line of a pressure file.
type Stall struct {
	// Avg10, Avg60 and Avg300 are percentages of the last 10, 60 and 300 seconds.
	Avg10, Avg60, Avg300 float64
	// Total is in microseconds since the start of the machine or the cgroup. Total*1000 does
	// not overflow.
	Total uint64
}

// ParsePressure parses a file such as /proc/pressure/cpu, or cpu.pressure of a cgroup.
func ParsePressure(data []byte) (Pressure, error) {
	var p Pressure
	found := false
	for line := range bytes.Lines(data) {
		kind, rest := field(bytes.TrimSuffix(line, newline))
		var to *Stall
		switch string(kind) {
		case "some":
			to, found = &p.Some, true
		case "full":
			to = &p.Full
		default:
			continue
		}
		var err error
		if *to, err = parseStall(rest); err != nil {
			return Pressure{}, fmt.Errorf("parse pressure: %s: %w", kind, err)
		}
	}
	if !found {
		return Pressure{}, errors.New("parse pressure: no line starts with \"some\"")
	}
	return p, nil
}

func parseStall(fields []byte) (s Stall, err error) {
	for _, one := range [...]struct {
		name string
		avg  *float64
	}{{"avg10=", &s.Avg10}, {"avg60=", &s.Avg60}, {"avg300=", &s.Avg300}, {"total=", nil}} {
		word, rest := field(fields)
		fields = rest
		text, ok := bytes.CutPrefix(word, []byte(one.name))
		if !ok {
			return Stall{}, fmt.Errorf("%q where %s should be", word, one.name)
		}
		if one.avg == nil {
			s.Total, err = strconv.ParseUint(string(text), 10, 54) // 54 bits: Total*1000 fits
		} else if *one.avg, err = strconv.ParseFloat(string(text), 64); err == nil && !(*one.avg >= 0 && *one.avg <= 100) {
			err = errors.New("not a percentage")
		}
		if err != nil {
			return Stall{}, fmt.Errorf("%s: %w", word, err)
		}
	}
	return s, nil
}
