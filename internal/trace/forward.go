package trace

import (
	"iter"
	"time"
)

// Step is one step of a walk. A rule may use Known; it is judged by Next, which is after Now.
type Step struct {
	Now         time.Time
	Known, Next Series
}

// Forward walks through the series. The first step is start after the first reading, and each other
// one an interval, which must be positive, after the one before. Steps with nothing next are left out.
func (s Series) Forward(start, interval time.Duration) iter.Seq[Step] {
	return func(yield func(Step) bool) {
		if len(s) == 0 {
			return
		}
		known := len(s.Through(s[0].At.Add(start)))
		for now := s[0].At.Add(start); known < len(s); now = now.Add(interval) {
			end := len(s.Through(now.Add(interval)))
			if end == known { // a gap of the trace: go to the step before its end
				now = now.Add(s[known].At.Sub(now).Truncate(interval))
				if now.Equal(s[known].At) {
					now = now.Add(-interval)
				}
				end = len(s.Through(now.Add(interval)))
			}
			if !yield(Step{now, s[:known:known], s[known:end:end]}) {
				return
			}
			known = end
		}
	}
}
