package summary

import (
	"encoding/binary"
	"time"
)

// minuteCache keeps the minute of the last time that was read, because most times of a summary are
// within a few seconds of each other.
type minuteCache struct {
	head, tail uint64 // "2026-11-" and "21T04:22", as words in memory
	minute     int64  // in nanoseconds since the Unix epoch
}

// same returns the time in raw, which has twenty bytes, if it is in the kept minute.
func (c *minuteCache) same(raw []byte) (int64, bool) {
	if binary.LittleEndian.Uint64(raw) != c.head || binary.LittleEndian.Uint64(raw[8:]) != c.tail {
		return 0, false
	}
	tens, ones := raw[17]-'0', raw[18]-'0'
	seconds := time.Duration(tens)*10 + time.Duration(ones)
	return c.minute + int64(seconds*time.Second), raw[16] == ':' && tens < 6 && ones <= 9 && raw[19] == 'Z'
}

// keep keeps the minute of the time t, which raw contains.
func (c *minuteCache) keep(raw []byte, t int64) {
	if t > 0 && len(raw) == 20 && raw[13] == ':' && raw[16] == ':' && raw[19] == 'Z' {
		c.head, c.tail = binary.LittleEndian.Uint64(raw), binary.LittleEndian.Uint64(raw[8:])
		c.minute = t - t%int64(time.Minute)
	}
}

// parseTime returns the time in nanoseconds since the Unix epoch, and whether raw is a time of RFC
// 3339. It returns 0 for a time before 1970 (Go's zero time) or after 2261 (too late for int64
// nanoseconds).
func parseTime(raw []byte) (int64, bool) {
	var t time.Time
	if t.UnmarshalText(raw) != nil { // UnmarshalText allocates nothing, but is stricter than Parse
		var err error
		if t, err = time.Parse(time.RFC3339Nano, string(raw)); err != nil {
			return 0, false
		}
	}
	if y := t.Year(); y < 1970 || y > 2261 {
		return 0, true
	}
	return t.UnixNano(), true
}
