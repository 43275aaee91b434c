package summary

import "time"

// timeCache parses times, of which a summary holds hundreds of the same day.
type timeCache struct {
	date     string // "2026-11-21T", of the last time parsed
	midnight int64  // of that day in UTC
}

// parse returns the time in nanoseconds since the Unix epoch, and whether raw
// is a time of RFC 3339. It is 0 for a time before 1970, which is how Go writes
// that there is none, or too late for nanoseconds.
func (c *timeCache) parse(raw []byte) (int64, bool) {
	// Fast path: "2026-11-21T04:22:40Z", of the same day as the last.
	if len(raw) == 20 && raw[19] == 'Z' && len(c.date) == 11 && string(raw[:11]) == c.date {
		if s, ok := secondOfDay(raw[11:19]); ok {
			return c.midnight + int64(s)*int64(time.Second), true
		}
	}
	t, err := time.Parse(time.RFC3339Nano, string(raw))
	if err != nil {
		return 0, false
	}
	if y := t.Year(); y < 1970 || y > 2261 {
		return 0, true
	}
	if raw[len(raw)-1] == 'Z' {
		c.date, c.midnight = string(raw[:11]), t.UTC().Truncate(24*time.Hour).UnixNano()
	}
	return t.UnixNano(), true
}

// secondOfDay parses "04:22:40".
func secondOfDay(b []byte) (int, bool) {
	h, m, s := twoDigits(b[0:2]), twoDigits(b[3:5]), twoDigits(b[6:8])
	ok := b[2] == ':' && b[5] == ':' && h < 24 && m < 60 && s < 60
	return h*3600 + m*60 + s, ok
}

// twoDigits parses two digits; anything else counts as 100.
func twoDigits(b []byte) int {
	if b[0]-'0' > 9 || b[1]-'0' > 9 {
		return 100
	}
	return int(b[0]-'0')*10 + int(b[1]-'0')
}
