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
func exactKRR(samples []estimate.Sample, kills []estimate.OOMKill, percent int64, o estimate.KRROptions, now time.Time) (want resize.Amounts) {
	recent := func(at time.Time) bool { return at.After(now.Add(-o.History)) }
	cpu := map[string][]*big.Rat{}
	counts := map[resize.Resource]int{}
	memory := new(big.Rat)
	atLeast := func(value, factor *big.Rat) {
		if value.Mul(value, factor).Cmp(memory) > 0 {
			memory = value
		}
	}
	for _, s := range samples {
		if !recent(s.At) {
			continue
		}
		counts[s.Resource]++
		if s.Resource == resize.CPU {
			cpu[s.Pod] = append(cpu[s.Pod], big.NewRat(int64(s.Value*1e9+0.5), 1e6)) // in millicores
		} else {
			atLeast(big.NewRat(int64(s.Value), 1), big.NewRat(115, 100))
		}
	}
	for _, k := range kills {
		if o.OOMKills && recent(k.At) {
			atLeast(big.NewRat(k.Limit, 1), big.NewRat(125, 100))
		}
	}
	if counts[resize.CPU] >= o.MinSamples {
		var highest int64
		for _, values := range cpu {
			highest = max(highest, exactCeil(exactQuantile(values, percent), 1))
		}
		want.CPU = resize.Of(max(highest, o.Floor.CPU.Value))
	}
	if counts[resize.Memory] >= o.MinSamples {
		want.Memory = resize.Of(max(exactCeil(memory, 1<<20), o.Floor.Memory.Value))
	}
	return want
}

func TestKRRIsItsFormulas(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	known, unknown, byKill := 0, 0, 0
	for n := range 300 {
		samples, end := randomHistory(r)
		percent := []int64{95, 95, 50, 99, 100, 1}[r.IntN(6)]
		o := estimate.KRRDefaults()
		o.CPUPercentile = float64(percent)
		o.OOMKills = r.IntN(2) == 0
		o.History = []time.Duration{o.History, 24 * time.Hour, time.Hour, 5 * time.Hour}[r.IntN(4)]
		kills := []estimate.OOMKill{{Pod: "web-1", At: end.Add(-time.Duration(r.IntN(48)) * time.Hour), Limit: r.Int64N(20e9)}}
		e := estimate.NewKRR(o)
		for i, s := range samples {
			e.Observe(s)
			if i == len(samples)/2 {
				e.Recommend(s.At) // forgets what is old
			}
		}
		e.ObserveOOMKill(kills[0])
		now := end.Add(time.Duration(r.IntN(10)) * time.Minute)
		got, want := e.Recommend(now), exactKRR(samples, kills, percent, o, now)
		if got != want {
			t.Fatalf("history %d with %+v: got %+v, want %+v", n, o, got, want)
		}
		if !want.CPU.Set {
			unknown++
			continue
		}
		known++
		if without := exactKRR(samples, nil, percent, o, now); without != want {
			byKill++
		}
	}
	if known < 50 || unknown < 20 || byKill < 20 {
		t.Errorf("of 300 histories %d have a recommendation, %d have none, and in %d an OOM kill decides: the random input is one-sided", known, unknown, byKill)
	}
}
