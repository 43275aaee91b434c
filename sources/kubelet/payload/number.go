package payload

import (
	"math"
	"math/bits"
	"strconv"
	"strings"
)

// Number is a decimal number exactly as it was written: Mantissa × 10^Exponent. Seconds become
// whole nanoseconds without a binary fraction in between.
//
// It has no more than four fields and four words, because Go does not keep a larger struct in
// registers.
type Number struct {
	Mantissa uint64
	Exponent int
	kind     kind
	value    float64 // the nearest float64 of a long number
}

// kind is what a number is apart from its digits.
type kind uint8

const (
	plain     kind = iota
	long           // a number with more digits than Mantissa can represent; value is the nearest float64
	negative       // not a measurement, unless it is -0
	notFinite      // NaN or an infinity, which is not a measurement
)

// pow10 has the powers of ten that a float64 represents exactly.
var pow10 = [...]float64{
	1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11,
	1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
}

// upow10 has the powers of ten that a uint64 represents.
var upow10 = [...]uint64{
	1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11,
	1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19,
}

// maxExponent is larger than the exponent of any float64; larger exponents are set to it.
const maxExponent = 10_000

// ParseNumber parses the number at the start of b. It returns the number and its length in bytes,
// or 0 if there is none. It reads plain and scientific notation, and NaN and Inf in any case.
func ParseNumber(b []byte) (n Number, i int) {
	// Fast path: up to sixteen digits, optionally a point and up to sixteen more digits, optionally an
	// exponent; at most nineteen digits, and not at the end of the payload.
	if len(b) < 40 { // the code below reads at most 40 bytes
		return parseNumberSlow(b)
	}
	if c := uint64(b[0] - '0'); b[1] == '.' && c <= 9 { // every number with an exponent has this form
		n.Mantissa, i = c, 1
	} else if n.Mantissa, i = parseDigits(b); i == 0 {
		return parseNumberSlow(b)
	} else if i == 8 {
		more, size := parseDigits(b[8:])
		if size == 8 && b[16]-'0' <= 9 {
			return parseNumberSlow(b)
		}
		n.Mantissa = n.Mantissa*upow10[size] + more
		i += size
	}
	if b[i] == '.' {
		digits := i
		i++
		part, size := parseDigits(b[i:])
		n.Mantissa = n.Mantissa*upow10[size] + part
		n.Exponent = -size
		i, digits = i+size, digits+size
		if size == 8 {
			part, size = parseDigits(b[i:])
			n.Mantissa = n.Mantissa*upow10[size] + part
			n.Exponent -= size
			i, digits = i+size, digits+size
			if size == 8 && b[i]-'0' <= 9 {
				return parseNumberSlow(b)
			}
		}
		if digits > 19 {
			return parseNumberSlow(b)
		}
	}
	if b[i]|0x20 == 'e' {
		e, size := parseExponent(b[i+1:])
		if size == 0 {
			return parseNumberSlow(b)
		}
		n.Exponent += e
		i += 1 + size
	}
	return n, i
}

// parseNumberSlow parses digit by digit.
func parseNumberSlow(b []byte) (Number, int) {
	var n Number
	i := 0
	if i < len(b) && (b[i] == '-' || b[i] == '+') {
		if b[i] == '-' {
			n.kind = negative
		}
		i++
	}
	first := i
	i, dropped := n.parseMantissa(b, i)
	if i == first || i == first+1 && b[first] == '.' { // no digit
		return parseSpecial(b, i)
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		e, size := parseExponent(b[i+1:])
		if size == 0 {
			return Number{}, 0
		}
		n.Exponent += e
		i += 1 + size
	}
	if dropped && n.kind == plain {
		n.kind, n.value = long, nearestFloat(b[:i])
	}
	return n, i
}

