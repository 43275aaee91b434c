package notify

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/weir-metrics/weir/eviction"
)

// Stalls are what a pressure file tells.
type Stalls struct {
	eviction.Stalls
	// SomeTotal and FullTotal count up from the boot, or from the cgroup's making.
	SomeTotal, FullTotal time.Duration
	// HasFull is false for cpu on a kernel before 5.13, which has no such line.
	HasFull bool
}

// ParseStalls parses a file of /proc/pressure, or *.pressure of a cgroup. Lines and figures
// it does not know are left out; a line "some" there must be.
func ParseStalls(b []byte) (Stalls, error) {
	var s Stalls
	hasSome := false
	for line := range strings.Lines(string(b)) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		var stall *eviction.Stall
		var total *time.Duration
		switch words[0] {
		case "some":
			stall, total, hasSome = &s.Some, &s.SomeTotal, true
		case "full":
			stall, total, s.HasFull = &s.Full, &s.FullTotal, true
		default:
			continue
		}
		for _, word := range words[1:] {
			if err := stallFigure(word, stall, total); err != nil {
				return Stalls{}, fmt.Errorf("parse pressure: line %q: %w", strings.TrimSpace(line), err)
			}
		}
	}
	if !hasSome {
		return Stalls{}, fmt.Errorf("parse pressure: no line \"some\" in %q", clip(b))
	}
	return s, nil
}

// stallFigure sets what one word, such as avg10=0.12, tells.
func stallFigure(word string, stall *eviction.Stall, total *time.Duration) error {
	name, figure, ok := strings.Cut(word, "=")
	if !ok {
		return fmt.Errorf("%q has no =", word)
	}
	var average *float64
	switch name {
	case "avg10":
		average = &stall.Avg10
	case "avg60":
		average = &stall.Avg60
	case "avg300":
		average = &stall.Avg300
	case "total":
		us, err := strconv.ParseUint(figure, 10, 64)
		if err != nil || us > uint64(1<<63-1)/1000 {
			return fmt.Errorf("%q is no number of microseconds", word)
		}
		*total = time.Duration(us) * time.Microsecond
		return nil
	default:
		return nil
	}
	f, err := strconv.ParseFloat(figure, 64)
	if err != nil || !(f >= 0 && f <= 100) {
		return fmt.Errorf("%q is no percentage", word)
	}
	*average = f
	return nil
}

// counter is a line of a cgroup's file of counters.
type counter struct {
	name  string
	value uint64
}

// parseCounters parses lines of a name and a number.
func parseCounters(b []byte) (list []counter, err error) {
	for len(b) > 0 {
		var line []byte
		line, b, _ = bytes.Cut(b, []byte{'\n'})
		name, value, ok := bytes.Cut(line, []byte{' '})
		if len(line) == 0 {
			continue
		}
		n, err := strconv.ParseUint(string(value), 10, 64)
		if !ok || len(name) == 0 || err != nil {
			return nil, fmt.Errorf("parse counters: %q is no name and number", clip(line))
		}
		list = append(list, counter{string(name), n})
	}
	return list, nil
}

// changes are the counters that are not as they were. One that is new counts from zero.
func changes(was, is []counter) (list []Change) {
	before := make(map[string]uint64, len(was))
	for _, c := range was {
		before[c.name] = c.value
	}
	for _, c := range is {
		if from := before[c.name]; from != c.value {
			list = append(list, Change{c.name, from, c.value})
		}
	}
	return list
}

// inactiveFile is the page cache, in bytes, that the kernel could drop, of a memory.stat
// of either version, with that of the cgroups below. It scans for the one line: the file is
// long and read often.
func inactiveFile(b []byte) (int64, error) {
	// Version 1 has a figure of the cgroup alone and one, total_, of all below it;
	// version 2 has only the latter, under the former's name.
	for _, name := range []string{"\ntotal_inactive_file ", "\ninactive_file "} {
		_, rest, ok := bytes.Cut(b, []byte(name))
		if !ok && bytes.HasPrefix(b, []byte(name[1:])) {
			rest, ok = b[len(name)-1:], true
		}
		if !ok {
			continue
		}
		value, _, _ := bytes.Cut(rest, []byte{'\n'})
		n, err := strconv.ParseInt(string(value), 10, 64)
		if err != nil || n < 0 {
			return 0, fmt.Errorf("parse memory.stat: %s: %q is no number of bytes", name[1:], clip(value))
		}
		return n, nil
	}
	return 0, fmt.Errorf("parse memory.stat: no inactive_file in %q", clip(b))
}

// parseBytes parses a file that is one number of bytes.
func parseBytes(b []byte) (int64, error) {
	n, err := strconv.ParseInt(string(bytes.TrimSuffix(b, []byte{'\n'})), 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%q is no number of bytes", clip(b))
	}
	return n, nil
}

// clip keeps errors short.
func clip(b []byte) []byte { return b[:min(len(b), 60)] }
