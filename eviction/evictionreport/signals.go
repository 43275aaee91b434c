package evictionreport

import (
	"fmt"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/weir-metrics/weir/eviction"
	"github.com/weir-metrics/weir/eviction/evictionreport/document"
)

// signals tells those that have a threshold, in the order in which they are acted on.
func signals(in *eviction.Input, d *eviction.Decision) []document.Signal {
	list := []document.Signal{}
	states := d.Thresholds
	if states == nil { // nothing was decided: they are as they are written
		for _, t := range in.Settings.Thresholds {
			states = append(states, eviction.ThresholdState{Threshold: t})
		}
	}
	read := d.Thresholds != nil
	for i := range states {
		t := &states[i]
		name := string(t.Threshold.Signal)
		at := slices.IndexFunc(list, func(s document.Signal) bool { return s.Name == name })
		if at < 0 {
			at = len(list)
			list = append(list, signal(in, d, t, read))
		}
		told := threshold(&list[at], t)
		told.Acting = i == d.Acting
		list[at].Thresholds = append(list[at].Thresholds, told)
	}
	if read && in.Summary != nil {
		for i := range list {
			list[i].Ranking = ranking(urgent(list[i].Name, d), in, d)
		}
	}
	return list
}

// urgent is the threshold of a signal that pods go for first: who is passed over may
// depend on it.
func urgent(name string, d *eviction.Decision) *eviction.Threshold {
	if d.Acting >= 0 && string(d.Thresholds[d.Acting].Threshold.Signal) == name {
		return &d.Thresholds[d.Acting].Threshold
	}
	var first *eviction.Threshold
	for i := range d.Thresholds {
		t := &d.Thresholds[i]
		if string(t.Threshold.Signal) != name {
			continue
		}
		if t.InForce {
			return &t.Threshold
		}
		if first == nil {
			first = &t.Threshold
		}
	}
	return first
}

// signal tells the signal of a threshold, without its thresholds.
func signal(in *eviction.Input, d *eviction.Decision, t *eviction.ThresholdState, read bool) document.Signal {
	of := t.Threshold.Signal
	s := document.Signal{Name: string(of), Stall: of.Pressure(), Unit: unitOf(of)}
	for _, c := range d.Layout.Collections(of) {
		s.First = append(s.First, string(c))
	}
	switch o := t.Observation; {
	case o == nil && read:
		s.Doubt = "there is no figure"
	case o == nil:
	case s.Stall:
		s.Doubt = o.Doubt
		if !math.IsNaN(o.Stall) && !math.IsInf(o.Stall, 0) { // which JSON has no number for
			s.Value = &o.Stall
		}
	default:
		s.Value, s.Capacity, s.Doubt = amount(o.Available), amount(o.Capacity), o.Doubt
	}
	if o := t.Observation; o != nil {
		s.MeasuredAt = o.Time.UTC()
		if o.Time.IsZero() {
			s.MeasuredAt = in.Now.UTC() // which is what the decision took it for
		}
	}
	return s
}

// threshold tells a threshold of s.
func threshold(s *document.Signal, t *eviction.ThresholdState) document.Threshold {
	told := document.Threshold{
		Text: t.Threshold.String(), Hard: t.Threshold.Hard(), Derived: t.Derived,
		GraceSeconds: t.Threshold.Grace.Seconds(), LeftSeconds: t.Left.Seconds(),
	}
	if !t.Since.IsZero() {
		told.Since = t.Since.UTC()
	}
	switch {
	case s.Stall:
		limit := t.Threshold.Value.Stall
		told.Limit, told.Goal = &limit, &limit
		if m := t.Threshold.MinReclaim; m != nil {
			told.Goal = &m.Stall
		}
	case t.Observation != nil:
		told.Limit, told.Goal = quantity(&t.Limit), quantity(&t.Goal)
	case t.Threshold.Value.Quantity != nil: // known even so
		told.Limit = quantity(t.Threshold.Value.Quantity)
	}
	if distance, ok := t.Distance(); ok && s.Doubt == "" {
		told.Distance = &distance
		switch {
		case s.Stall:
			told.DistancePercent = &distance
		case *s.Capacity > 0:
			percent := 100 * distance / *s.Capacity
			told.DistancePercent = &percent
		}
	}
	switch {
	case s.Doubt != "" || t.Observation == nil:
		told.State = document.Unknown
	case t.InForce && t.Met:
		told.State = document.InForce
	case t.Met:
		told.State = document.Grace
	case t.Held:
		told.State = document.Held
	default:
		told.State = document.Clear
	}
	told.Message = standing(s, &told)
	if t.Waits {
		told.Message += "; it counts from the second look on"
	}
	if t.InForce && !t.Settles.IsZero() {
		told.Message += "; nobody goes for it before " + document.Clock(t.Settles) + ", when the average has forgotten the time before the last pod went"
	}
	return told
}

// standing says how a threshold stands.
func standing(s *document.Signal, t *document.Threshold) string {
	var text string
	switch t.State {
	case document.Unknown:
		text = "cannot be told: " + s.Doubt
		if s.Doubt == "" {
			text = "not looked at"
		}
	case document.InForce:
		text = fmt.Sprintf("met by %s since %s, and in force", away(s, t), document.Clock(t.Since))
	case document.Grace:
		text = fmt.Sprintf("met by %s since %s, in force in %s", away(s, t), document.Clock(t.Since), lasting(t.LeftSeconds))
	case document.Held:
		text = fmt.Sprintf("in force since %s, until the figure is back at %s", document.Clock(t.Since), s.Unit.Words(*t.Goal))
	default:
		text = away(s, t) + " away"
		if t.Distance != nil && *t.Distance < 0 { // of one that does not count yet
			text = "past it by " + away(s, t)
		}
	}
	if t.Derived {
		text += "; it is that of the file system that containers are on"
	}
	return text
}

// away is how far the figure is from a threshold, on either side of it.
func away(s *document.Signal, t *document.Threshold) string {
	if t.Distance == nil {
		return "an unknown amount"
	}
	distance := abs(*t.Distance)
	if s.Stall {
		return strings.TrimSuffix(document.Percent.Words(distance), "%") + " points"
	}
	text := s.Unit.Words(distance)
	if t.DistancePercent != nil {
		text += " (" + document.Percent.Words(abs(*t.DistancePercent)) + ")"
	}
	return text
}

func abs(v float64) float64 { return max(v, -v) }

func amount(n int64) *float64 {
	v := float64(n)
	return &v
}

func quantity(q *resource.Quantity) *float64 {
	v := q.AsApproximateFloat64()
	return &v
}

// unitOf is what a signal counts.
func unitOf(s eviction.Signal) document.Unit {
	if s.Pressure() {
		return document.Percent
	}
	return counts(s)
}

// counts is what pods are ranked by for a signal.
func counts(s eviction.Signal) document.Unit {
	switch s.Resource() {
	case "inodes":
		return document.Inodes
	case "pids":
		return document.Processes
	case string(corev1.ResourceCPU):
		return document.Cores
	}
	return document.Bytes
}
