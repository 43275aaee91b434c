package aggregate

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

func sumOf(xs []float64) float64 {
	var s exactSum
	for _, x := range xs {
		s.add(x)
	}
	return s.value()
}

func TestExactSum(t *testing.T) {
	f := func(want float64, xs ...float64) {
		t.Helper()
		if got := sumOf(xs); got != want {
			t.Errorf("sum of %v is %v, want %v", xs, got, want)
		}
	}
	f(0)
	f(0.6, 0.1, 0.2, 0.3) // plain addition in this order gives 0.6000000000000001
	f(1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1)
	f(1, 1e100, 1, -1e100)
	f(0, 1e100, 1, -1e100, -1)
	// If the value is halfway between two numbers, the part below decides.
	f(1+0x1p-52, 1, 0x1p-53, 0x1p-200)
	f(1, 1, 0x1p-53, -0x1p-200)
}

// The sum is that of exact arithmetic, rounded once, in any order.
func TestExactSumIsExact(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		xs := make([]float64, 1+random.IntN(20))
		want := new(big.Float).SetPrec(2000)
		for i := range xs {
			xs[i] = math.Ldexp(random.Float64()-0.3, random.IntN(120)-60)
			want.Add(want, big.NewFloat(xs[i]))
		}
		wanted, _ := want.Float64()
		for range 3 {
			random.Shuffle(len(xs), func(i, j int) { xs[i], xs[j] = xs[j], xs[i] })
			if got := sumOf(xs); got != wanted {
				t.Fatalf("sum of %v is %v, want %v", xs, got, wanted)
			}
		}
	}
}
