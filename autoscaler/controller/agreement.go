package controller

import (
	"fmt"
	"slices"
	"time"
)

// This file compares the decisions of two controllers that read the same target at different times,
// each with the metrics of its own time. It uses no clock and no cluster.
//
// A change of the controller *agrees* if weir, deciding on the same count, comes to the same new
// count at some time within maxSkew of the change. This includes the decisions of weir's rounds
// before the change, and later decisions made for this purpose as if the target still had the old
// count (and as if removed pods still had their last metrics). maxSkew is a period plus the
// resolution of the metrics: one controller's round may be that much later, with metrics that much
// newer.
//
// A change that weir proposes and the controller does not make *differs* once weir has proposed the
// same direction in every round for longer than maxSkew. A shorter proposal is not judged, because
// the other controller may not have decided in that time. The same holds if weir has no metrics
// while the controller reports that it has.
//
// A round in which neither side changes anything is agreement too. It is only counted.
//
// weir's memory is shorter than the controller's until weir has observed the target for the longest
// window or period of the specification, counted from its start or the last gap. Differences that
// this explains are *undecided*. A change that weir observed too late is undecided, too.
//
// When kube-controller-manager restarts, its memory begins again. For one window it does not scale
// down (NotFollowed), and it may exceed policies because it forgot earlier changes (Count,
// NoChange). These count as differences. They can only be recognised because they begin for all
// autoscalers at once.

// ownDecision is weir's decision in a round.
type ownDecision struct {
	At time.Time
	// Current is the count before the decision. Desired is the count after it, if Decided is set.
	Current, Desired int32
	Decided          bool
	// MetricsMissing is set if the controller has metrics but weir has no decision.
	MetricsMissing bool
	// Targets are the metrics that weir read. Summary is the decision in one line. Both are empty in
	// rounds without a change.
	Targets, Summary string
}

// controllerChange is a change of the count by the controller, with the metrics that it reported.
type controllerChange struct {
	At       time.Time
	From, To int32
	Targets  string
	// Missed is set if weir did not observe the change itself. From is then a guess.
	Missed bool
}

// comparisonResult is the result of a comparison.
type comparisonResult uint8

const (
	agreed comparisonResult = iota
	differed
	undecided
)

func (c comparisonResult) String() string { return [...]string{"agreed", "differed", "undecided"}[c] }

// The reasons of differences, as they appear in weir's own metrics.
const (
	reasonNoDecision  = "NoDecision"  // weir had no count to propose, but the controller had one
	reasonNoChange    = "NoChange"    // weir would not have changed the count
	reasonOpposite    = "Opposite"    // weir would have changed the count in the other direction
	reasonCount       = "Count"       // weir would have changed it in the same direction, to another count
	reasonNotFollowed = "NotFollowed" // weir proposed a change that the controller did not make
	reasonWarmingUp   = "WarmingUp"   // undecided: weir's memory is shorter than the controller's
	reasonMissed      = "Missed"      // undecided: weir observed the change too late
)

// direction is the direction in which a decision changes the count.
type direction uint8

const (
	directionNone direction = iota // no change
	directionUp
	directionDown
	directionUnknown // weir has no metrics, but the controller has
)

func (o ownDecision) direction() direction {
	switch {
	case o.MetricsMissing:
		return directionUnknown
	case o.Decided && o.Desired > o.Current:
		return directionUp
	case o.Decided && o.Desired < o.Current:
		return directionDown
	}
	return directionNone
}

// comparison is the result of the comparison of one change or proposal.
type comparison struct {
	At time.Time // the time of the change, or of the first proposal
	// From is the count before, To is the count that the controller set, and WeirReplicas is the count
	// that weir would have set.
	From, To, WeirReplicas int32
	Result                 comparisonResult
	Reason                 string // the reason of a difference
	Explanation            string
}

// String returns the comparison in one line.
func (c comparison) String() string {
	s := fmt.Sprintf("%s %s: %d to %d, weir %d", c.At.UTC().Format(time.RFC3339), c.Result, c.From, c.To, c.WeirReplicas)
	if c.Reason != "" {
		s += ", " + c.Reason
	}
	if c.Explanation != "" {
		s += ": " + c.Explanation
	}
	return s
}

// keepComparisons is the number of comparisons that are kept for one object.
const keepComparisons = 20

// comparer compares the decisions about one target. Its methods return the comparisons that have
// become certain, oldest first.
type comparer struct {
	maxSkew time.Duration // the period plus the resolution of the metrics
	// memoryFull is the time from which weir's memory is as long as the controller's.
	memoryFull time.Time

	recent    []ownDecision     // weir's decisions within maxSkew, oldest first
	unmatched []unmatchedChange // changes that do not agree with any decision of weir yet
	// direction is the direction of weir's last rounds, and since is the first of them. reported is
	// set after it was counted as a difference.
	direction  direction
	since      time.Time
	reported   bool
	holdRounds int // rounds in which neither side changed the count, not counted yet

	comparisons []comparison // newest last
}

// unmatchedChange is a change, with weir's decision that is closest to it.
type unmatchedChange struct {
	controllerChange
	closest ownDecision
}

