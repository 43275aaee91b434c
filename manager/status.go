package manager

import (
	"errors"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/weir-metrics/weir/metric"
)

// SourceStatus is the state of one source.
type SourceStatus struct {
	Name string
	Kind string
	Node metric.NodeName
	// Interval and Timeout are those of its Spec, with the defaults filled in.
	Interval, Timeout time.Duration
	// Unread is why the source is left out on purpose; nil for one that is read.
	Unread error
	// Began is when the last round began, Succeeded when the last round without an error ended;
	// zero without one.
	Began, Succeeded time.Time
	// Rounds and Successes count the rounds, and those without an error.
	Rounds, Successes int
	// Took is how long the last read took; 0 before the first one.
	Took time.Duration
	// Bytes is how many bytes the last read brought; 0 if that is unknown.
	Bytes int
	// ClockAhead is how far the node's clock was ahead of ours at the last answer, to about a
	// second; 0 if the node does not report its time.
	ClockAhead time.Duration
	// ClockKnown reports that the node has reported its time.
	ClockKnown bool
	// FailingSince is when the first of the rounds with an error began, up to the last; zero if the
	// last had none.
	FailingSince time.Time
	// Err is the error of the last round; nil if it had none, or if the source is left out on
	// purpose. The round may have served numbers all the same.
	Err error
	// Reached reports whether the last read had samples, or no error.
	Reached bool
	// Rated reports whether any round had a rate that could be served.
	Rated bool
	// Due is when the next round begins; in the past while one runs.
	Due time.Time
}

// Status returns the state of each source, ordered by name.
func (m *Manager) Status() []SourceStatus {
	m.mu.Lock()
	all := make([]SourceStatus, 0, len(m.mu.sources))
	for _, r := range m.mu.sources {
		all = append(all, r.currentStatus())
	}
	m.mu.Unlock()
	slices.SortFunc(all, func(a, b SourceStatus) int { return strings.Compare(a.Name, b.Name) })
	return all
}

func (r *runner) currentStatus() SourceStatus {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.status
}

// begin records that a round begins.
func (r *runner) begin() {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.status.Began = now
}

// recordRound records the result of the round of b. A source is logged when it begins to fail,
// when it fails for another reason, and when it answers after that.
func (r *runner) recordRound(b *metric.Batch) {
	if r.spec.Unread != nil {
		return
	}
	now := time.Now()
	r.mu.Lock()
	s := &r.mu.status
	s.Reached = r.answered
	s.Rated = s.Rated || rated(b)
	before := s.Err
	since := s.Succeeded
	s.Rounds++
	s.Err = b.Err
	s.Took, s.Bytes = b.Ended.Sub(b.Began), b.Bytes
	if b.NodeTime != 0 {
		s.ClockAhead, s.ClockKnown = clockAhead(b), true
	}
	switch {
	case b.Err == nil:
		s.Successes++
		s.Succeeded, s.FailingSince = now, time.Time{}
	case before == nil:
		s.FailingSince = b.Began
	}
	r.mu.Unlock()

	if b.Err == nil {
		r.meters.success.Set(float64(now.UnixNano()) / 1e9)
	}
	switch {
	case b.Err == nil && before != nil:
		r.meters.failing.Dec()
		if since.IsZero() {
			r.log().Info("the source answers for the first time")
		} else {
			r.log().Info("the source answers again", zap.Time("lastSuccess", since))
		}
	case b.Err != nil && before == nil:
		r.meters.failing.Inc()
		r.log().Warn("the source fails", failure(b.Err)...)
	case b.Err != nil && reasonOf(b.Err) != reasonOf(before):
		r.log().Warn("the source fails for another reason", failure(b.Err)...)
	}
}

// clockAhead returns how far the node's clock was ahead of ours when it answered. The node reported a
// whole second of its clock at some moment of the read, so a difference that the length of the read
// explains counts as none.
func clockAhead(b *metric.Batch) time.Duration {
	reported := time.Unix(0, b.NodeTime)
	switch end := reported.Add(time.Second); {
	case reported.After(b.Ended):
		return reported.Add(time.Second / 2).Sub(b.Ended)
	case end.Before(b.Began):
		return reported.Add(time.Second / 2).Sub(b.Began)
	}
	return 0
}

// rated reports whether b has nearly all the CPU rates that its source can give: few of its
// samples wait for their first rate, and the node itself does not, as people ask for nodes first.
func rated(b *metric.Batch) bool {
	var rates, first int
	for i := range b.Samples {
		switch s := &b.Samples[i]; {
		case s.Entity.Kind == metric.Node && s.Entity.Part == "" && (s.Reasons[metric.CPU] == metric.FirstSample || s.Reasons[metric.CPU] == metric.WarmingUp):
			return false
		case s.Reasons[metric.CPU] == metric.FirstSample, s.Reasons[metric.CPU] == metric.WarmingUp:
			first++
		case s.Rates[metric.CPU].End != 0 && s.Servable(metric.CPU):
			rates++
		}
	}
	return rates > 0 && float64(rates) >= enough*float64(rates+first)
}

// forgetStatus removes a source that ends from the count of failing ones.
func (r *runner) forgetStatus() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.status.Err != nil {
		r.meters.failing.Dec()
	}
}

// failure returns the log fields for err: for a panic also its stack.
func failure(err error) []zap.Field {
	fields := []zap.Field{zap.String("reason", reasonOf(err)), zap.NamedError("error", err)}
	if panicked, ok := errors.AsType[*panicError](err); ok {
		fields = append(fields, zap.ByteString("stack", panicked.stack))
	}
	return fields
}
