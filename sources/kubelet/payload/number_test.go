package payload

import (
	"fmt"
	"math"
	"strconv"
	"testing"
)

func TestScaled(t *testing.T) {
	f := func(text string, scale int, want int64) {
		t.Helper()
		n, size := ParseNumber([]byte(text))
		if got, ok := n.Scaled(scale); size != len(text) || !ok || got != want {
			t.Errorf("%s × 10^%d: got %d (%v), %d of %d bytes, want %d", text, scale, got, ok, size, len(text), want)
		}
	}
	f("0", 9, 0)
	f("0.000", 9, 0)
	f("383.757177783", 9, 383757177783)
	f("10873.277663533", 9, 10873277663533)
	f("9007199.254740991", 9, 9007199254740991)
	f("9223372036.854775807", 9, math.MaxInt64)
	f("1.7952270355832574e+09", 9, 1795227035583257400)
	f("1e-9", 9, 1)
	f("4.9e-10", 9, 0)
	f("5e-10", 9, 1)
	f("1e-300", 9, 0)
	f("0.12345678901234567890123", 9, 123456789)
	f("-0", 9, 0)
	f("1795234949671", 6, 1795234949671000000)
}

func TestWhatIsNoValue(t *testing.T) {
	for _, text := range []string{"NaN", "nan", "+Inf", "-inf", "Infinity", "-1", "-1e-5"} {
		n, size := ParseNumber([]byte(text))
		_, ok1 := n.Value()
		_, ok2 := n.Scaled(9)
		if size != len(text) || ok1 || ok2 {
			t.Errorf("%s: read %d bytes, a value: %v, scaled: %v; want all bytes and no value", text, size, ok1, ok2)
		}
	}
	for _, text := range []string{"", "-", "+", ".", "e5", "x", "1e", "1e+", "-.e1", "in"} {
		if n, size := ParseNumber([]byte(text)); size != 0 {
			t.Errorf("%q: read %d bytes as %+v, want none", text, size, n)
		}
	}
	n, _ := ParseNumber([]byte("9223372036.854775808"))
	if got, ok := n.Scaled(9); ok {
		t.Errorf("2^63 nanoseconds: got %d, want none", got)
	}
}

// FuzzParseNumber checks that ParseNumber gives the same result as strconv for what strconv can
// parse.
func FuzzParseNumber(f *testing.F) {
	for _, s := range []string{"0", "1.5", "1.7952270355832574e+09", "4.18779136e+09", "123456789012345678901234567890", "1e400", "1e-400", ".5", "5.", "0e0", "9007199254740993", "-3",
		"1234567.12345678 ", "0.000000000000001 1795234949671\n", "1234567.123456789012345,       ", "123456.7890123456e-3 .......", "1.2345678/2345678", "1.:       ........",
		"1234567890123456                      ", "12345678901234567                     ", "123456789012345.1234                         ",
		"123456789012345.12345                        ", "1.2345678901234567e+10                        ", "12345678,                                  "} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, size := ParseNumber([]byte(text))
		if slow, slowSize := parseNumberSlow([]byte(text)); fmt.Sprint(n, size) != fmt.Sprint(slow, slowSize) {
			t.Fatalf("%q: got %+v (%d bytes), digit by digit %+v (%d bytes)", text, n, size, slow, slowSize)
		}
		if size == 0 || n.kind == notFinite {
			return
		}
		want, err := strconv.ParseFloat(text[:size], 64)
		if err != nil && !math.IsInf(want, 0) {
			t.Fatalf("%q: strconv says %v", text[:size], err)
		}
		got, ok := n.Value()
		if wantOK := !math.IsInf(want, 0) && want >= 0 && !(n.kind == negative && n.Mantissa != 0); ok != wantOK {
			t.Fatalf("%q: a value: %v, want %v", text[:size], ok, wantOK)
		}
		if ok && got != math.Abs(want) {
			t.Fatalf("%q: got %v, want %v", text[:size], got, want)
		}
		if ns, ok := n.Scaled(0); ok && want >= 0 && math.Abs(float64(ns)-want) > 0.5+want/(1<<52) {
			t.Fatalf("%q: got %d as a whole number, want about %v", text[:size], ns, want)
		}
	})
}

func TestDigits(t *testing.T) {
	f := func(text string, want uint64, wantSize int) {
		t.Helper()
		if got, size := parseDigits([]byte(text)); got != want || size != wantSize {
			t.Errorf("%q: got %d of %d digits, want %d of %d", text, got, size, want, wantSize)
		}
	}
	f("12345678", 12345678, 8)
	f("00000000", 0, 8)
	f("99999999", 99999999, 8)
	f("99999999\n", 99999999, 8)
	f("1234567 ", 1234567, 7)
	f("1       ", 1, 1)
	f("       1", 0, 0)
	f("90/01234", 90, 2)
	f("90:01234", 90, 2)
	f("\x00\xff345678", 0, 0)
	f("01\xff34567", 1, 2)
	for c := range 256 {
		for at := range 8 {
			b := []byte("55555555")
			b[at] = byte(c)
			want := at
			if c >= '0' && c <= '9' {
				want = 8
			}
			if _, size := parseDigits(b); size != want {
				t.Errorf("%q: got %d digits, want %d", b, size, want)
			}
			n, ok := parseEightDigits(b)
			if all, _ := parseDigits(b); ok != (want == 8) || ok && n != all {
				t.Errorf("%q: got %d, eight digits: %v; want %d, %v", b, n, ok, all, want == 8)
			}
		}
	}
}
