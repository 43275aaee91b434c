package resize

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/internal/trace"
)

// UsageFigure is the usage of a resource as one number.
type UsageFigure struct {
	Percentile float64           `json:"percentile"`
	Value      resource.Quantity `json:"value"` // rounded up to millicores or bytes
	Samples    int               `json:"samples"`
	From       time.Time         `json:"from"`
	To         time.Time         `json:"to"`
	// Pods is how many pods of a workload have readings, and LongestSeconds for how long one of them was
	// measured at most. Both are zero for a pod's own recommendation.
	Pods           int     `json:"pods,omitempty"`
	LongestSeconds float64 `json:"longestSeconds,omitempty"`
	// Season is the busiest hour of the day or of the week, if its percentile is above Value.
	Season *Season `json:"season,omitempty"`
	// Risk is how often what the rule recommends, or the floor, was exceeded.
	Risk *Risk `json:"risk,omitempty"`
	// Estimate is what Options.Tool recommends; nil without one, or if it recommends nothing.
	Estimate *resource.Quantity `json:"estimate,omitempty"`
}

// Risk is how often a request would have been too small, as shares of the readings.
type Risk struct {
	// Above is the share of the readings that are above what the rule recommends from them.
	Above float64 `json:"above"`
	// HeldOut is the share of the readings of the last third of the time that are above what the rule
	// recommends from the first two. It is nil if less than a day was measured.
	HeldOut *float64 `json:"heldOut,omitempty"`
}

// leastHeldOut is the shortest history that has a held-out part, its last third.
const leastHeldOut = 24 * time.Hour

// Season is the hour of each day or week in which most was used.
type Season struct {
	// Period is "day" or "week".
	Period string `json:"period"`
	// Hour is the hour of the day in UTC, and Weekday the day of the week if that is the period.
	Hour    int    `json:"hour"`
	Weekday string `json:"weekday,omitempty"`
	// Value is what the percentile of that hour reaches in three of four days or weeks, rounded up to millicores.
	Value resource.Quantity `json:"value"`
}

// String returns the hour with the words that precede its value.
func (s *Season) String() string {
	return fmt.Sprintf("from %02d:00 to %02d:00 UTC of a usual %s", s.Hour, (s.Hour+1)%24, cmp.Or(s.Weekday, s.Period))
}

const (
	leastPeriods = 3 // of days or weeks, for a season
	// leastOfHour is the least number of readings that an hour must have to count.
	leastOfHour = 4
)

// newSeason returns the busiest hour of the day or of the week. An hour's value is the percentile that it
// reaches in three of four days or weeks, and the busiest hour has the highest. The result is nil if that value
// is not above the percentile of all points. So a peak of one hour a day counts, which is 4% of the time. A
// peak that came once does not.
func newSeason(points []UsagePoint, f *UsageFigure) (best *Season) {
	hours := map[int64][]UsagePoint{}
	if f.To.Sub(f.From) >= leastPeriods*24*time.Hour {
		for _, p := range points {
			hour := p.At.Unix() / 3600
			hours[hour] = append(hours[hour], p)
		}
	}
	high := quantityValue(CPU, &f.Value)
	for _, period := range []int64{24, 7 * 24} { // hours
		alike := make([][]float64, period)
		for hour, points := range hours {
			if len(points) >= leastOfHour {
				alike[hour%period] = append(alike[hour%period], quantile(points, f.Percentile))
			}
		}
		for hour, values := range alike {
			if len(values) < leastPeriods {
				continue
			}
			slices.Sort(values)
			if amount := WholeUnits(CPU, values[len(values)/4]); amount > high {
				high = amount
				at := time.Unix(int64(hour)*3600, 0).UTC()
				best = &Season{Period: "day", Hour: at.Hour(), Value: *Quantity(CPU, amount)}
				if period > 24 {
					best.Period, best.Weekday = "week", at.Weekday().String()
				}
			}
		}
	}
	return best
}

// newFigure returns the usage of a container in one or more pods as one number; nil if nothing was
// measured.
func newFigure(r Resource, o *Options, pods ...PodUsage) *UsageFigure {
	f, all := summarizeWithSeason(r, o, pods)
	if f == nil || o.Tool != nil && f.Estimate == nil {
		return f
	}
	f.Risk = &Risk{Above: shareAbove(r, all, o.fit(r, f))}
	if f.To.Sub(f.From) < leastHeldOut {
		return f
	}
	cut := f.From.Add(f.To.Sub(f.From) * 2 / 3)
	for i := range pods { // the points are summarize's own
		pods[i].Points = slices.DeleteFunc(pods[i].Points, func(p UsagePoint) bool { return p.At.After(cut) })
	}
	known, _ := summarizeWithSeason(r, o, pods)
	later := slices.DeleteFunc(all, func(p UsagePoint) bool { return !p.At.After(cut) })
	if known == nil || o.Tool != nil && known.Estimate == nil || len(later) == 0 {
		return f
	}
	share := shareAbove(r, later, o.fit(r, known))
	f.Risk.HeldOut = &share
	return f
}

// shareAbove returns the share of the points that are above an amount.
func shareAbove(r Resource, points []UsagePoint, amount int64) float64 {
	above := 0
	for _, p := range points {
		if WholeUnits(r, p.Value) > amount {
			above++
		}
	}
	return float64(above) / float64(len(points))
}

// summarizeWithSeason is summarize with the busiest hour, if weir's rule looks for one.
func summarizeWithSeason(r Resource, o *Options, pods []PodUsage) (*UsageFigure, []UsagePoint) {
	f, all := summarize(r, o, pods)
	if f != nil && r == CPU && o.Tool == nil {
		f.Season = newSeason(all, f)
	}
	return f, all
}

