package humanize

import (
	"bytes"
	"math"
	"strconv"
)

// Bytes writes an amount of bytes in the largest binary unit that it reaches, with at
// most three significant digits and never rounded to more than a whole unit: "512",
// "94.2Mi", "1.5Gi", "1023Gi", "9.28Ti".
func Bytes(v float64) string { return string(AppendBytes(nil, v)) }

// AppendBytes appends what Bytes returns.
func AppendBytes(b []byte, v float64) []byte {
	units := [...]string{"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"}
	i := 0
	// What rounds to 1024Ki is 1Mi.
	for ; i < len(units)-1 && math.Round(math.Abs(v)) >= 1024; i++ {
		v /= 1024
	}
	if i == 0 {
		v = math.Round(v)
	}
	return append(appendSignificant(b, v), units[i]...)
}

// BytesPerSecond writes a rate of bytes: "1.5Mi/s".
func BytesPerSecond(v float64) string { return Bytes(v) + "/s" }

// Cores writes CPU, given in nanocores. Below 10 cores it writes millicores ("1771m",
// and "2.5m" with two significant digits below 10m); from 10 cores on it writes cores
// with three significant digits, rounded to no more than a whole core: "12.3", "1,683".
func Cores(nanocores float64) string { return string(AppendCores(nil, nanocores)) }

// AppendCores appends what Cores returns.
func AppendCores(b []byte, nanocores float64) []byte {
	milli := nanocores / 1e6
	switch size := math.Abs(milli); {
	case math.Round(size) >= 10_000:
		start := len(b)
		return group(appendSignificant(b, nanocores/1e9), start)
	case size > 0 && size < 9.95:
		digits := 1 - int(math.Floor(math.Log10(size)))
		return append(appendTrimmed(b, milli, min(digits, 6)), 'm')
	default:
		return append(appendTrimmed(b, milli, 0), 'm')
	}
}

// Percent writes a share, where 1 is 100%, with at most three significant digits and
// at most one after the point: "0.4%", "12.5%", "137%". A share that is not 0 but would
// be written as such is "<0.1%".
func Percent(share float64) string {
	v := share * 100
	if v > 0 && v < 0.05 {
		return "<0.1%"
	}
	digits := 1
	if math.Abs(v) >= 99.95 {
		digits = 0
	}
	return string(append(AppendDecimal(nil, v, digits), '%'))
}

// Number writes an integer with its thousands set apart: "12,345".
func Number[N ~int | ~int32 | ~int64 | ~uint64](n N) string {
	return string(group(strconv.AppendInt(nil, int64(n), 10), 0))
}

// Decimal writes a number with at most so many digits after the point, without zeros
// at the end, and with its thousands set apart: "0.8333", "2", "1,234.5".
func Decimal(v float64, digits int) string { return string(AppendDecimal(nil, v, digits)) }

// AppendDecimal appends what Decimal returns.
func AppendDecimal(b []byte, v float64, digits int) []byte {
	start := len(b)
	return group(appendTrimmed(b, v, digits), start)
}

// appendSignificant appends v with three significant digits, or rounded to a whole
// number where that has more.
func appendSignificant(b []byte, v float64) []byte {
	digits := 2
	switch size := math.Abs(v); {
	case size >= 99.95:
		digits = 0
	case size >= 9.995:
		digits = 1
	}
	return appendTrimmed(b, v, digits)
}

// appendTrimmed appends v with at most so many digits after the point, without zeros at
// the end.
func appendTrimmed(b []byte, v float64, digits int) []byte {
	start := len(b)
	b = strconv.AppendFloat(b, v, 'f', digits, 64)
	if bytes.IndexByte(b[start:], '.') >= 0 {
		b = bytes.TrimRight(b, "0")
		b = bytes.TrimSuffix(b, []byte{'.'})
	}
	if string(b[start:]) == "-0" {
		b = append(b[:start], '0')
	}
	return b
}

// group sets apart the thousands of the number that begins at start and ends b.
func group(b []byte, start int) []byte {
	if start < len(b) && b[start] == '-' {
		start++
	}
	end := len(b)
	if point := bytes.IndexByte(b[start:], '.'); point >= 0 {
		end = start + point
	}
	for i := end - 3; i > start; i -= 3 {
		b = append(b, 0)
		copy(b[i+1:], b[i:])
		b[i] = ','
	}
	return b
}
