package parity

import (
	"math/rand/v2"
)

// random makes one case. The same seed and number give the same case, alone or
// after others.
type random struct{ *rand.Rand }

func newRandom(seed, number uint64) random {
	return random{rand.New(rand.NewPCG(seed, number))}
}

// percent is true in p of 100 cases.
func (r random) percent(p float64) bool { return r.Float64()*100 < p }

// between returns a number from low to high, inclusive.
func (r random) between(low, high int) int { return low + r.IntN(high-low+1) }

// one returns one of the choices. A choice that should be more frequent is
// listed more than once.
func one[T any](r random, choices ...T) T { return choices[r.IntN(len(choices))] }