// summarize returns the usage in pods as one number, without a season and a risk, and all valid points; nil if there are none.
// The valid points, which are copies, replace those of pods.
func summarize(r Resource, o *Options, pods []PodUsage) (*UsageFigure, []UsagePoint) {
	f, total := &UsageFigure{}, 0
	for i := range pods {
		total += len(pods[i].Points)
	}
	all := make([]UsagePoint, 0, total)
	for i := range pods {
		points := ValidPoints(pods[i].Points)
		pods[i].Points = points
		if len(points) == 0 {
			continue
		}
		from, to := span(points)
		f.Pods, f.LongestSeconds = f.Pods+1, max(f.LongestSeconds, to.Sub(from).Seconds())
		if f.From.IsZero() || from.Before(f.From) {
			f.From = from.UTC()
		}
		if to.After(f.To) {
			f.To = to.UTC()
		}
		all = append(all, points...)
	}
	if len(all) == 0 {
		return nil, nil
	}
	f.Percentile, f.Samples = o.aim(r).Percentile, len(all)
	if o.Tool != nil {
		f.Estimate = optionalQuantity(r, o.Tool.Estimate(r, pods))
	}
	f.Value = *Quantity(r, WholeUnits(r, quantile(all, f.Percentile)))
	return f, all
}

// WholeUnits returns usage in millicores or bytes, rounded up.
func WholeUnits(r Resource, value float64) int64 {
	if r == CPU {
		value = math.Round(value*1e9) / 1e6 // the kernel counts CPU time in nanoseconds
	}
	return int64(math.Ceil(value))
}

// fit returns the request that fits the usage, without the words: at least the floor.
func (o *Options) fit(r Resource, f *UsageFigure) int64 {
	need, _ := o.need(r, f)
	return max(need, o.aim(r).Floor)
}

// need returns the request that fits the usage, and how it was computed.
func (o *Options) need(r Resource, used *UsageFigure) (need int64, reason string) {
	aim := o.aim(r)
	value, step := quantityValue(r, &used.Value), int64(1)
	if r == Memory {
		step = mebibyte
	}
	if o.Tool != nil {
		need = roundUp(quantityValue(r, used.Estimate), step)
		return need, fmt.Sprintf("%v recommends %s from %s over %s", o.Tool, FormatAmount(r, need), used.readings(), used.duration())
	}
	reason = used.describe(r)
	if used.Season != nil {
		value = quantityValue(r, &used.Season.Value)
		reason += fmt.Sprintf(", and %s at most %s", used.Season, FormatAmount(r, value))
	}
	// The multiplication may add a rounding error of up to 0.0001.
	need = roundUp(int64(math.Ceil(float64(value)*(1+aim.Headroom)-1e-4)), step)
	return need, fmt.Sprintf("%s; %.4g%% more is %s", reason, aim.Headroom*100, FormatAmount(r, need))
}

// Text returns the risk as a sentence.
func (r *Risk) Text() string {
	above := "none of these readings is"
	if r.Above > 0 {
		above = humanize.Percent(r.Above) + " of these readings are"
	}
	text := "Risk: " + above + " above it"
	if r.HeldOut != nil {
		text += fmt.Sprintf("; %s of the last third are above what the first two thirds recommend", humanize.Percent(*r.HeldOut))
	}
	return text + "."
}

// describe describes the usage: "95% of 60 readings over 14m45s are at most 62m".
func (f *UsageFigure) describe(r Resource) string {
	amount := FormatAmount(r, quantityValue(r, &f.Value))
	if f.Percentile == 100 {
		return fmt.Sprintf("the highest of %s over %s is %s", f.readings(), f.duration(), amount)
	}
	return fmt.Sprintf("%.4g%% of %s over %s are at most %s", f.Percentile, f.readings(), f.duration(), amount)
}

// readings describes how much was measured: "60 readings", "240 readings of 4 pods".
func (f *UsageFigure) readings() string {
	text := fmt.Sprintf("%d readings", f.Samples)
	if f.Pods > 0 {
		text += " of " + humanize.Count(f.Pods, "pod")
	}
	return text
}

func (f *UsageFigure) duration() string {
	return humanize.Duration(f.To.Sub(f.From).Round(time.Second))
}

// UsagePoint is the usage of a container at a time: cores, or bytes of the working set.
type UsagePoint = trace.Reading

// quantile returns the smallest measured value that percent of the points do not exceed (nearest
// rank); 100 returns the highest value. Points must not be empty.
func quantile(points []UsagePoint, percent float64) float64 {
	values := make([]float64, len(points))
	for i, p := range points {
		values[i] = p.Value
	}
	slices.Sort(values)
	rank := int(math.Ceil(percent / 100 * float64(len(values))))
	return values[min(max(rank, 1), len(values))-1]
}

// ValidPoints returns the points without negative, infinite and NaN values.
func ValidPoints(points []UsagePoint) []UsagePoint {
	return slices.DeleteFunc(slices.Clone(points), func(p UsagePoint) bool {
		return !(p.Value >= 0) || p.Value > maxValue
	})
}

// maxValue is larger than any usage in cores or bytes. It keeps sums within int64.
const maxValue = 1 << 53

// span returns the times of the first and the last point. Points must not be empty.
func span(points []UsagePoint) (from, to time.Time) {
	byTime := func(a, b UsagePoint) int { return a.At.Compare(b.At) }
	return slices.MinFunc(points, byTime).At, slices.MaxFunc(points, byTime).At
}
