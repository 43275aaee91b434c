// Package kernel reads the small text files by which Linux tells its figures: those
// of /proc and of cgroups. It parses what it is given and does no I/O.
package kernel

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"math"
	"strconv"
)

// NoLimit is where version 1 of cgroups says that there is no limit: it writes the largest
// multiple of a page below 2^63, and version 2 "max".
const NoLimit = 1 << 62

// ParseUint reads a file that is one number. "max", a limit of version 2 that is none, is the
// largest there is.
func ParseUint(data []byte) (uint64, error) {
	text := bytes.TrimSpace(data)
	if string(text) == "max" {
		return math.MaxUint64, nil
	}
	return strconv.ParseUint(string(text), 10, 64)
}

// Pairs returns what lines of a name and a number say: "pgfault 7", or in bytes "MemTotal: 16 kB".
// The names are without the colon, and last as long as data. Lines of anything else are left out.
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

// field returns the first word of a line, and what follows.
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

// ParseCPUStat reads usage_usec from cpu.stat, in nanoseconds.
func ParseCPUStat(data []byte) (uint64, error) {
	for name, value := range Pairs(data) {
		if string(name) == "usage_usec" && value < math.MaxUint64/1000 {
			return value * 1000, nil
		}
	}
	return 0, errors.New("parse cpu.stat: no number for usage_usec")
}

// ParseThreads reads from loadavg how many threads the machine has: each of them takes
// a process number.
func ParseThreads(loadavg []byte) (int64, error) {
	// 0.20 0.18 0.12 1/80 11206: the fourth are the runnable and all.
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

// CountLines returns how many lines of a part of a file end: of a list of processes, how many
// there are.
func CountLines(data []byte) int { return bytes.Count(data, newline) }

// Pressure is what a pressure file says: how long tasks waited for a resource.
type Pressure struct {
	// Some is when at least one task waited, Full when all did. The kernel leaves Full out where it
	// means nothing (older ones for the processors of the whole machine): it is zero then.
	Some, Full Stall
}

// Stall is a line of a pressure file.
type Stall struct {
	// Avg10, Avg60 and Avg300 are percentages of the last so many seconds.
	Avg10, Avg60, Avg300 float64
	// Total is the microseconds since the machine, or the cgroup, began. It fits nanoseconds.
	Total uint64
}

// ParsePressure reads /proc/pressure/cpu and its like, and cpu.pressure of a cgroup.
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
			s.Total, err = strconv.ParseUint(string(text), 10, 54) // 54: room for nanoseconds
		} else if *one.avg, err = strconv.ParseFloat(string(text), 64); err == nil && !(*one.avg >= 0 && *one.avg <= 100) {
			err = errors.New("not a percentage")
		}
		if err != nil {
			return Stall{}, fmt.Errorf("%s: %w", word, err)
		}
	}
	return s, nil
}
