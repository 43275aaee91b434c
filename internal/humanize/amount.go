package humanize

import (
	"math"
	"strconv"
	"strings"
)

// Bytes formats an amount of bytes in the largest binary unit that it reaches, with at most three
// significant digits, but never rounded to more than a whole unit: "512", "94.2Mi", "1.5Gi",
// "1023Gi", "9.28Ti".
func Bytes(v float64) string {
	units := [...]string{"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"}
	i := 0
	// A value that rounds to 1024Ki is 1Mi.
	for ; i < len(units)-1 && math.Round(math.Abs(v)) >= 1024; i++ {
		v /= 1024
	}
	if i == 0 {
		v = math.Round(v)
	}
	return significant(v) + units[i]
}

// BytesPerSecond formats a rate of bytes: "1.5Mi/s".
func BytesPerSecond(v float64) string { return Bytes(v) + "/s" }

// Cores formats CPU, given in nanocores. Below 10 cores it writes millicores: "1771m", and below
// 10m with two significant digits: "2.5m". From 10 cores it writes cores with three significant
// digits, but never rounded to more than a whole core: "12.3", "1,683".
func Cores(nanocores float64) string {
	milli := nanocores / 1e6
	switch size := math.Abs(milli); {
	case math.Round(size) >= 10_000:
		return group(significant(nanocores / 1e9))
	case size > 0 && size < 9.95:
		digits := 1 - int(math.Floor(math.Log10(size)))
		return trimmed(milli, min(digits, 6)) + "m"
	}
	return trimmed(milli, 0) + "m"
}

// CoresLike returns the format of CPU, given in nanocores, for values that stand together. All have the
// unit in which Cores writes the largest: "6058m" beside "350m", and "6.06" beside "12.7".
func CoresLike(largest float64) func(nanocores float64) string {
	if math.Round(largest/1e6) < 10_000 {
		return func(nanocores float64) string {
			if math.Round(nanocores/1e6) < 10_000 {
				return Cores(nanocores)
			}
			return Decimal(nanocores/1e6, 0) + "m"
		}
	}
	return func(nanocores float64) string {
		switch cores := nanocores / 1e9; {
		case cores > 0 && cores < 0.0005:
			return "<0.001"
		case cores < 0.9995:
			return trimmed(cores, 3)
		default:
			return group(significant(cores))
		}
	}
}

// Percent formats a share, where 1 is 100%, with at most three significant digits and at most one
// digit after the point: "0.4%", "12.5%", "137%". A share that is not 0 but rounds to 0 is "<0.1%".
func Percent(share float64) string {
	v := share * 100
	if v > 0 && v < 0.05 {
		return "<0.1%"
	}
	digits := 1
	if math.Abs(v) >= 99.95 {
		digits = 0
	}
	return Decimal(v, digits) + "%"
}

// Number formats an integer with separators between thousands: "12,345".
func Number[N ~int | ~int32 | ~int64 | ~uint64](n N) string {
	return group(strconv.FormatInt(int64(n), 10))
}

// Decimal formats a number with at most this many digits after the point, without zeros at the end,
// and with separators between thousands: "0.8333", "2", "1,234.5".
func Decimal(v float64, digits int) string { return group(trimmed(v, digits)) }

// significant formats v with three significant digits, or rounded to a whole number if that has
// more.
func significant(v float64) string {
	digits := 2
	switch size := math.Abs(v); {
	case size >= 99.95:
		digits = 0
	case size >= 9.995:
		digits = 1
	}
	return trimmed(v, digits)
}

// trimmed formats v with at most this many digits after the point, without zeros at the end.
func trimmed(v float64, digits int) string {
	s := strconv.FormatFloat(v, 'f', digits, 64)
	if strings.Contains(s, ".") {
		s = strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
	}
	if s == "-0" {
		return "0"
	}
	return s
}

// group adds separators between the thousands of a number.
func group(s string) string {
	whole, _, _ := strings.Cut(strings.TrimPrefix(s, "-"), ".")
	start := strings.Index(s, whole)
	for i := start + len(whole) - 3; i > start; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
