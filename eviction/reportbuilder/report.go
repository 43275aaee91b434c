package reportbuilder

import (
	"cmp"
	"fmt"
	"time"

	"github.com/weir-metrics/weir/eviction"
	"github.com/weir-metrics/weir/eviction/evictionreport"
	"github.com/weir-metrics/weir/eviction/execute"
	"github.com/weir-metrics/weir/eviction/guard"
	"github.com/weir-metrics/weir/internal/humanize"
)

// Options has the data of a report that a guard.Round does not have.
type Options struct {
	Node string
	// Mode is that of package execute.
	Mode string
	// Warnings are problems with the thresholds, for example in comparison with the kubelet's.
	Warnings []string
	// Reclaims is set if weir removes unused containers and images when a decision asks for it.
	Reclaims bool
	// MaxInterval is the longest time between two rounds; zero if not known.
	MaxInterval time.Duration
	// PollInterval is the time between two reads of disks and process ids; zero if they are not
	// polled.
	PollInterval time.Duration
	// Now is the time of the report; zero means time.Now().
	Now time.Time
}

// New returns the report. last is the newest round; nil before the first one. acts are the rounds
// with an action, newest first. New does not change them.
func New(last *guard.Round, acts []*guard.Round, c Options) *evictionreport.EvictionReport {
	if c.Now.IsZero() {
		c.Now = time.Now()
	}
	r := &evictionreport.EvictionReport{
		Node: c.Node, Mode: c.Mode, State: evictionreport.Starting, At: c.Now.UTC(),
		Signals: []evictionreport.Signal{}, Warnings: c.Warnings, Reclaims: c.Reclaims || c.Mode == string(execute.Observe), MaxIntervalSeconds: c.MaxInterval.Seconds(), PollSeconds: c.PollInterval.Seconds(),
	}
	for _, round := range acts {
		r.Actions = append(r.Actions, roundActions(round)...)
	}
	if last != nil && last.Input != nil && last.Decision != nil {
		fillFromRound(r, last)
	}
	r.Summary = summaryText(r)
	return r
}

// fillFromRound sets the fields that come from a round.
func fillFromRound(r *evictionreport.EvictionReport, round *guard.Round) {
	d := round.Decision
	r.ReadAt, r.DecidedAt = round.ReadAt.UTC(), round.DecidedAt.UTC()
	if len(round.Notice.Sources) > 0 {
		r.WokenBy, r.DecidedAfterSeconds = round.Notice.String(), round.DecidedAt.Sub(round.Notice.At).Seconds()
	}
	r.Outcome = string(d.Outcome)
	if d.Err != nil {
		r.Error = d.Err.Error()
	} else if round.ReadErr != nil {
		r.ReadError = round.ReadErr.Error()
	}
	r.Signals = newSignals(round.Input, d)
	for i := range d.Exceeded {
		r.Exceeded = append(r.Exceeded, newExceededLimit(&d.Exceeded[i]))
	}
	for i := range d.Conditions {
		r.Conditions = append(r.Conditions, newCondition(&d.Conditions[i], round.Input))
	}
	for i := range d.Contention {
		r.Contention = append(r.Contention, newContention(&d.Contention[i]))
	}
	if r.State = nodeState(d); r.State != evictionreport.NoThresholds {
		r.Admission = newAdmission(d)
	}
	for _, w := range round.Watching {
		r.Watches = append(r.Watches, newWatch(w))
	}
	for _, err := range round.Unwatched {
		r.Unwatched = append(r.Unwatched, err.Error())
	}
}

// nodeState returns the state of the node that follows from a decision.
func nodeState(d *eviction.Decision) evictionreport.NodeState {
	switch d.Outcome {
	case eviction.OutcomeNoThresholds:
		return evictionreport.NoThresholds
	case eviction.OutcomeNoLayout, eviction.OutcomeNoSummary:
		return evictionreport.NoData
	case eviction.OutcomeLocalLimit, eviction.OutcomeReclaim, eviction.OutcomeEvict:
		return evictionreport.Evicting
	}
	if len(d.Thresholds) == 0 {
		return evictionreport.NoThresholds
	}
	for i := range d.Thresholds {
		if t := &d.Thresholds[i]; t.Met || t.Reclaiming {
			return evictionreport.Pressure
		}
	}
	return evictionreport.Normal
}

// summaryText returns the answer in one sentence.
func summaryText(r *evictionreport.EvictionReport) string {
	name := cmp.Or(r.Node, "this node") + ": "
	switch r.State {
	case evictionreport.Starting:
		return name + "the first reading is not complete; ask again in a few seconds"
	case evictionreport.NoThresholds:
		return name + "there is no threshold, so nothing is read and no pod is evicted"
	case evictionreport.NoData:
		return name + "no decision is possible, and no pod is evicted: " + r.Error
	case evictionreport.Evicting:
		return name + evictingText(r)
	case evictionreport.Pressure:
		return name + pressureText(r)
	}
	return name + normalText(r)
}