// addDecision adds a round of weir.
func (co *comparer) addDecision(s ownDecision) []comparison {
	co.recent = append(slices.DeleteFunc(co.recent, func(old ownDecision) bool { return s.At.Sub(old.At) > co.maxSkew }), s)
	found := co.expireUnmatched(s.At)
	switch now := s.direction(); {
	case now != co.direction:
		co.direction, co.since, co.reported = now, s.At, false
	case now != directionNone && !co.reported && s.At.Sub(co.since) > co.maxSkew:
		co.reported = true
		c := comparison{At: co.since, From: s.Current, To: s.Current, WeirReplicas: s.Desired, Result: differed, Reason: reasonNotFollowed, Explanation: s.Summary}
		switch {
		case now == directionUnknown:
			c.Reason, c.WeirReplicas = reasonNoDecision, s.Current
		case co.since.Before(co.memoryFull):
			c.Result, c.Reason = undecided, reasonWarmingUp
		}
		found = append(found, co.appendComparison(c))
	}
	if s.Decided && co.direction == directionNone && len(co.unmatched) == 0 {
		co.holdRounds++
	}
	return found
}

// addGap records that weir made no decision for longer than maxSkew. Its memory is complete again
// at memoryFull. Unmatched changes become undecided.
func (co *comparer) addGap(memoryFull time.Time) (found []comparison) {
	for _, o := range co.unmatched {
		found = append(found, co.compareMissed(o.controllerChange))
	}
	co.memoryFull, co.direction, co.unmatched, co.recent = memoryFull, directionNone, nil, nil
	return found
}

// compareMissed returns the comparison for a change without a decision of weir.
func (co *comparer) compareMissed(c controllerChange) comparison {
	return co.appendComparison(comparison{At: c.At, From: c.From, To: c.To, WeirReplicas: c.From, Result: undecided, Reason: reasonMissed})
}

// addChange adds a change of the controller. same is weir's decision on the count before the
// change, made now.
func (co *comparer) addChange(c controllerChange, same ownDecision) []comparison {
	co.direction = directionNone
	if c.Missed || !withinSkew(same.At, c.At, co.maxSkew) {
		return []comparison{co.compareMissed(c)}
	}
	nearest := same
	for _, s := range co.recent {
		if s.Decided && s.Current == c.From && s.Desired == c.To && withinSkew(s.At, c.At, co.maxSkew) {
			nearest = s
		}
	}
	if nearest.Decided && nearest.Desired == c.To {
		return []comparison{co.appendComparison(comparison{At: c.At, From: c.From, To: c.To, WeirReplicas: c.To, Result: agreed})}
	}
	co.unmatched = append(co.unmatched, unmatchedChange{c, same})
	return nil
}

// recheckChange adds another decision of weir on the count before the change.
func (co *comparer) recheckChange(c controllerChange, same ownDecision) []comparison {
	i := slices.IndexFunc(co.unmatched, func(o unmatchedChange) bool { return o.controllerChange == c })
	if i < 0 || !same.Decided || same.Desired != c.To || !withinSkew(same.At, c.At, co.maxSkew) {
		return nil
	}
	co.unmatched = slices.Delete(co.unmatched, i, i+1)
	return []comparison{co.appendComparison(comparison{At: c.At, From: c.From, To: c.To, WeirReplicas: c.To, Result: agreed})}
}

// unmatchedChanges returns the changes that need another decision.
func (co *comparer) unmatchedChanges() (list []controllerChange) {
	for _, o := range co.unmatched {
		list = append(list, o.controllerChange)
	}
	return list
}

// expireUnmatched removes the changes that have been unmatched for longer than maxSkew, and returns
// their comparisons.
func (co *comparer) expireUnmatched(now time.Time) (found []comparison) {
	co.unmatched = slices.DeleteFunc(co.unmatched, func(o unmatchedChange) bool {
		if now.Sub(o.At) <= co.maxSkew {
			return false
		}
		found = append(found, co.appendComparison(co.compareUnmatched(o)))
		return true
	})
	return found
}

// compareUnmatched returns how weir's decision differs from a change.
func (co *comparer) compareUnmatched(o unmatchedChange) comparison {
	c := comparison{At: o.At, From: o.From, To: o.To, WeirReplicas: o.closest.Desired, Result: differed}
	switch n := o.closest; {
	case !n.Decided:
		c.Reason, c.WeirReplicas = reasonNoDecision, o.From
	case n.Desired == o.From:
		c.Reason = reasonNoChange
	case (n.Desired > o.From) != (o.To > o.From):
		c.Reason = reasonOpposite
	default:
		c.Reason = reasonCount
	}
	if o.At.Before(co.memoryFull) && o.To < o.From && c.Reason != reasonNoDecision && c.Reason != reasonOpposite {
		c.Result, c.Reason = undecided, reasonWarmingUp // weir may not scale down before it has observed a whole window
	}
	c.Explanation = o.closest.Summary
	if o.Targets != o.closest.Targets {
		c.Explanation = fmt.Sprintf("the controller saw %s, weir %s; weir: %s", textOrNothing(o.Targets), textOrNothing(o.closest.Targets), o.closest.Summary)
	}
	return c
}

// appendComparison stores a comparison and returns it.
func (co *comparer) appendComparison(c comparison) comparison {
	co.comparisons = append(co.comparisons, c)
	co.comparisons = co.comparisons[max(0, len(co.comparisons)-keepComparisons):]
	return c
}

// takeHolds returns the number of rounds since the last call in which neither side changed the
// count.
func (co *comparer) takeHolds() int {
	n := co.holdRounds
	co.holdRounds = 0
	return n
}

// withinSkew reports whether two times are at most maxSkew apart. One second more is allowed,
// because the time of a change has whole seconds.
func withinSkew(a, b time.Time, skew time.Duration) bool {
	return a.Sub(b).Abs() <= skew+time.Second
}

func textOrNothing(s string) string {
	if s == "" {
		return "nothing"
	}
	return s
}