// parseMantissa parses digits with at most one point, from b[i] on. It returns the index after them,
// and whether there are more digits than Mantissa can represent.
func (n *Number) parseMantissa(b []byte, i int) (end int, dropped bool) {
	digits, hasPoint := 0, false
	for ; i < len(b); i++ {
		c := b[i]
		switch {
		case c == '.' && !hasPoint:
			hasPoint = true
		case c-'0' > 9:
			return i, dropped
		case digits < 19:
			n.Mantissa = n.Mantissa*10 + uint64(c-'0')
			if n.Mantissa > 0 {
				digits++
			}
			if hasPoint {
				n.Exponent--
			}
		default:
			dropped = true
			if !hasPoint {
				n.Exponent++
			}
		}
	}
	return i, dropped
}

// parseExponent parses a signed integer and returns it with its length, or 0 if there is none.
func parseExponent(b []byte) (e, size int) {
	// Fast path: "+06".
	if len(b) > 3 && b[0] == '+' && b[1]-'0' <= 9 && b[2]-'0' <= 9 && b[3]-'0' > 9 {
		return int(b[1]-'0')*10 + int(b[2]-'0'), 3
	}
	i, negative := 0, false
	if i < len(b) && (b[i] == '-' || b[i] == '+') {
		negative = b[i] == '-'
		i++
	}
	first := i
	for ; i < len(b) && b[i]-'0' <= 9; i++ {
		e = min(e*10+int(b[i]-'0'), maxExponent)
	}
	if i == first {
		return 0, 0
	}
	if negative {
		e = -e
	}
	return e, i
}

// parseSpecial parses NaN or Inf from b[i:].
func parseSpecial(b []byte, i int) (Number, int) {
	for _, word := range [...]string{"nan", "infinity", "inf"} {
		if len(b)-i >= len(word) && strings.EqualFold(string(b[i:i+len(word)]), word) {
			return Number{kind: notFinite}, i + len(word)
		}
	}
	return Number{}, 0
}

// Value returns n, and whether it can be a measurement: neither negative nor NaN nor
// infinite.
func (n Number) Value() (float64, bool) {
	if n.kind == plain && n.Exponent == 0 { // fast path
		return float64(n.Mantissa), true
	}
	if !n.isMeasurement() {
		return 0, false
	}
	f := n.float()
	return f, !math.IsInf(f, 0)
}

// isMeasurement reports whether n can be a measurement: neither negative nor NaN nor infinite.
func (n Number) isMeasurement() bool {
	return n.kind <= long || n.kind == negative && n.Mantissa == 0
}

// float returns the float64 nearest to |n|.
func (n Number) float() float64 {
	if n.kind == long {
		return n.value
	}
	if n.Mantissa < 1<<53 {
		// Fast path: both factors are exact, so the result is rounded once.
		switch e := n.Exponent; {
		case n.Mantissa == 0:
			return 0
		case e >= 0 && e < len(pow10):
			return float64(n.Mantissa) * pow10[e]
		case e < 0 && -e < len(pow10):
			return float64(n.Mantissa) / pow10[-e]
		}
	}
	// Slow path: more digits than a float64 holds.
	raw := strconv.AppendUint(make([]byte, 0, 32), n.Mantissa, 10)
	raw = append(raw, 'e')
	return nearestFloat(strconv.AppendInt(raw, int64(n.Exponent), 10))
}

// nearestFloat returns the float64 nearest to the number in raw; it may be infinite.
func nearestFloat(raw []byte) float64 {
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil && f == 0 {
		return math.Inf(1)
	}
	return f
}

// Scaled returns n × 10^scale rounded to a whole number, and whether n can be a
// measurement. Seconds with a scale of 9 give the exact nanoseconds that the node divided.
func (n Number) Scaled(scale int) (int64, bool) {
	if !n.isMeasurement() {
		return 0, false
	}
	if n.Mantissa == 0 {
		return 0, true
	}
	e := n.Exponent + scale
	switch {
	case e >= len(upow10):
		return 0, false
	case e >= 0:
		over, whole := bits.Mul64(n.Mantissa, upow10[e])
		if over != 0 || whole > math.MaxInt64 {
			return 0, false
		}
		return int64(whole), true
	case -e >= len(upow10):
		return 0, true
	default:
		d := upow10[-e]
		q, r := n.Mantissa/d, n.Mantissa%d
		if r >= d-r {
			q++
		}
		return int64(q), q <= math.MaxInt64
	}
}
