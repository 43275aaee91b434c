package identity

import (
	"time"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/metric/run"
)

// choose is the rule continuity: it leaves at most one candidate. It reports whether the choice has
// no evidence.
func (s *Identifier) choose() (ambiguous bool) {
	s.t.guessed = s.remaining() > 1
	if !s.t.guessed {
		for i := range s.candidates {
			if c := &s.candidates[i]; !c.rejected && !s.rejectFormerLoser(c) {
				return s.isStillAmbiguous(c)
			}
		}
		return false
	}
	winner := s.preferred()
	for i := range s.candidates {
		c := &s.candidates[i]
		if c.rejected || c == winner {
			continue
		}
		if s.sample(c).Reasons[metric.CPU] != metric.NoData {
			ambiguous = true
			s.rejectFor(c, winner, metric.Ambiguous, ruleContinuity)
			continue
		}
		l := s.line(c)
		doubt := l.lost == metric.Ambiguous || l.cpu < 0
		s.rejectFor(c, winner, metric.Discontinuous, ruleContinuity)
		if doubt { // a counter that cannot be read is no evidence for the other one
			ambiguous, l.lost = true, metric.Ambiguous
		}
	}
	return ambiguous
}

// preferred returns the candidate that is chosen without evidence: the first that appeared beside the
// others, else the one that was chosen before, else the first whose counter was read, else the first.
func (s *Identifier) preferred() (winner *candidate) {
	var first, read *candidate
	for i := range s.candidates {
		c := &s.candidates[i]
		switch {
		case c.rejected:
			continue
		case s.appeared(c):
			return c
		case s.line(c).id == s.t.chosen && !s.unreadFor(c, s.rememberFor()):
			winner = c
		}
		if first == nil {
			first = c
		}
		if read == nil && !s.unreadFor(c, 0) {
			read = c
		}
	}
	switch {
	case winner != nil:
		return winner
	case read != nil:
		return read
	}
	return first
}

// appeared reports whether c appeared beside the other candidates lately, and its counter was never
// read.
func (s *Identifier) appeared(c *candidate) bool {
	l, sample := s.line(c), s.sample(c)
	return l.unreadSince != 0 && l.cpu < 0 && isUnread(sample) && reportTime(sample)-l.unreadSince <= int64(s.rememberFor())
}

// unreadFor reports whether the counter of c could not be read now and was last read longer ago than
// the given time.
func (s *Identifier) unreadFor(c *candidate, limit time.Duration) bool {
	sample := s.sample(c)
	return sample.Reasons[metric.CPU] == metric.NoData && (limit == 0 || reportTime(sample)-s.line(c).time > int64(limit))
}

// rejectFormerLoser rejects the only remaining candidate if it lost to a line that was seen
// lately: that line is missing from this answer, but is still the living instance. A second path that
// was made long after the run that has its ID stays rejected for as long as it is alone.
func (s *Identifier) rejectFormerLoser(c *candidate) bool {
	l := s.line(c)
	if l.lost.Layer() != metric.LayerIdentity || l.lostTo == 0 || l.rule == ruleViews && s.batch.Exhaustive || l.rule != ruleViews && c.present {
		return false // it did not lose, is the only path that is left, or is the present run
	}
	for j := range s.t.lines {
		if r := &s.t.lines[j]; r.id == l.lostTo && r.seen >= 0 && !s.isOvertaken(r, c) {
			s.reject(c, l.lost, metric.Evidence{Rule: l.rule, Other: metric.CounterReading{Start: r.start, UID: r.uid, ID: r.container}})
			return true
		}
	}
	if l.rule == ruleViews && l.number() != l.lostTo && c.present && s.isMadeLater(&s.sample(c).Instance) {
		s.reject(c, l.lost, metric.Evidence{Rule: l.rule})
		return true
	}
	return false
}

// isOvertaken reports whether the line r, to which c lost, is no reason to reject c: r is reported and
// is not the living instance either, or the processes are in the cgroup of c now; both are paths of one cgroup; or c lost without evidence and is
// now known to have the later start. A second path may have any start.
func (s *Identifier) isOvertaken(r *line, c *candidate) bool {
	l := s.line(c)
	switch {
	case s.isTaken(r) && (r.isDisproved() || l.lost == metric.DeadCgroup && r.lost == metric.DeadCgroup):
		return true
	case l.rule == ruleViews:
		return r.number() == l.number()
	}
	return l.lost == metric.Ambiguous && s.isYounger(c, r)
}

// isMadeLater reports whether an instance has the ID of the present run and a start long after it: the
// run began in another cgroup.
func (s *Identifier) isMadeLater(in *metric.Instance) bool {
	return in.ID != "" && in.ID == s.record.ID && run.Recorded(s.record.Start).Before(run.Reported(in.Start, in.Origin, run.Jitter))
}

// isStillAmbiguous reports whether c, the only remaining candidate, was once preferred without
// evidence to a line that is missing now and was seen lately, and its start does not show that it is
// the younger or the present run.
func (s *Identifier) isStillAmbiguous(c *candidate) bool {
	if len(s.t.lines) == 1 {
		return false
	}
	l := s.line(c)
	if s.record.IsPresent(l.container, startOf(s.sample(c), &l.core), s.limits.Resolution) {
		return false
	}
	for j := range s.t.lines {
		r := &s.t.lines[j]
		if r.lost == metric.Ambiguous && r.rule == ruleContinuity && r.lostTo == l.id && !s.isTaken(r) && s.clock-r.seen <= s.rememberFor() && !s.isYounger(c, r) {
			return true
		}
	}
	return false
}

// isDisproved reports whether the line was last rejected because it is not the present run. A
// line without processes, or the second path of one container, is not disproved.
func (l *line) isDisproved() bool {
	switch l.lost {
	case metric.OtherNode, metric.OldPod, metric.OldContainer, metric.OlderStart:
		return true
	}
	return false
}

// isYounger reports whether both starts are known, and that of c is later.
func (s *Identifier) isYounger(c *candidate, r *line) bool {
	start := s.start(c)
	return start != 0 && r.start != 0 && run.IsLater(start, r.start+r.shift, s.limits.Resolution)
}
