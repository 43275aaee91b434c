package replay

import (
	"cmp"
	"slices"
	"time"

	"github.com/weir-metrics/weir/internal/trace"
)

// score is what is counted of one resource of one container with one rule. Amounts are in cores or
// bytes, multiplied by seconds.
type score struct {
	seconds float64
	// requested and used are the sums; slack is the request above use, overrun the use above the
	// request, throttled the use above the limit.
	requested, used, slack, overrun, throttled float64
	overSeconds                                float64 // time with an overrun
	kills, changes                             int
	baseline                                   float64 // requested by the baseline
	// days has the relative slack of each day of 24 hours, and the day that has not ended.
	days               []day
	dayEnd             time.Time
	daySlack, dayTotal float64
	daySeconds         float64
}

// day is the relative slack of a container-day, or of a part of one.
type day struct{ slack, seconds float64 }

func (s *score) add(r trace.Reading, lasts time.Duration, request, limit float64) {
	seconds := lasts.Seconds()
	slack := max(request-r.Value, 0) * seconds
	s.seconds += seconds
	s.requested += request * seconds
	s.used += r.Value * seconds
	s.slack += slack
	s.overrun += max(r.Value-request, 0) * seconds
	s.throttled += max(r.Value-limit, 0) * seconds
	if r.Value > request {
		s.overSeconds += seconds
	}
	if r.At.After(s.dayEnd) {
		s.end()
		s.dayEnd = r.At.Add(24*time.Hour - lasts)
	}
	s.daySlack += slack
	s.dayTotal += request * seconds
	s.daySeconds += seconds
}

// end ends the day.
func (s *score) end() {
	if s.dayTotal > 0 {
		s.days = append(s.days, day{s.daySlack / s.dayTotal, s.daySeconds})
	}
	s.daySlack, s.dayTotal, s.daySeconds = 0, 0, 0
}

// sum returns the sum of scores, without the days. Each drawn score may be there more than once.
func sum(scores []score, drawn []int) (total score) {
	for _, i := range drawn {
		s := &scores[i]
		total.seconds += s.seconds
		total.requested += s.requested
		total.used += s.used
		total.slack += s.slack
		total.overrun += s.overrun
		total.throttled += s.throttled
		total.overSeconds += s.overSeconds
		total.kills += s.kills
		total.changes += s.changes
		total.baseline += s.baseline
	}
	return total
}

// containerDays returns the time in days.
func (s *score) containerDays() float64 { return s.seconds / (24 * time.Hour).Seconds() }

// perDay returns a number per container-day; 0 of no time.
func (s *score) perDay(n int) float64 { return share(float64(n), s.containerDays()) }

// slackByDay returns the mean and the percentiles 50 and 95 of the relative slack of container-days,
// which weigh as long as they are.
func slackByDay(scores []score) (mean, p50, p95 float64) {
	var days []day
	var weighted, total float64
	for i := range scores {
		days = append(days, scores[i].days...)
	}
	slices.SortFunc(days, func(a, b day) int { return cmp.Compare(a.slack, b.slack) })
	for _, d := range days {
		weighted += d.slack * d.seconds
		total += d.seconds
	}
	percentile := func(part float64) float64 {
		seconds := 0.0
		for _, d := range days {
			if seconds += d.seconds; seconds >= part*total {
				return d.slack
			}
		}
		return 0
	}
	return share(weighted, total), percentile(0.50), percentile(0.95)
}

// share returns part/whole; 0 of nothing.
func share(part, whole float64) float64 {
	if whole == 0 {
		return 0
	}
	return part / whole
}
