package notify

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// stallTotals is how long tasks have stalled in total, since the boot or since the cgroup was
// created.
type stallTotals struct {
	some, full time.Duration
	hasFull    bool // false for cpu before Linux 5.13, where the line does not exist
}

// parseStallTotals parses a file of /proc/pressure, or a *.pressure file of a cgroup. It ignores
// lines and fields that it does not know. The line "some" is required.
func parseStallTotals(b []byte) (stallTotals, error) {
	var t stallTotals
	hasSome := false
	for line := range strings.Lines(string(b)) {
		share, fields, _ := strings.Cut(strings.TrimSpace(line), " ")
		var total *time.Duration
		switch share {
		case "some":
			total, hasSome = &t.some, true
		case "full":
			total, t.hasFull = &t.full, true
		default:
			continue
		}
		for field := range strings.FieldsSeq(fields) {
			figure, ok := strings.CutPrefix(field, "total=")
			if !ok {
				continue
			}
			us, err := strconv.ParseUint(figure, 10, 64)
			if err != nil || us > math.MaxInt64/1000 {
				return stallTotals{}, fmt.Errorf("parse pressure: line %q: %q is no number of microseconds", strings.TrimSpace(line), field)
			}
			*total = time.Duration(us) * time.Microsecond
		}
	}
	if !hasSome {
		return stallTotals{}, fmt.Errorf("parse pressure: no line \"some\" in %q", truncate(b))
	}
	return t, nil
}

// parseCounters parses lines with a name and a number.
func parseCounters(b []byte) (map[string]uint64, error) {
	counters := map[string]uint64{}
	for line := range strings.Lines(string(b)) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		n, err := strconv.ParseUint(value, 10, 64)
		if name == "" || err != nil {
			return nil, fmt.Errorf("parse counters: %q is no name and number", truncate([]byte(line)))
		}
		counters[name] = n
	}
	return counters, nil
}

// changedCounters returns the counters that changed, sorted by name. A new counter counts from
// zero.
func changedCounters(was, is map[string]uint64) (list []CounterChange) {
	for _, name := range slices.Sorted(maps.Keys(is)) {
		if was[name] != is[name] {
			list = append(list, CounterChange{name, was[name], is[name]})
		}
	}
	return list
}

// parseInactiveFile returns the page cache that the kernel can drop, in bytes, including the
// cgroups below. b is a memory.stat of either version. It searches only for the one line, because
// the file is long and read often.
func parseInactiveFile(b []byte) (int64, error) {
	// In version 1 inactive_file is for the cgroup alone, and total_inactive_file includes all cgroups
	// below it. In version 2 inactive_file includes them.
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
			return 0, fmt.Errorf("parse memory.stat: %s: %q is no number of bytes", name[1:], truncate(value))
		}
		return n, nil
	}
	return 0, fmt.Errorf("parse memory.stat: no inactive_file in %q", truncate(b))
}

// parseBytes parses a file with one number of bytes.
func parseBytes(b []byte) (int64, error) {
	n, err := strconv.ParseInt(string(bytes.TrimSuffix(b, []byte{'\n'})), 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%q is no number of bytes", truncate(b))
	}
	return n, nil
}

// truncate shortens b for an error message.
func truncate(b []byte) []byte { return b[:min(len(b), 60)] }