// evictedText returns what happens to the next pod, which depends on the mode.
func evictedText(r *evictionreport.EvictionReport) string {
	if r.Mode == string(execute.Observe) {
		return "would be evicted; the mode is observe"
	}
	return "is evicted"
}

// evictingText returns the summary if a pod is, or would be, evicted.
func evictingText(r *evictionreport.EvictionReport) string {
	verb := evictedText(r)
	if r.Outcome == string(eviction.OutcomeLocalLimit) {
		pod, more := "", 0
		for i := range r.Exceeded {
			if e := &r.Exceeded[i]; e.Skipped == "" {
				if pod == "" {
					pod = e.Message
				} else {
					more++
				}
			}
		}
		if more > 0 {
			pod += fmt.Sprintf(", and %d more", more)
		}
		return pod + ": it " + verb
	}
	for i := range r.Signals {
		s := &r.Signals[i]
		for k := range s.Thresholds {
			if t := &s.Thresholds[k]; t.Acting {
				return shortageText(s, t) + ": " + reclaimText(r, s) + victimName(s) + " " + verb
			}
		}
	}
	return "a pod " + verb
}

// reclaimText describes what is removed before a pod is evicted.
func reclaimText(r *evictionreport.EvictionReport, s *evictionreport.Signal) string {
	if len(s.ReclaimsFirst) == 0 || !r.Reclaims {
		return ""
	}
	return s.ReclaimText() + " are removed; if that is not enough, "
}

func victimName(s *evictionreport.Signal) string {
	if s.Ranking == nil || s.Ranking.Next == "" {
		return "no pod"
	}
	return s.Ranking.Next
}

// pressureText returns the summary if a threshold is met and no pod is evicted.
func pressureText(r *evictionreport.EvictionReport) string {
	for _, want := range [...]evictionreport.ThresholdState{evictionreport.InForce, evictionreport.GracePeriod, evictionreport.Reclaiming} {
		for i := range r.Signals {
			s := &r.Signals[i]
			for k := range s.Thresholds {
				if t := &s.Thresholds[k]; t.State == want {
					return shortageText(s, t) + noEvictionText(r, s, t)
				}
			}
		}
	}
	return "under pressure"
}

// noEvictionText explains why no pod is evicted although a threshold is met.
func noEvictionText(r *evictionreport.EvictionReport, s *evictionreport.Signal, t *evictionreport.Threshold) string {
	switch {
	case t.State == evictionreport.GracePeriod:
		return fmt.Sprintf("; if that lasts for another %s, %s %s", humanize.Seconds(t.RemainingSeconds), victimName(s), evictedText(r))
	case s.Ranking == nil:
		return "; no pod is evicted for this signal, since no figure shows which pod causes it"
	case s.Ranking.Next == "":
		return "; " + s.Ranking.Message
	case r.Outcome == string(eviction.OutcomeSettling):
		return "; that average still includes the time before the last eviction, so no pod is evicted for it yet"
	case r.Outcome == string(eviction.OutcomeStale):
		return "; weir has acted on this figure, and waits for a new one"
	case r.Outcome == string(eviction.OutcomeReclaimed):
		return "; removing unused objects was enough, and no pod was evicted"
	}
	return fmt.Sprintf("; %s is next", s.Ranking.Next)
}

// shortageText compares the figure with the threshold.
func shortageText(s *evictionreport.Signal, t *evictionreport.Threshold) string {
	if s.Stall {
		return fmt.Sprintf("%s is %s, above %s", s.Name, s.Unit.Format(*s.Value), s.Unit.Format(*t.Limit))
	}
	kind := t.Kind()
	if t.State == evictionreport.Reclaiming {
		return fmt.Sprintf("%s is %s, past the %s threshold of %s but not yet at %s, where it ends", s.Name, s.Unit.Format(*s.Value), kind, s.Unit.Format(*t.Limit), s.Unit.Format(*t.Goal))
	}
	return fmt.Sprintf("%s is %s, below the %s threshold of %s", s.Name, s.Unit.Format(*s.Value), kind, s.Unit.Format(*t.Limit))
}

// normalText returns the summary if no threshold is met. It names the nearest threshold, by the
// distance in percent of the capacity.
func normalText(r *evictionreport.EvictionReport) string {
	var at *evictionreport.Signal
	var nearest *evictionreport.Threshold
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
		text += fmt.Sprintf("; the nearest is %s, %s away", nearest.Text, distanceText(at, nearest))
	}
	if blind > 0 {
		text += "; there is no figure for " + humanize.Count(blind, "signal")
	}
	for i := range r.Conditions {
		if c := &r.Conditions[i]; c.Reported {
			text += "; " + c.Type + " lasts until " + humanize.Clock(c.Until, r.At)
		}
	}
	return text
}
