package summary

import (
	"encoding/binary"
	"time"
)

// minuteCache keeps the minute of the last time that was read: most times of a summary
// are within a few seconds of each other.
type minuteCache struct {
	head, tail uint64 // "2026-11-" and "21T04:22", as they are in memory
	minute     int64  // in nanoseconds since the Unix epoch
}

// same returns the time in raw, which has twenty bytes, if it is in the kept minute.
func (c *minuteCache) same(raw []byte) (int64, bool) {
	if binary.LittleEndian.Uint64(raw) != c.head || binary.LittleEndian.Uint64(raw[8:]) != c.tail {
		return 0, false
	}
	s := twoDigits(raw[17:])
	return c.minute + int64(s)*int64(time.Second), raw[16] == ':' && s < 60 && raw[19] == 'Z'
}

// keep keeps the minute of the time t, which raw contains.
func (c *minuteCache) keep(raw []byte, t int64) {
	if t > 0 && len(raw) == 20 && raw[13] == ':' && raw[16] == ':' && raw[19] == 'Z' {
		c.head, c.tail = binary.LittleEndian.Uint64(raw), binary.LittleEndian.Uint64(raw[8:])
		c.minute = t - t%int64(time.Minute)
	}
}

// parseTime returns the time in nanoseconds since the Unix epoch, and whether raw
// is a time of RFC 3339. It is 0 for a time before 1970 (Go's zero time) or after 2261 (too
// late for nanoseconds).
func parseTime(raw []byte) (int64, bool) {
	// Fast path: "2026-11-21T04:22:40Z", on a day that every month has.
	if len(raw) == 20 && raw[4] == '-' && raw[7] == '-' && raw[10] == 'T' && raw[19] == 'Z' {
		y, m, d := twoDigits(raw[0:])*100+twoDigits(raw[2:]), twoDigits(raw[5:]), twoDigits(raw[8:])
		s, ok := secondOfDay(raw[11:19])
		if ok && y >= 1970 && y <= 2261 && m-1 < 12 && d-1 < 28 {
			return (int64(days(y, m, d))*86400 + int64(s)) * int64(time.Second), true
		}
	}
	t, err := time.Parse(time.RFC3339Nano, string(raw))
	if err != nil {
		return 0, false
	}
	if y := t.Year(); y < 1970 || y > 2261 {
		return 0, true
	}
	return t.UnixNano(), true
}

// days returns the days between 1 January 1970 and a day. Years begin in March, so that a
// leap day is the last day of a year: Howard Hinnant, "chrono-Compatible Low-Level Date
// Algorithms".
func days(y, m, d uint) uint {
	if m <= 2 {
		y--
		m += 12
	}
	return y*365 + y/4 - y/100 + y/400 + (153*(m-3)+2)/5 + d - 1 - 719468
}

// secondOfDay parses "04:22:40".
func secondOfDay(b []byte) (uint, bool) {
	h, m, s := twoDigits(b[0:]), twoDigits(b[3:]), twoDigits(b[6:])
	ok := b[2] == ':' && b[5] == ':' && h < 24 && m < 60 && s < 60
	return h*3600 + m*60 + s, ok
}

// twoDigits parses two digits. Anything else is a hundred thousand, which is out of range
// for every part of a time.
func twoDigits(b []byte) uint {
	tens, ones := uint(b[0]-'0'), uint(b[1]-'0')
	if tens > 9 || ones > 9 {
		return 100_000
	}
	return tens*10 + ones
}
