package notify

import (
	"fmt"
	"math"
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
			micros, err := strconv.ParseUint(figure, 10, 64)
			if err != nil || micros > math.MaxInt64/1000 {
				return stallTotals{}, fmt.Errorf("parse pressure: line %q: %q is not a number of microseconds", strings.TrimSpace(line), field)
			}
			*total = time.Duration(micros) * time.Microsecond
		}
	}
	if !hasSome {
		return stallTotals{}, fmt.Errorf("parse pressure: no line \"some\" in %q", truncate(b))
	}
	return t, nil
}

// truncate shortens b for an error message.
func truncate(b []byte) []byte { return b[:min(len(b), 60)] }
