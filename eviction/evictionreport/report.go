package evictionreport

import (
	"cmp"
	"fmt"
	"time"

	"github.com/weir-metrics/weir/eviction"
	"github.com/weir-metrics/weir/eviction/evictionreport/document"
	"github.com/weir-metrics/weir/eviction/execute"
	"github.com/weir-metrics/weir/eviction/guard"
)

// Report is what there is to say.
type Report = document.Report

// ModeOff is the mode of a weir that looks at nothing.
const ModeOff = "off"

// Context is what rounds do not tell.
type Context struct {
	Node string
	// Mode is off, observe, evict or kill.
	Mode string
	// Warnings are what is wrong with how the guard is set up, as beside the kubelet.
	Warnings []string
	// Reclaims says that weir removes what a node can do without, where a decision asks
	// for that.
	Reclaims bool
	// Floor is how often the guard looks at the least; zero if not known.
	Floor time.Duration
	// Peeks is how often disks and process ids are looked at besides; zero for not.
	Peeks time.Duration
	// Now is the time of the report. Zero means time.Now.
	Now time.Time
}

// Of tells how a node stands: by the last round, nil before the first, and by the rounds
// in which something was done, newest first. It changes nothing in them.
func Of(last *guard.Round, acts []*guard.Round, c Context) *Report {
	if c.Now.IsZero() {
		c.Now = time.Now()
	}
	r := &Report{
		Node: c.Node, Mode: c.Mode, State: document.Starting, At: c.Now.UTC(),
		Signals: []document.Signal{}, Warnings: c.Warnings, Reclaims: c.Reclaims || c.Mode == execute.Observe.String(), FloorSeconds: c.Floor.Seconds(), PeekSeconds: c.Peeks.Seconds(),
	}
	for _, round := range acts {
		r.Acts = append(r.Acts, actsOf(round)...)
	}
	if c.Mode == ModeOff {
		r.State = document.Off
	} else if last != nil && last.Input != nil && last.Decision != nil {
		tell(r, last)
	}
	r.Summary = summary(r)
	return r
}

// tell fills in what a round tells.
func tell(r *Report, round *guard.Round) {
	d := round.Decision
	r.ReadAt, r.DecidedAt = round.Read.UTC(), round.Decided.UTC()
	if len(round.Notice.Sources) > 0 {
		r.Because, r.TookSeconds = woken(round.Notice), round.Decided.Sub(round.Notice.At).Seconds()
	}
	r.Outcome = d.Outcome.String()
	if d.Err != nil {
		r.Error = d.Err.Error()
	} else if round.ReadErr != nil {
		r.Unread = round.ReadErr.Error()
	}
	r.Signals = signals(round.Input, d)
	for i := range d.Exceeded {
		r.Exceeded = append(r.Exceeded, exceeded(&d.Exceeded[i]))
	}
	for i := range d.Conditions {
		r.Conditions = append(r.Conditions, condition(&d.Conditions[i], round.Input))
	}
	if r.State = state(d); r.State != document.Idle {
		r.Admission = admission(d)
	}
	for _, w := range round.Watching {
		r.Watches = append(r.Watches, watched(w))
	}
	for _, err := range round.Unwatched {
		r.Unwatched = append(r.Unwatched, err.Error())
	}
}

// state is how the node stands by a decision.
func state(d *eviction.Decision) document.State {
	switch d.Outcome {
	case eviction.OutcomeIdle:
		return document.Idle
	case eviction.OutcomeNoLayout, eviction.OutcomeNoSummary:
		return document.Blind
	case eviction.OutcomeLocalLimit, eviction.OutcomeReclaim, eviction.OutcomeEvict:
		return document.Evicting
	}
	if len(d.Thresholds) == 0 {
		return document.Idle
	}
	for i := range d.Thresholds {
		if t := &d.Thresholds[i]; t.Met || t.Held {
			return document.Pressure
		}
	}
	return document.Calm
}

// summary is the answer in a sentence.
func summary(r *Report) string {
	name := cmp.Or(r.Node, "this node") + ": "
	switch r.State {
	case document.Off:
		return name + "nobody looks out for evictions here: the mode is off"
	case document.Starting:
		return name + "the first look is not done yet; ask again in a few seconds"
	case document.Idle:
		return name + "there is no threshold, so nothing is looked at and nobody is evicted"
	case document.Blind:
		return name + "nothing can be decided, and nobody is evicted: " + r.Error
	case document.Evicting:
		return name + evicting(r)
	case document.Pressure:
		return name + pressed(r)
	}
	return name + calm(r)
}

