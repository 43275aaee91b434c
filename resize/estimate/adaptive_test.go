package estimate_test

import (
	"math"
	"testing"
	"time"

	"github.com/weir-metrics/weir/resize"
	"github.com/weir-metrics/weir/resize/estimate"
)

const mebibyte = 1 << 20

// observeMemory adds one sample of memory every 15 minutes, in MiB, and returns the time of the last.
func observeMemory(a *estimate.Adaptive, from time.Time, mebibytes ...float64) (last time.Time) {
	for i, v := range mebibytes {
		last = from.Add(time.Duration(i) * 15 * time.Minute)
		a.Observe(estimate.Sample{Resource: resize.Memory, UsagePoint: resize.UsagePoint{At: last, Value: v * mebibyte}})
	}
	return last
}

func repeat(value float64, times int) (values []float64) {
	for range times {
		values = append(values, value)
	}
	return values
}

func TestAdaptiveMemory(t *testing.T) {
	for name, c := range map[string]struct {
		history []float64
		want    float64 // MiB
	}{
		"steady: the least margin":                    {repeat(100, 20), 115},
		"standard deviation 8: 2.5 times 8 is added":  {[]float64{100, 116, 100, 116}, 136},
		"standard deviation 50: the most is added":    {[]float64{100, 200, 100, 200}, 300},
		"a peak of a week ago does not count":         {append([]float64{400}, repeat(100, 7*24*4)...), 115},
		"a peak of less than a week ago does count":   {append([]float64{400}, repeat(100, 7*24*4-1)...), 460},
		"impossible samples do not count as a window": {[]float64{100, math.NaN(), -1, math.Inf(1)}, 115},
	} {
		a := estimate.NewAdaptive(estimate.AdaptiveDefaults())
		got := a.Recommend(observeMemory(a, begin, c.history...)).Memory
		if want := resize.Of(int64(math.Ceil(c.want * mebibyte))); !got.Set || math.Abs(float64(got.Value-want.Value)) > 1 {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
}

// A kill counts as a peak a quarter above the limit, or above the request where there is no limit.
func TestAdaptiveKill(t *testing.T) {
	for _, kill := range []estimate.OOMKill{{Limit: 200 * mebibyte, Request: 100 * mebibyte}, {Request: 200 * mebibyte}} {
		o := estimate.AdaptiveDefaults()
		o.SpreadFactor = 0
		a := estimate.NewAdaptive(o)
		kill.At = observeMemory(a, begin, 100, 200)
		a.ObserveOOMKill(kill)
		if got := a.Recommend(kill.At).Memory; got.Value != 250*1.15*mebibyte {
			t.Errorf("after %+v: got %v, want 287.5Mi", kill, got)
		}
	}
}

// A recommendation falls only by a tenth or more, and grows at once.
func TestAdaptiveHold(t *testing.T) {
	o := estimate.AdaptiveDefaults()
	o.Peaks = 1
	a := estimate.NewAdaptive(o)
	at := begin
	for _, c := range []struct{ used, want float64 }{{100, 115}, {91, 115}, {89, 102.35}, {90, 103.5}} {
		at = observeMemory(a, at.Add(15*time.Minute), c.used)
		if got := a.Recommend(at).Memory; math.Abs(float64(got.Value)-c.want*mebibyte) > 1 {
			t.Errorf("of %vMi: got %.2fMi, want %vMi", c.used, float64(got.Value)/mebibyte, c.want)
		}
	}
}

// 90% of the samples plus 15%, rounded up to a bucket, which is at most 5% and 5m wide. Without samples
// there is no recommendation.
func TestAdaptiveCPU(t *testing.T) {
	a := estimate.NewAdaptive(estimate.AdaptiveDefaults())
	if got := a.Recommend(begin); got.CPU.Set || got.Memory.Set {
		t.Errorf("without samples: got %v, want nothing", got)
	}
	for i := range 100 {
		a.Observe(estimate.Sample{Resource: resize.CPU, UsagePoint: resize.UsagePoint{At: begin.Add(time.Duration(i) * time.Second), Value: float64(i+1) / 100}})
	}
	const exact = 0.90 * 1.15 * 1000
	if got := a.Recommend(begin.Add(time.Hour)).CPU.Value; float64(got) < exact || float64(got) > (900*1.05+5)*1.15+1 {
		t.Errorf("got %vm, want %vm or a bucket more", got, exact)
	}
}
