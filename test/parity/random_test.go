package parity

import (
	"math/rand/v2"
)

// random draws one case. The same seed and number give the same case, alone or after
// others.
type random struct{ *rand.Rand }

func newRandom(seed, number uint64) random {
	return random{rand.New(rand.NewPCG(seed, number))}
}

// percent is true in so many of a hundred.
func (r random) percent(p float64) bool { return r.Float64()*100 < p }

// between returns a number from low to high, both included.
func (r random) between(low, high int) int { return low + r.IntN(high-low+1) }

// one returns one of the choices. Give the usual ones more than once.
func one[T any](r random, choices ...T) T { return choices[r.IntN(len(choices))] }
