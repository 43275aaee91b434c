//go:build linux

package main

import (
	"math"
	"testing"
)

func TestQuantile(t *testing.T) {
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[i] = float64(100 - i) // 100 down to 1
	}
	f := func(values []float64, q, want float64) {
		t.Helper()
		if got := quantile(values, q); got != want {
			t.Errorf("quantile %v of %d values: got %v, want %v", q, len(values), got, want)
		}
	}
	f(hundred, 0, 1)
	f(hundred, .5, 50)
	f(hundred, .99, 99)
	f(hundred, .991, 100)
	f(hundred, 1, 100)
	f([]float64{7}, .5, 7)
	f([]float64{3, 1, 2}, .5, 2)
	if hundred[0] != 100 {
		t.Error("the values were put in another order")
	}
	if got := quantile(nil, .5); !math.IsNaN(got) {
		t.Errorf("of no values: got %v, want NaN", got)
	}
}

func TestMedian(t *testing.T) {
	f := func(want float64, values ...float64) {
		t.Helper()
		if got := median(values); got != want {
			t.Errorf("median of %v: got %v, want %v", values, got, want)
		}
	}
	f(2, 3, 1, 2)
	f(2.5, 4, 1, 2, 3)
	f(5, 5)
	if got := median(nil); !math.IsNaN(got) {
		t.Errorf("of no values: got %v, want NaN", got)
	}
}
