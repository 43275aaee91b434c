package aggregate

import "math"

// exactSum adds floating-point numbers and rounds only once, at the end, so that a sum does not
// depend on the order of its parts (J. R. Shewchuk, "Adaptive Precision Floating-Point
// Arithmetic and Fast Robust Geometric Predicates", 1997). The zero value is 0.
type exactSum struct {
	// parts add up to the sum. They do not overlap: all bits of a part are below the lowest bit
	// of the next one. For the sums here there are one or two parts.
	parts []float64
}

func (s *exactSum) reset() { s.parts = s.parts[:0] }

func (s *exactSum) add(x float64) {
	kept := s.parts[:0]
	for _, y := range s.parts {
		if math.Abs(x) < math.Abs(y) {
			x, y = y, x
		}
		high := x + y
		low := y - (high - x) // the exact rounding error of high
		if low != 0 {
			kept = append(kept, low)
		}
		x = high
	}
	kept = append(kept, x)
	s.parts = kept
}

// value returns the float64 nearest to the sum.
func (s *exactSum) value() float64 {
	n := len(s.parts)
	if n == 0 {
		return 0
	}
	high := s.parts[n-1]
	for i := n - 2; i >= 0; i-- {
		x, y := high, s.parts[i]
		high = x + y
		low := y - (high - x)
		if low == 0 {
			continue
		}
		// If the value is halfway between two numbers, the part below decides.
		if i > 0 && low < 0 == (s.parts[i-1] < 0) {
			if twice := 2 * low; high+twice-high == twice {
				high += twice
			}
		}
		break
	}
	return high
}
