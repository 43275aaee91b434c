package controller

import (
	"fmt"
	"slices"
	"time"
)

// Whether two controllers agree that look at one target at different moments, each
// with the metrics it has read by then, is judged here, without clock or cluster.
//
// The controller's change from one count to another *agrees* if weir, deciding on
// the same count, arrives at the same one at some moment no further from the change
// than the reach: the decisions of its own rounds before, and those it makes after,
// for this purpose, as if the target still had the count from before (and pods that
// it lost, their last numbers). The reach is a period and a metric's resolution: one
// controller's round may be that much later than the other's, and its reading that
// much newer.
//
// A change that weir proposes and the controller does not make *differs* once weir
// has proposed a change in the same direction in every round for longer than the
// reach. A proposal that passes sooner is judged neither way: the other controller
// may not have looked at that moment. So with metrics: that weir has none while the
// controller says it has is a difference once it lasts.
//
// A round in which neither changes anything is agreement too, and is only counted.
//
// Until weir has watched for the longest window or period of the specification, from
// its start or from the last gap, its memory is shorter than the controller's. What it
// would hold back, or do, for that is *undecided*. So is a change that it learnt of too
// late to know what it would have done.
//
// The controller's own memory begins anew when kube-controller-manager restarts. It
// then holds for a window what weir would scale down (NotFollowed), and may go faster
// than policies that it forgot (Count, Held). These are differences, and nothing tells
// them from others but that they begin for all autoscalers at once.

// sight is what weir decided in a round.
type sight struct {
	At time.Time
	// Current is the count it decided on, Desired the count it arrived at, if it
	// arrived at any (Decided).
	Current, Desired int32
	Decided          bool
	// Alone says that the controller has metrics where weir arrived at nothing.
	Alone bool
	// Targets are the metrics it saw, and Why how it arrived there, in a line: of
	// rounds in which nothing was to be done neither is told.
	Targets, Why string
}

// change is one that the controller made, and the metrics it says it saw.
type change struct {
	At       time.Time
	From, To int32
	Targets  string
	// Missed says that it was not seen as it was made: From is the best guess.
	Missed bool
}

// verdict is what came of a comparison.
type verdict uint8

const (
	agreed verdict = iota
	differed
	undecided
)

func (v verdict) String() string { return [...]string{"agreed", "differed", "undecided"}[v] }

// The reasons of differences, as the metrics have them.
const (
	reasonNoDecision  = "NoDecision"  // weir had no count to propose where the controller had
	reasonHeld        = "Held"        // weir would have changed nothing
	reasonOpposite    = "Opposite"    // weir would have changed it the other way
	reasonCount       = "Count"       // the same way, to another count
	reasonNotFollowed = "NotFollowed" // weir proposed a change that was not made
	reasonWarmingUp   = "WarmingUp"   // undecided: weir does not remember as much yet
	reasonMissed      = "Missed"      // undecided: weir learnt of the change too late
)

// stance is how a decision of weir's stands to what is there.
type stance uint8

const (
	still stance = iota // nothing is to be done
	up
	down
	alone // weir has no metrics, and the controller has
)

func (s sight) stance() stance {
	switch {
	case s.Alone:
		return alone
	case s.Decided && s.Desired > s.Current:
		return up
	case s.Decided && s.Desired < s.Current:
		return down
	}
	return still
}

// comparison is what the two did about one count.
type comparison struct {
	At time.Time // of the change, or of the first proposal
	// From is the count before, To what the controller made of it, Ours what weir
	// would have.
	From, To, Ours int32
	Verdict        verdict
	Reason         string // of a difference
	Why            string
}

// String says it in a line.
func (c comparison) String() string {
	s := fmt.Sprintf("%s %s: %d to %d, weir %d", c.At.UTC().Format(time.RFC3339), c.Verdict, c.From, c.To, c.Ours)
	if c.Reason != "" {
		s += ", " + c.Reason
	}
	if c.Why != "" {
		s += ": " + c.Why
	}
	return s
}

// keepComparisons is how many are kept of one object.
const keepComparisons = 20

// judge compares what was done about one target. Its methods return what became
// clear, oldest first.
type judge struct {
	reach time.Duration
	// warm is from when on weir remembers as much as the controller.
	warm time.Time

	sights []sight    // of the last reach, oldest first
	open   []openCase // changes that nothing of weir's agrees with as yet
	// stance is that of weir's last rounds, and since when; told says that it was
	// found to differ.
	stance stance
	since  time.Time
	told   bool
	holds  int // rounds in which neither changed anything, not yet counted

	last []comparison // the newest last
}

// openCase is a change and weir's decision nearest to it.
type openCase struct {
	change
	nearest sight
}

