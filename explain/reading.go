package explain

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/weir-metrics/weir/metric"
)

// reading is how a node is being read, by all of its sources together.
type reading struct {
	sources []SourceState
	last    time.Time // the newest read of any, the present one left out
	success time.Time // the newest that went well
	due     time.Time // the next
	unread  error     // if none is read, why
	err     error     // if none went well the last time, why
}

// newReading sums up sources as of now. The times of one that is excluded say
// nothing.
func newReading(sources []SourceState, now time.Time) *reading {
	r := &reading{sources: sources}
	reads, well := false, false
	for i := range sources {
		s := &sources[i]
		if s.Unread != nil {
			r.unread = s.Unread
			continue
		}
		reads = true
		r.success = later(r.success, s.LastSuccess)
		if running := !s.Due.IsZero() && s.Due.Before(now); !running {
			r.last = later(r.last, s.LastRead) // else this one has brought nothing yet
		}
		if r.due.IsZero() || !s.Due.IsZero() && s.Due.Before(r.due) {
			r.due = s.Due
		}
		well = well || s.Err == nil && !s.LastRead.IsZero()
		if s.Err != nil && r.err == nil {
			r.err = s.Err
		}
	}
	r.last = later(r.last, r.success)
	if well {
		r.err = nil
	}
	if reads {
		r.unread = nil
	}
	return r
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// reasonOf returns the reason that a read's error carries, or otherwise.
func reasonOf(err error, otherwise metric.Reason) metric.Reason {
	if read := (*metric.ReadError)(nil); errors.As(err, &read) {
		return read.Reason
	}
	return otherwise
}

// lasting is how long something that passes by itself may take before it is
// called broken: five minutes, or ten readings of slow sources.
func (r *reading) lasting() time.Duration {
	d := 5 * time.Minute
	for i := range r.sources {
		d = max(d, 10*r.sources[i].Interval)
	}
	return d
}

// every returns the shortest time between two reads; 0 if unknown.
func (r *reading) every() time.Duration {
	var every time.Duration
	for i := range r.sources {
		if s := &r.sources[i]; s.Unread == nil && s.Interval > 0 && (every == 0 || s.Interval < every) {
			every = s.Interval
		}
	}
	return every
}

// readingOf returns how a node is read.
func (w *Explainer) readingOf(node metric.NodeName) *reading {
	var sources []SourceState
	for i := range w.Sources {
		if s := &w.Sources[i]; s.Node == node || s.Node == "" {
			sources = append(sources, *s)
		}
	}
	return newReading(sources, w.Now)
}

// reads returns the states of the node's sources. Errors name addresses, and are said
// only of the node itself.
func (w *Explainer) reads(node metric.NodeName, errors bool) (reads []Read) {
	for _, s := range w.readingOf(node).sources {
		r := Read{Source: s.Name, LastRead: utc(s.LastRead), LastSuccess: utc(s.LastSuccess), Due: utc(s.Due)}
		err := s.Err
		if s.Unread != nil {
			err, r.Due = s.Unread, time.Time{}
		}
		if err != nil {
			r.Reason = reasonOf(err, metric.NodeUnreachable).String()
			if errors {
				r.Error = err.Error()
			}
		}
		reads = append(reads, r)
	}
	slices.SortFunc(reads, func(a, b Read) int { return strings.Compare(a.Source, b.Source) })
	return reads
}
