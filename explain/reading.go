package explain

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/weir-metrics/weir/metric"
)

// reading is the state of all reads of a node, by all of its sources together.
type reading struct {
	sources []SourceState
	last    time.Time     // the newest read of any source, without the one under way
	success time.Time     // the newest read without an error
	due     time.Time     // the next read
	unread  error         // why no source is read; nil if one is
	err     error         // why the last reads failed; nil if one succeeded
	failing time.Time     // since when they fail; zero if one succeeded, or if it is unknown
	ahead   time.Duration // how far the node's clock is ahead of ours; 0 for little, which is normal
	started time.Time     // when weir began; zero if unknown
}

// byOurClock returns a time of the node's clock by ours.
func (r *reading) byOurClock(t time.Time) time.Time {
	if r == nil || t.IsZero() {
		return t
	}
	return t.Add(-r.ahead)
}

// hasEndpoint reports whether a source of the node reads this endpoint: "kubelet:cadvisor" and
// "cadvisor" read the endpoint cadvisor.
func (r *reading) hasEndpoint(name string) bool {
	return slices.ContainsFunc(r.sources, func(s SourceState) bool {
		return s.Name == name || strings.HasSuffix(s.Name, ":"+name)
	})
}

// normalError is by how much two clocks of a cluster may differ, and how exactly it is known.
const normalError = 2 * time.Second

// clockAhead returns how far the node's clock is ahead of ours; 0 for little, which is normal.
func (s *SourceState) clockAhead() time.Duration {
	if s.ClockAhead.Abs() < normalError {
		return 0
	}
	return s.ClockAhead
}

// NewRead returns the state of a source for an answer, without its error.
func NewRead(s *SourceState) Read {
	return Read{
		Source: s.Name, LastRead: utc(s.LastRead), LastSuccess: utc(s.LastSuccess), Due: utc(s.Due),
		Seconds: s.Took.Seconds(), Bytes: s.Bytes, ClockAheadSeconds: s.clockAhead().Seconds(),
	}
}

// newReading combines the states of sources. It ignores the times of an excluded source.
func (ex *Explainer) newReading(sources []SourceState) *reading {
	r := &reading{sources: sources, started: ex.Started}
	var included, healthy bool
	for i := range sources {
		s := &sources[i]
		if s.Unread != nil {
			r.unread = s.Unread
			continue
		}
		included, healthy = true, healthy || s.Err == nil && !s.LastRead.IsZero()
		r.addTimes(s, ex.Now)
		r.addError(s)
	}
	r.last = later(r.last, r.success)
	if healthy {
		r.err, r.failing = nil, time.Time{}
	}
	if included {
		r.unread = nil
	}
	return r
}

// addTimes adds when s was read and is due, and the clock of its node.
func (r *reading) addTimes(s *SourceState, now time.Time) {
	if ahead := s.clockAhead(); ahead != 0 && !s.LastSuccess.Before(r.success) {
		r.ahead = ahead
	}
	r.success = later(r.success, s.LastSuccess)
	if running := !s.Due.IsZero() && s.Due.Before(now); !running {
		r.last = later(r.last, s.LastRead) // a read under way has returned nothing yet
	}
	if r.due.IsZero() || !s.Due.IsZero() && s.Due.Before(r.due) {
		r.due = s.Due
	}
}

// addError adds why the last read of s failed, if it did.
func (r *reading) addError(s *SourceState) {
	if s.Err == nil {
		return
	}
	if r.err == nil {
		r.err = s.Err
	}
	if r.failing.IsZero() || s.FailingSince.Before(r.failing) {
		r.failing = s.FailingSince
	}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// reasonOf returns the reason in a read's error, or otherwise.
func reasonOf(err error, otherwise metric.Reason) metric.Reason {
	if read := (*metric.ReadError)(nil); errors.As(err, &read) {
		return read.Reason
	}
	return otherwise
}

// lasting is how long a temporary reason may last before it is broken: five minutes, or ten
// readings of a slow source.
func (r *reading) lasting() time.Duration {
	d := 5 * time.Minute
	for i := range r.sources {
		d = max(d, 10*r.sources[i].Interval)
	}
	return d
}

// every returns the shortest interval of the sources, or 0 if it is unknown.
func (r *reading) every() time.Duration {
	var every time.Duration
	for i := range r.sources {
		if s := &r.sources[i]; s.Unread == nil && s.Interval > 0 && (every == 0 || s.Interval < every) {
			every = s.Interval
		}
	}
	return every
}

// isOfReads reports whether a reason is that the node could not be read.
func isOfReads(reason metric.Reason) bool {
	return reason.Layer() == metric.LayerScrape || reason == metric.NodeNotReady
}

// readsBehind returns the reads that r is about: if one source of a node fails and another answers, those
// that fail.
func (w *messageWriter) readsBehind(r *Outcome) *reading {
	if w.read.err != nil || !isOfReads(r.Reason) {
		return w.read
	}
	failing := slices.DeleteFunc(slices.Clone(w.read.sources), func(s SourceState) bool { return s.Err == nil || s.Unread != nil })
	if len(failing) == 0 {
		return w.read
	}
	return (&Explainer{Now: w.now, Started: w.read.started}).newReading(failing)
}

// readingOf returns the reading of a node.
func (ex *Explainer) readingOf(node metric.NodeName) *reading {
	var sources []SourceState
	for i := range ex.Sources {
		if s := &ex.Sources[i]; s.Node == node || s.Node == "" {
			sources = append(sources, *s)
		}
	}
	return ex.newReading(sources)
}

// reads returns the states of the node's sources. Errors contain addresses, so only the answer
// about the node itself includes them.
func (ex *Explainer) reads(node metric.NodeName, errors bool) (reads []Read) {
	for _, s := range ex.readingOf(node).sources {
		r := NewRead(&s)
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
