package trace

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Range is an interval of 95%.
type Range struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// Bootstrap returns the interval of a statistic over entities: entities are drawn with replacement as
// often as there are, so many times, and the interval has 95% of the statistics (the percentile
// method). The same seed draws the same entities. Results that are not numbers are ignored. With fewer
// than two entities there is no interval.
func Bootstrap(entities, times int, seed uint64, statistic func(drawn []int) float64) *Range {
	if entities < 2 {
		return nil
	}
	random := rand.New(rand.NewPCG(seed, 0))
	drawn := make([]int, entities)
	var results []float64
	for range times {
		for i := range drawn {
			drawn[i] = random.IntN(entities)
		}
		if v := statistic(drawn); !math.IsNaN(v) {
			results = append(results, v)
		}
	}
	if len(results) == 0 {
		return nil
	}
	slices.Sort(results)
	at := func(share float64) float64 { return results[int(math.Round(share*float64(len(results)-1)))] }
	return &Range{at(0.025), at(0.975)}
}
