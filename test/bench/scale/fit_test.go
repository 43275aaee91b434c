//go:build linux

package main

import (
	"math"
	"testing"
)

func TestFit(t *testing.T) {
	f := func(want line, x, y []float64) {
		t.Helper()
		got := fit(x, y)
		near := func(a, b float64) bool { return math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) < 1e-12 }
		if !near(got.Slope, want.Slope) || !near(got.Intercept, want.Intercept) || !near(got.R2, want.R2) {
			t.Errorf("fit(%v, %v): got %+v, want %+v", x, y, got, want)
		}
	}
	f(line{2, 1, 1}, []float64{0, 1, 2}, []float64{1, 3, 5})
	f(line{0, 3, 1}, []float64{0, 1, 2}, []float64{3, 3, 3})
	f(line{1, 1.0 / 3, 0.75}, []float64{0, 1, 2}, []float64{0, 2, 2})
	none := line{math.NaN(), math.NaN(), math.NaN()}
	f(none, []float64{5}, []float64{1})
	f(none, []float64{5, 5}, []float64{1, 2})
}