// saw notes a round of weir's.
func (j *judge) saw(s sight) []comparison {
	j.sights = append(slices.DeleteFunc(j.sights, func(old sight) bool { return s.At.Sub(old.At) > j.reach }), s)
	found := j.expire(s.At)
	switch now := s.stance(); {
	case now != j.stance:
		j.stance, j.since, j.told = now, s.At, false
	case now != still && !j.told && s.At.Sub(j.since) > j.reach:
		j.told = true
		c := comparison{At: j.since, From: s.Current, To: s.Current, Ours: s.Desired, Verdict: differed, Reason: reasonNotFollowed, Why: s.Why}
		switch {
		case now == alone:
			c.Reason, c.Ours = reasonNoDecision, s.Current
		case j.since.Before(j.warm):
			c.Verdict, c.Reason = undecided, reasonWarmingUp
		}
		found = append(found, j.keep(c))
	}
	if s.Decided && j.stance == still && len(j.open) == 0 {
		j.holds++
	}
	return found
}

// lost notes that weir did not look for longer than the reach, and remembers as much
// as the controller only from a time on. What it would have done meanwhile nobody
// knows.
func (j *judge) lost(warm time.Time) (found []comparison) {
	for _, o := range j.open {
		found = append(found, j.missed(o.change))
	}
	j.warm, j.stance, j.open, j.sights = warm, still, nil, nil
	return found
}

// missed is the comparison with a change about which weir knows nothing.
func (j *judge) missed(c change) comparison {
	return j.keep(comparison{At: c.At, From: c.From, To: c.To, Ours: c.From, Verdict: undecided, Reason: reasonMissed})
}

// changed notes a change of the controller's. same is weir's decision on the count
// before, made now.
func (j *judge) changed(c change, same sight) []comparison {
	j.stance = still
	if c.Missed || !near(same.At, c.At, j.reach) {
		return []comparison{j.missed(c)}
	}
	nearest := same
	for _, s := range j.sights {
		if s.Decided && s.Current == c.From && s.Desired == c.To && near(s.At, c.At, j.reach) {
			nearest = s
		}
	}
	if nearest.Decided && nearest.Desired == c.To {
		return []comparison{j.keep(comparison{At: c.At, From: c.From, To: c.To, Ours: c.To, Verdict: agreed})}
	}
	j.open = append(j.open, openCase{c, same})
	return nil
}

// again notes that weir decided once more, on the count before the change.
func (j *judge) again(c change, same sight) []comparison {
	i := slices.IndexFunc(j.open, func(o openCase) bool { return o.change == c })
	if i < 0 || !same.Decided || same.Desired != c.To || !near(same.At, c.At, j.reach) {
		return nil
	}
	j.open = slices.Delete(j.open, i, i+1)
	return []comparison{j.keep(comparison{At: c.At, From: c.From, To: c.To, Ours: c.To, Verdict: agreed})}
}

// waiting returns the changes to decide on once more.
func (j *judge) waiting() (list []change) {
	for _, o := range j.open {
		list = append(list, o.change)
	}
	return list
}

// expire returns what is open for longer than the reach.
func (j *judge) expire(now time.Time) (found []comparison) {
	j.open = slices.DeleteFunc(j.open, func(o openCase) bool {
		if now.Sub(o.At) <= j.reach {
			return false
		}
		found = append(found, j.keep(j.differ(o)))
		return true
	})
	return found
}

// differ says how weir's decision differs from a change.
func (j *judge) differ(o openCase) comparison {
	c := comparison{At: o.At, From: o.From, To: o.To, Ours: o.nearest.Desired, Verdict: differed}
	switch n := o.nearest; {
	case !n.Decided:
		c.Reason, c.Ours = reasonNoDecision, o.From
	case n.Desired == o.From:
		c.Reason = reasonHeld
	case (n.Desired > o.From) != (o.To > o.From):
		c.Reason = reasonOpposite
	default:
		c.Reason = reasonCount
	}
	if o.At.Before(j.warm) && o.To < o.From && c.Reason != reasonNoDecision && c.Reason != reasonOpposite {
		c.Verdict, c.Reason = undecided, reasonWarmingUp // it may not shrink what it has not watched
	}
	c.Why = o.nearest.Why
	if o.Targets != o.nearest.Targets {
		c.Why = fmt.Sprintf("the controller saw %s, weir %s; weir: %s", orNothing(o.Targets), orNothing(o.nearest.Targets), o.nearest.Why)
	}
	return c
}

// keep remembers a comparison and returns it.
func (j *judge) keep(c comparison) comparison {
	j.last = append(j.last, c)
	j.last = j.last[max(0, len(j.last)-keepComparisons):]
	return c
}

// held returns how many rounds since the last call neither changed anything.
func (j *judge) held() int {
	n := j.holds
	j.holds = 0
	return n
}

// near reports whether two times are no further apart than the reach. The change's
// is cut to the second.
func near(a, b time.Time, reach time.Duration) bool {
	return a.Sub(b).Abs() <= reach+time.Second
}

func orNothing(s string) string {
	if s == "" {
		return "nothing"
	}
	return s
}
