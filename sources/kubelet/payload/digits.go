package payload

import (
	"encoding/binary"
	"math/bits"
)

// Eight digits are read at once, as one word with the first digit in the lowest byte: Lemire,
// "Quickly parsing eight digits", 2018. Payloads are mostly digits, and a loop over single digits
// takes three times as long.
const (
	zeros     = 0x3030303030303030 // "00000000"
	aboveNine = 0x4646464646464646 // added to a byte above '9', it sets the highest bit
	highBits  = 0x8080808080808080
)

// parseDigits parses the digits at the start of b, at most eight. It returns their value and their
// number. b must have at least eight bytes.
func parseDigits(b []byte) (n uint64, size int) {
	w := binary.LittleEndian.Uint64(b)
	// A carry may change the byte above a non-digit, but the lowest non-digit is still found.
	other := ((w + aboveNine) | (w - zeros)) & highBits
	size = bits.TrailingZeros64(other) / 8
	// The digits are shifted to the top, zeros before them. A shift by 64 gives 0.
	return joinDigits((w - zeros) << (64 - 8*uint(size))), size
}

// parseEightDigits parses the first eight bytes of b. It returns their value and whether all of them are
// digits. b must have at least eight bytes.
func parseEightDigits(b []byte) (n uint64, ok bool) {
	w := binary.LittleEndian.Uint64(b)
	return joinDigits(w - zeros), ((w+aboveNine)|(w-zeros))&highBits == 0
}

// joinDigits returns the number with the digits in the bytes of w, 0 to 9 each.
func joinDigits(w uint64) uint64 {
	w = w*10 + w>>8
	w = (w&0x000000FF000000FF)*0x000F424000000064 + (w>>16&0x000000FF000000FF)*0x0000271000000001
	return w >> 32
}
