package estimate_test

import (
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weir-metrics/weir/resize"
	"github.com/weir-metrics/weir/resize/estimate"
)

// exactQuantile returns the quantile of PromQL in fractions: the value at the position
// percent/100 × (n - 1) of the sorted values, and between two values on the line from one to the other.
func exactQuantile(values []*big.Rat, percent int64) *big.Rat {
	slices.SortFunc(values, (*big.Rat).Cmp)
	position := big.NewRat(percent*int64(len(values)-1), 100)
	below := new(big.Int).Quo(position.Num(), position.Denom())
	fraction := new(big.Rat).Sub(position, new(big.Rat).SetInt(below))
	i := int(below.Int64())
	if fraction.Sign() == 0 {
		return values[i]
	}
	rise := new(big.Rat).Sub(values[i+1], values[i])
	return rise.Add(values[i], rise.Mul(rise, fraction))
}

// exactCeil returns the least multiple of step that is not below value.
func exactCeil(value *big.Rat, step int64) int64 {
	q := new(big.Rat).Quo(value, big.NewRat(step, 1))
	whole, rest := new(big.Int).QuoRem(q.Num(), q.Denom(), new(big.Int))
	if rest.Sign() > 0 {
		whole.Add(whole, big.NewInt(1))
	}
	return whole.Int64() * step
}

// exactKRR returns the recommendation of KRR's formulas, in fractions, from all samples.
func exactKRR(samples []estimate.Sample, percent int64, o estimate.KRROptions, now time.Time) (want resize.Amounts) {
	recent := func(at time.Time) bool { return at.After(now.Add(-o.History)) }
	cpu := map[string][]*big.Rat{}
	counts := map[resize.Resource]int{}
	memory := new(big.Rat)
	for _, s := range samples {
		if !recent(s.At) {
			continue
		}
		counts[s.Resource]++
		if s.Resource == resize.CPU {
			cpu[s.Pod] = append(cpu[s.Pod], big.NewRat(int64(s.Value*1e9+0.5), 1e6)) // in millicores
		} else if value := big.NewRat(115*int64(s.Value), 100); value.Cmp(memory) > 0 {
			memory = value
		}
	}
	if counts[resize.CPU] >= o.MinSamples {
		var highest int64
		for _, values := range cpu {
			highest = max(highest, exactCeil(exactQuantile(values, percent), 1))
		}
		want.CPU = resize.Of(highest)
	}
	if counts[resize.Memory] >= o.MinSamples {
		want.Memory = resize.Of(exactCeil(memory, 1<<20))
	}
	return want
}

func TestKRRIsItsFormulas(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	known, unknown := 0, 0
	for n := range 300 {
		samples, end := randomHistory(r)
		percent := []int64{95, 95, 50, 99, 100, 1}[r.IntN(6)]
		o := estimate.KRRDefaults()
		o.CPUPercentile = float64(percent)
		o.History = []time.Duration{o.History, 24 * time.Hour, time.Hour, 5 * time.Hour}[r.IntN(4)]
		e := estimate.NewKRR(o)
		for i, s := range samples {
			e.Observe(s)
			if i == len(samples)/2 {
				e.Recommend(s.At) // forgets what is old
			}
		}
		e.ObserveOOMKill(estimate.OOMKill{Pod: "web-1", At: end, Limit: 20e9}) // does not count
		now := end.Add(time.Duration(r.IntN(10)) * time.Minute)
		got, want := e.Recommend(now), exactKRR(samples, percent, o, now)
		if got != want {
			t.Fatalf("history %d with %+v: got %+v, want %+v", n, o, got, want)
		}
		if !want.CPU.Set {
			unknown++
			continue
		}
		known++
	}
	if known < 50 || unknown < 20 {
		t.Errorf("of 300 histories %d have a recommendation, and %d have none: the random input is one-sided", known, unknown)
	}
}
