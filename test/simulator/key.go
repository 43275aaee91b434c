package simulator

import "math/bits"

// A key is a hash. Everything that looks random is computed from keys, so the
// same seed gives the same fleet, and the numbers of one container do not
// depend on how many others there are.
type key uint64

// with returns the key of the thing named s below k.
func (k key) with(s string) key {
	h := uint64(k) ^ 0xcbf29ce484222325
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 0x100000001b3
	}
	return key(mix(h))
}

// num returns the key of the nth thing below k.
func (k key) num(n int64) key { return key(mix(uint64(k) + uint64(n)*0x9e3779b97f4a7c15 + 1)) }

// between returns a number in [low, high) that depends only on k and what.
func (k key) between(what string, low, high int64) int64 {
	if high <= low {
		return low
	}
	hi, _ := bits.Mul64(uint64(k.with(what)), uint64(high-low))
	return low + int64(hi)
}

// mix is the finaliser of SplitMix64: every bit of x changes every bit of the
// result.
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}
