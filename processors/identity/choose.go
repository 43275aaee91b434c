package identity

import (
	"time"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/metric/run"
)

// choose is the rule continuity: it leaves at most one candidate. It reports whether the choice has
// no evidence.
func (identifier *Identifier) choose() (ambiguous bool) {
	identifier.t.guessed = identifier.remaining() > 1
	if !identifier.t.guessed {
		for i := range identifier.candidates {
			if c := &identifier.candidates[i]; !c.rejected && !identifier.rejectFormerLoser(c) {
				return identifier.isStillAmbiguous(c)
			}
		}
		return false
	}
	winner := identifier.preferred()
	for i := range identifier.candidates {
		c := &identifier.candidates[i]
		if c.rejected || c == winner {
			continue
		}
		if identifier.sample(c).Reasons[metric.CPU] != metric.NoData {
			ambiguous = true
			identifier.rejectFor(c, winner, metric.Ambiguous, ruleContinuity)
			continue
		}
		l := identifier.line(c)
		doubt := l.lost == metric.Ambiguous || l.cpu < 0
		identifier.rejectFor(c, winner, metric.Discontinuous, ruleContinuity)
		if doubt { // a counter that cannot be read is no evidence for the other one
			ambiguous, l.lost = true, metric.Ambiguous
		}
	}
	return ambiguous
}

// preferred returns the candidate that is chosen without evidence: the one that
// was chosen before, else the first whose counter was read, else the first.
func (identifier *Identifier) preferred() (winner *candidate) {
	var first, read *candidate
	for i := range identifier.candidates {
		c := &identifier.candidates[i]
		switch {
		case c.rejected:
			continue
		case identifier.line(c).id == identifier.t.chosen && !identifier.unreadFor(c, identifier.rememberFor()):
			winner = c
		}
		if first == nil {
			first = c
		}
		if read == nil && !identifier.unreadFor(c, 0) {
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

// unreadFor reports whether the counter of c could not be read now and was last read longer ago than
// the given time.
func (identifier *Identifier) unreadFor(c *candidate, limit time.Duration) bool {
	sample := identifier.sample(c)
	return sample.Reasons[metric.CPU] == metric.NoData && (limit == 0 || reportTime(sample)-identifier.line(c).time > int64(limit))
}

// rejectFormerLoser rejects the only remaining candidate if it lost to a line that was seen
// lately: that line is missing from this answer, but is still the living instance. A second path that
// was made long after the run that has its ID stays rejected for as long as it is alone.
func (identifier *Identifier) rejectFormerLoser(c *candidate) bool {
	l := identifier.line(c)
	if l.lost.Layer() != metric.LayerIdentity || l.lostTo == 0 || l.rule == ruleViews && identifier.batch.Exhaustive || l.rule != ruleViews && c.present {
		return false // it did not lose, is the only path that is left, or is the present run
	}
	for j := range identifier.t.lines {
		if r := &identifier.t.lines[j]; r.id == l.lostTo && r.seen >= 0 && !identifier.isOvertaken(r, c) {
			identifier.reject(c, l.lost, metric.Evidence{Rule: l.rule, Other: metric.CounterReading{Start: r.start, UID: r.uid, ID: r.container}})
			return true
		}
	}
	if l.rule == ruleViews && l.number() != l.lostTo && c.present && identifier.isMadeLater(&identifier.sample(c).Instance) {
		identifier.reject(c, l.lost, metric.Evidence{Rule: l.rule})
		return true
	}
	return false
}

// isOvertaken reports whether the line r, to which c lost, is no reason to reject c: r is reported and
// is not the living instance either, or the processes are in the cgroup of c now; both are paths of one cgroup; or c lost without evidence and is
// now known to have the later start. A second path may have any start.
func (identifier *Identifier) isOvertaken(r *line, c *candidate) bool {
	l := identifier.line(c)
	switch {
	case identifier.isTaken(r) && (r.isDisproved() || l.lost == metric.DeadCgroup && r.lost == metric.DeadCgroup):
		return true
	case l.rule == ruleViews:
		return r.number() == l.number()
	}
	return l.lost == metric.Ambiguous && identifier.isYounger(c, r)
}

// isMadeLater reports whether an instance has the ID of the present run and a start long after it: the
// run began in another cgroup.
func (identifier *Identifier) isMadeLater(in *metric.Instance) bool {
	return in.ID != "" && in.ID == identifier.record.ID && run.Recorded(identifier.record.Start).Before(run.Reported(in.Start, in.Origin, run.Jitter))
}

// isStillAmbiguous reports whether c, the only remaining candidate, was once preferred without
// evidence to a line that is missing now and was seen lately, and its start does not show that it is
// the younger or the present run.
func (identifier *Identifier) isStillAmbiguous(c *candidate) bool {
	if len(identifier.t.lines) == 1 {
		return false
	}
	l := identifier.line(c)
	if identifier.record.IsPresent(l.container, startOf(identifier.sample(c), &l.core), identifier.limits.Resolution) {
		return false
	}
	for j := range identifier.t.lines {
		r := &identifier.t.lines[j]
		if r.lost == metric.Ambiguous && r.rule == ruleContinuity && r.lostTo == l.id && !identifier.isTaken(r) && identifier.clock-r.seen <= identifier.rememberFor() && !identifier.isYounger(c, r) {
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
func (identifier *Identifier) isYounger(c *candidate, r *line) bool {
	start := identifier.start(c)
	return start != 0 && r.start != 0 && run.IsLater(start, r.start+r.shift, identifier.limits.Resolution)
}
