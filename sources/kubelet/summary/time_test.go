package summary

import (
	"testing"
	"time"
)

func TestTimesAreThoseOfPackageTime(t *testing.T) {
	// Every hour and a second of a leap year, of one that is none, and of the ends.
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
