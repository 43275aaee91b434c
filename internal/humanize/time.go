package humanize

import (
	"strconv"
	"time"
)

const day = 24 * time.Hour

// Duration formats a length of time in its two largest units, without zeros: "3d4h", "2h5m",
// "1m30s". Below a minute it has tenths of a second ("12.4s", "0.7s"), below 100 ms tenths of a
// millisecond ("1.9ms"), below 1 ms microseconds ("250µs").
func Duration(d time.Duration) string {
	switch {
	case d < 0:
		return "-" + Duration(-d)
	case d == 0:
		return "0s"
	case d < time.Millisecond-time.Microsecond/2:
		return Number(d.Round(time.Microsecond)/time.Microsecond) + "µs"
	case d < 100*time.Millisecond-time.Millisecond/20:
		return Decimal(float64(d)/float64(time.Millisecond), 1) + "ms"
	case d < time.Minute-time.Second/20:
		return Decimal(d.Seconds(), 1) + "s"
	case d < time.Hour-time.Second/2:
		return twoUnits(d.Round(time.Second), time.Minute, "m", time.Second, "s")
	case d < day-time.Minute/2:
		return twoUnits(d.Round(time.Minute), time.Hour, "h", time.Minute, "m")
	}
	return twoUnits(d.Round(time.Hour), day, "d", time.Hour, "h")
}

func twoUnits(d, large time.Duration, largeName string, small time.Duration, smallName string) string {
	s := strconv.Itoa(int(d/large)) + largeName
	if rest := d % large / small; rest > 0 {
		s += strconv.Itoa(int(rest)) + smallName
	}
	return s
}

// Seconds is Duration for a number of seconds.
func Seconds(s float64) string { return Duration(time.Duration(s * float64(time.Second))) }

// Ago describes how long before now t was, in whole seconds: "59s ago", "just now", or "in 9s" if t is
// in the future. It is empty for the zero time.
func Ago(t, now time.Time) string {
	if t.IsZero() {
		return ""
	}
	switch d := now.Sub(t).Round(time.Second); {
	case d > 0:
		return Duration(d) + " ago"
	case d < 0:
		return "in " + Duration(-d)
	}
	return "just now"
}

// Clock formats a time of day, "11:52:48 UTC", with its date if that differs from now's:
// "2026-11-21 11:52:48 UTC". With a zero now it always has the date.
func Clock(t, now time.Time) string { return clock(t, now, "15:04:05") }

// ClockMillis is Clock with milliseconds, if t has any: "11:52:48.125 UTC".
func ClockMillis(t, now time.Time) string {
	if t.Nanosecond() < int(time.Millisecond) {
		return Clock(t, now)
	}
	return clock(t, now, "15:04:05.000")
}

// DateTime formats a time with its date: "2026-11-21 11:52:48 UTC".
func DateTime(t time.Time) string { return Clock(t, time.Time{}) }

func clock(t, now time.Time, layout string) string {
	t, now = t.UTC(), now.UTC()
	if now.IsZero() || t.YearDay() != now.YearDay() || t.Year() != now.Year() {
		layout = "2006-01-02 " + layout
	}
	return t.Format(layout) + " UTC"
}
