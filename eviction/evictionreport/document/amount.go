package document

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// Words writes an amount of the unit for people: "94.2Mi", "1250m", "37", "12.5%".
func (u Unit) Words(v float64) string {
	switch u {
	case Bytes:
		return binary(v)
	case Cores:
		return strconv.FormatFloat(math.Round(v*1000), 'f', 0, 64) + "m"
	case Percent:
		if v > 0 && v < 0.05 {
			return "<0.1%"
		}
		return tenths(v) + "%"
	}
	return strconv.FormatFloat(math.Round(v), 'f', -1, 64)
}

// Noun is Words with what is counted: "37 inodes".
func (u Unit) Noun(v float64) string {
	switch u {
	case Inodes, Processes:
		return u.Words(v) + " " + string(u)
	}
	return u.Words(v)
}

// binary writes bytes in the largest unit that they reach, to a tenth.
func binary(v float64) string {
	units := [...]string{"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"}
	i := 0
	// What rounds to 1024Ki is 1Mi.
	for ; i < len(units)-1 && math.Abs(math.Round(v*10)) >= 10240; i++ {
		v /= 1024
	}
	return tenths(v) + units[i]
}

// tenths writes a number to a tenth, and without the zero that would follow the point.
func tenths(v float64) string {
	v = math.Round(v*10) / 10
	if v == 0 {
		v = 0 // not -0
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

// Lasting writes a length of time as exactly as one wants to know it: "1m30s", "1.9ms".
func Lasting(d time.Duration) string {
	unit := time.Microsecond
	switch d = max(d, 0); {
	case d >= time.Second:
		unit = time.Second
	case d >= time.Millisecond:
		unit = time.Millisecond / 10
	}
	text := d.Round(unit).String()
	if short, ok := strings.CutSuffix(text, "m0s"); ok {
		text = short + "m"
	}
	if short, ok := strings.CutSuffix(text, "h0m"); ok {
		text = short + "h"
	}
	return text
}

// Clock writes a time of day.
func Clock(t time.Time) string { return t.UTC().Format("15:04:05 UTC") }
