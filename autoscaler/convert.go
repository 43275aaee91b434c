package autoscaler

import "math"

// What a conversion of a floating-point number outside an integer's range gives is
// left to the processor. These give what amd64 does, everywhere: the smallest
// integer, for numbers too large and for what is not a number as well.

func toInt32(f float64) int32 {
	if f > math.MinInt32-1 && f < math.MaxInt32+1 {
		return int32(f)
	}
	return math.MinInt32
}

func toInt64(f float64) int64 {
	if f >= math.MinInt64 && f < math.MaxInt64 { // as a double, the latter is 1<<63
		return int64(f)
	}
	return math.MinInt64
}

// capInt32 is toInt32 for numbers that are first held to the largest integer.
func capInt32(f float64) int32 {
	if f > math.MaxInt32 {
		return math.MaxInt32
	}
	return toInt32(f)
}
