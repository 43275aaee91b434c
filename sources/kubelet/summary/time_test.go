package summary

import (
	"testing"
	"time"
)

func TestTimesAreThoseOfPackageTime(t *testing.T) {
	// The times are every hour and one second of these years: a leap year, others, and the first and
	// last year.
	for _, year := range []int{1970, 1999, 2000, 2026, 2028, 2100, 2261} {
		for at := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC); at.Year() == year; at = at.Add(time.Hour + time.Second) {
			text := at.Format(time.RFC3339)
			if got, ok := parseTime([]byte(text)); !ok || got != at.UnixNano() {
				t.Fatalf("%s: got %d (%v), want %d", text, got, ok, at.UnixNano())
			}
		}
	}
}

func FuzzTime(f *testing.F) {
	for _, text := range []string{
		"2026-11-21T04:22:40Z", "2026-11-21T04:22:40.5+01:00", "2026-02-29T00:00:00Z", "2028-02-29T00:00:00Z", "0001-01-01T00:00:00Z",
		"2026-11-21T24:00:00Z", "2026-13-01T00:00:00Z", "2026-00-01T00:00:00Z", "2026-01-00T00:00:00Z", "20a6-01-01T00:00:00Z", "9999-01-01T00:00:00Z",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, ok := parseTime([]byte(text))
		want, err := time.Parse(time.RFC3339Nano, text)
		if ok != (err == nil) {
			t.Fatalf("%q: a time: %v, package time says %v", text, ok, err)
		}
		switch y := want.Year(); {
		case err != nil || y < 1970 || y > 2261:
			if got != 0 {
				t.Fatalf("%q: got %d, want 0", text, got)
			}
		case got != want.UnixNano():
			t.Fatalf("%q: got %d, want %d", text, got, want.UnixNano())
		}
	})
}

// FuzzClock checks that a time from minuteCache is the one that parseTime returns.
func FuzzClock(f *testing.F) {
	f.Add("2026-11-21T04:22:40Z", "2026-11-21T04:22:59Z")
	f.Add("2026-11-21T04:22:40Z", "2026-11-21T04:22:60Z")
	f.Add("2026-11-21T04:22:40Z", "2026-11-21T04:22:4aZ")
	f.Add("2026-11-21T4:22:35.5Z", "2026-11-21T4:22::35Z")
	f.Add("2026-11-21T04:22:40z", "2026-11-21T04:22:41+")
	f.Add("0001-01-01T00:00:00Z", "0001-01-01T00:00:01Z")
	f.Add("2026-11-21T04:22:40.25+01:00", "2026-11-21T04:22:40Z")
	f.Fuzz(func(t *testing.T, one, two string) {
		var c minuteCache
		first, ok := parseTime([]byte(one))
		if ok {
			c.keep([]byte(one), first)
		}
		if len(two) != 20 {
			return
		}
		if got, same := c.same([]byte(two)); same {
			if want, ok := parseTime([]byte(two)); !ok || got != want {
				t.Fatalf("%q after %q: got %d, want %d (a time: %v)", two, one, got, want, ok)
			}
		}
	})
}

func TestClockKnowsItsMinute(t *testing.T) {
	f := func(text string, want bool) {
		t.Helper()
		var c minuteCache
		at, _ := parseTime([]byte("2026-11-21T04:22:40Z"))
		c.keep([]byte("2026-11-21T04:22:40Z"), at)
		got, same := c.same([]byte(text))
		if same != want {
			t.Errorf("%s: of that minute: %v, want %v", text, same, want)
		}
		if exact, _ := parseTime([]byte(text)); want && got != exact {
			t.Errorf("%s: got %d, want %d", text, got, exact)
		}
	}
	f("2026-11-21T04:22:00Z", true)
	f("2026-11-21T04:22:59Z", true)
	f("2026-11-21T04:22:60Z", false)
	f("2026-11-21T04:23:00Z", false)
	f("2026-11-22T04:22:00Z", false)
	f("2026-12-21T04:22:00Z", false)
}
