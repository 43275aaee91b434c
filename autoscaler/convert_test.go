package autoscaler

import (
	"math"
	"testing"
)

func TestConversions(t *testing.T) {
	check32 := func(f float64, want int32) {
		t.Helper()
		if got := toInt32(f); got != want {
			t.Errorf("toInt32(%v) is %d, want %d", f, got, want)
		}
	}
	check32(-1.9, -1)
	check32(math.MaxInt32, math.MaxInt32)
	check32(math.MaxInt32+0.5, math.MaxInt32)
	check32(math.MaxInt32+1, math.MinInt32)
	check32(math.MinInt32-0.5, math.MinInt32)
	check32(math.Inf(1), math.MinInt32)
	check32(math.NaN(), math.MinInt32)
	check64 := func(f float64, want int64) {
		t.Helper()
		if got := toInt64(f); got != want {
			t.Errorf("toInt64(%v) is %d, want %d", f, got, want)
		}
	}
	check64(-1.9, -1)
	check64(math.Nextafter(1<<63, 0), 1<<63-1024)
	check64(1<<63, math.MinInt64)
	check64(-1<<63, math.MinInt64)
	check64(math.Inf(-1), math.MinInt64)
	check64(math.NaN(), math.MinInt64)
	if got := toInt32Capped(math.Inf(1)); got != math.MaxInt32 {
		t.Errorf("capInt32(+Inf) is %d, want %d", got, math.MaxInt32)
	}
	if got := toInt32Capped(math.NaN()); got != math.MinInt32 {
		t.Errorf("capInt32(NaN) is %d, want %d", got, math.MinInt32)
	}
}