// evicting is the summary where somebody goes.
func evicting(r *Report) string {
	verb := "goes"
	if r.Mode == execute.Observe.String() {
		verb = "would go; the mode is observe"
	}
	if r.Outcome == eviction.OutcomeLocalLimit.String() {
		who, more := "", 0
		for i := range r.Exceeded {
			if e := &r.Exceeded[i]; e.Spared == "" {
				if who == "" {
					who = e.Message
				} else {
					more++
				}
			}
		}
		if more > 0 {
			who += fmt.Sprintf(", and %d more", more)
		}
		return who + ": it " + verb
	}
	for i := range r.Signals {
		s := &r.Signals[i]
		for k := range s.Thresholds {
			if t := &s.Thresholds[k]; t.Acting {
				return shortOf(s, t) + ": " + first(r, s) + who(s) + " " + verb
			}
		}
	}
	return "somebody " + verb
}

// first says what the node gives up before a pod.
func first(r *Report, s *document.Signal) string {
	if len(s.First) == 0 || !r.Reclaims {
		return ""
	}
	return s.FirstWords() + " are removed; if that is not enough, "
}

func who(s *document.Signal) string {
	if s.Ranking == nil || s.Ranking.Next == "" {
		return "nobody"
	}
	return s.Ranking.Next
}

// pressed is the summary where a threshold is met and nobody goes.
func pressed(r *Report) string {
	for _, want := range [...]document.ThresholdState{document.InForce, document.Grace, document.Held} {
		for i := range r.Signals {
			s := &r.Signals[i]
			for k := range s.Thresholds {
				if t := &s.Thresholds[k]; t.State == want {
					return shortOf(s, t) + why(r, s, t)
				}
			}
		}
	}
	return "under pressure"
}

// why says why nobody goes though a threshold is met.
func why(r *Report, s *document.Signal, t *document.Threshold) string {
	switch {
	case t.State == document.Grace:
		return fmt.Sprintf("; if that lasts for another %s, %s goes", lasting(t.LeftSeconds), who(s))
	case s.Ranking == nil:
		return "; nobody is evicted for that, since nobody can tell who is to blame"
	case s.Ranking.Next == "":
		return "; " + s.Ranking.Message
	case r.Outcome == eviction.OutcomeSettling.String():
		return "; that average still tells of the time before the last pod went, and nobody goes for it yet"
	case r.Outcome == eviction.OutcomeStale.String():
		return "; it was acted on already, and who goes next waits for new figures"
	case r.Outcome == eviction.OutcomeReclaimed.String():
		return "; what the node could do without was enough, and no pod had to go"
	}
	return fmt.Sprintf("; %s is next", s.Ranking.Next)
}

// shortOf says what is short.
func shortOf(s *document.Signal, t *document.Threshold) string {
	if s.Stall {
		return fmt.Sprintf("%s is %s, above %s", s.Name, s.Unit.Words(*s.Value), s.Unit.Words(*t.Limit))
	}
	kind := "soft"
	if t.Hard {
		kind = "hard"
	}
	if t.State == document.Held {
		return fmt.Sprintf("%s is %s, past the %s threshold of %s but not yet at %s, where it ends", s.Name, s.Unit.Words(*s.Value), kind, s.Unit.Words(*t.Limit), s.Unit.Words(*t.Goal))
	}
	return fmt.Sprintf("%s is %s, below the %s threshold of %s", s.Name, s.Unit.Words(*s.Value), kind, s.Unit.Words(*t.Limit))
}

// calm is the summary where no threshold is met: it names the nearest, by its share of
// what it may lose.
func calm(r *Report) string {
	var at *document.Signal
	var nearest *document.Threshold
	blind := 0
	for i := range r.Signals {
		s := &r.Signals[i]
		if s.Doubt != "" {
			blind++
			continue
		}
		for k := range s.Thresholds {
			t := &s.Thresholds[k]
			if t.DistancePercent != nil && (nearest == nil || *t.DistancePercent < *nearest.DistancePercent) {
				at, nearest = s, t
			}
		}
	}
	text := "no threshold is met"
	if nearest != nil {
		text += fmt.Sprintf("; the nearest is %s, %s away", nearest.Text, away(at, nearest))
	}
	if blind > 0 {
		text += fmt.Sprintf("; %s no figure to go by", counted(blind, "signal has", "signals have"))
	}
	for i := range r.Conditions {
		if c := &r.Conditions[i]; c.Reported {
			text += "; " + c.Type + " lasts until " + document.Clock(c.Until)
		}
	}
	return text
}

func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// lasting writes a length of time in seconds.
func lasting(seconds float64) string {
	return document.Lasting(time.Duration(seconds * float64(time.Second)))
}
