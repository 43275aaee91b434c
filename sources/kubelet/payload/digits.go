package payload

import (
	"encoding/binary"
	"math/bits"
)

// Eight digits are read at a time, as one word whose lowest byte is the first of them:
// Lemire, "Quickly parsing eight digits", 2018. Payloads are mostly digits, and one
// at a time costs three times as much.
const (
	zeros  = 0x3030303030303030 // "00000000"
	beyond = 0x4646464646464646 // what, added to a byte, sets its highest bit if that is past '9'
	high   = 0x8080808080808080
)

// Digits returns the number that the digits b begins with stand for, and how many
// there are: at most eight. b must hold eight bytes.
func Digits(b []byte) (n uint64, size int) {
	w := binary.LittleEndian.Uint64(b)
	// A carry may reach the byte above one that is no digit: the lowest is still right.
	other := ((w + beyond) | (w - zeros)) & high
	size = bits.TrailingZeros64(other) / 8
	// Shifted to the top, with zeros before it: shifts by 64 give 0.
	return eight((w - zeros) << (64 - 8*uint(size))), size
}

// EightDigits returns the number that the first eight bytes of b stand for, and whether
// all of them are digits. b must hold eight bytes.
func EightDigits(b []byte) (n uint64, ok bool) {
	w := binary.LittleEndian.Uint64(b)
	return eight(w - zeros), ((w+beyond)|(w-zeros))&high == 0
}

// eight returns the number whose digits, 0 to 9, are the bytes of w.
func eight(w uint64) uint64 {
	w = w*10 + w>>8
	w = (w&0x000000FF000000FF)*0x000F424000000064 + (w>>16&0x000000FF000000FF)*0x0000271000000001
	return w >> 32
}
