package memory

import "math"

// A float24 is a value of the history in three bytes: 7 bits of exponent and
// 17 of mantissa, no sign. It holds what lies between 2^-40 (below is 0) and
// 2^87 (above is that), rounded to within 2^-18, which is 4 millionths of the
// value. No metric is negative; what is, or is not a number, becomes absent.
type float24 uint32

const (
	absent float24 = 0
	zero   float24 = 1
	// sum is a pod's value that is the sum of its containers'.
	sum float24 = 2
	// Codes below 1<<mantissaBits have no exponent, so there is room for the
	// three above.
	mantissaBits = 17
	maxFloat24   = 1<<24 - 1
	// cut is how many of a float64's mantissa bits go.
	cut = 52 - mantissaBits
	// bias is the difference between the two ways to count exponents.
	bias = uint64(1023-41) << mantissaBits
)

func toFloat24(v float64) float24 {
	if v == 0 {
		return zero
	}
	if !(v > 0) {
		return absent
	}
	rounded := (math.Float64bits(v) + 1<<(cut-1)) >> cut
	if rounded < bias+1<<mantissaBits {
		return zero
	}
	return float24(min(rounded-bias, maxFloat24))
}

// float returns the value, and whether there is one here.
func (f float24) float() (float64, bool) {
	switch f {
	case absent, sum:
		return 0, false
	case zero:
		return 0, true
	}
	return math.Float64frombits((uint64(f) + bias) << cut), true
}
