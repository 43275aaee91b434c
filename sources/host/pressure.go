package host

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
)

// parsePressure reads a pressure file (/proc/pressure/cpu and its like): the time stalled since
// boot, in microseconds. full is 0 where the kernel does not give it (for
// the CPU of the whole system it has no meaning).
func parsePressure(data []byte) (some, full uint64, err error) {
	found := false
	for line := range bytes.Lines(data) {
		f := bytes.Fields(line)
		if len(f) < 2 {
			continue
		}
		var to *uint64
		switch string(f[0]) {
		case "some":
			to, found = &some, true
		case "full":
			to = &full
		default:
			continue
		}
		value, ok := bytes.CutPrefix(f[len(f)-1], []byte("total="))
		if !ok {
			return 0, 0, fmt.Errorf("parse pressure: no total in %q", line)
		}
		if *to, err = strconv.ParseUint(string(value), 10, 54); err != nil { // 54: room for nanoseconds
			return 0, 0, fmt.Errorf("parse pressure: %w", err)
		}
	}
	if !found {
		return 0, 0, errors.New("parse pressure: no line starts with \"some\"")
	}
	return some, full, nil
}
