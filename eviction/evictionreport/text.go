package evictionreport

import (
	"cmp"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-metrics/weir/internal/humanize"
)

// TextOptions configures WriteText.
type TextOptions struct {
	// All adds the whole ranking of each signal, and all recent actions.
	All bool
	// Colour adds colours for a terminal.
	Colour bool
}

// textWriter writes a report as text.
type textWriter struct {
	humanize.Page
	all bool
}

// WriteText writes r as text: first the answer, then the reasons. The text is for people and may
// change; programs should read the JSON.
func (r *EvictionReport) WriteText(w io.Writer, o TextOptions) error {
	p := &textWriter{Page: humanize.Page{Colour: o.Colour}, all: o.All}
	p.Line(0, humanize.Bold, r.Summary)
	p.head(r)
	if r.NoPods() {
		p.Line(0, humanize.Dim, NoPods)
	}
	for i := range r.Signals {
		if s := &r.Signals[i]; o.All || !r.IsRedundant(s) {
			p.signal(s, r.Reclaims)
		}
	}
	p.exceeded(r)
	p.conditions(r)
	p.actions(r)
	p.watches(r)
	for i, warning := range r.Warnings {
		if i == 0 {
			p.Title("Warnings")
		}
		p.Line(2, humanize.Amber, warning)
	}
	if o.All {
		for i := range r.Signals {
			p.ranking(r.Signals, i)
		}
	}
	return p.Print(w)
}

// head writes the mode, the age of the figures, and what woke the guard.
func (tw *textWriter) head(r *EvictionReport) {
	parts := []string{"mode " + r.Mode}
	if r.DecidedAt.IsZero() {
		parts = append(parts, "as of "+humanize.Clock(r.At, r.At))
	} else {
		parts = append(parts, fmt.Sprintf("read %s, at %s", humanize.Ago(r.ReadAt, r.At), humanize.Clock(r.ReadAt, r.At)))
	}
	if r.WokenBy != "" {
		parts = append(parts, fmt.Sprintf("woken by: %s, decided %s after it", r.WokenBy, humanize.Seconds(r.DecidedAfterSeconds)))
	}
	tw.Line(0, humanize.Dim, strings.Join(parts, "; "))
	if r.ReadError != "" {
		tw.Line(0, humanize.Amber, "not everything could be read: "+r.ReadError)
	}
}

// signal writes a signal, its thresholds, and the next pod.
func (tw *textWriter) signal(s *Signal, reclaims bool) {
	tw.Gap()
	head := s.Name + ": " + s.FigureText()
	if s.Doubt != "" && s.Value != nil {
		head += ", which is ignored: " + s.Doubt
	}
	tw.Line(0, s.tint(), head)
	for _, note := range s.Notes {
		tw.Item(2, "note", humanize.Plain, note)
	}
	for i := range s.Thresholds {
		t := &s.Thresholds[i]
		tw.Item(2, t.Kind(), t.tint(), strings.TrimPrefix(t.Text, s.Name)+": "+t.Message)
	}
	tw.Item(2, "first", humanize.Plain, s.ReclaimMessage(reclaims))
	switch {
	case len(s.Thresholds) == 0:
		tw.Item(2, "none", humanize.Plain, "no threshold is set, so no pod is evicted for it")
	case s.Ranking != nil && len(s.Ranking.Pods) > 0: // if there are no pods, the sentence NoPods reports that once
		tw.Item(2, "next", humanize.Plain, s.Ranking.Message)
		tw.Item(2, "skip", humanize.Plain, s.Ranking.SkippedPods())
	case s.Ranking == nil && s.Value != nil:
		tw.Item(2, "next", humanize.Plain, "no pod is evicted for this signal: no figure shows which pod causes it")
	}
}

// NoPods is the sentence to show if EvictionReport.NoPods is true.
const NoPods = "weir knows no pod on this node, so no pod would be evicted"

// NoPods reports whether there are rankings and all of them are empty.
func (r *EvictionReport) NoPods() bool {
	looked := false
	for i := range r.Signals {
		if ranking := r.Signals[i].Ranking; ranking != nil {
			if len(ranking.Pods) > 0 {
				return false
			}
			looked = true
		}
	}
	return looked
}

// IsRedundant reports whether s adds nothing to the other signals. That is so if all its thresholds
// are derived, none is acted on, and none is met unless another signal has the same figure.
func (r *EvictionReport) IsRedundant(s *Signal) bool {
	quiet := len(s.Thresholds) > 0
	for i := range s.Thresholds {
		t := &s.Thresholds[i]
		if !t.Derived || t.Acting {
			return false
		}
		quiet = quiet && (t.State == NotMet || t.State == Unknown)
	}
	return quiet || slices.ContainsFunc(r.Signals, func(other Signal) bool {
		return other.Name != s.Name && other.FigureText() == s.FigureText()
	})
}

// FigureText returns the value of a signal, and its share of the capacity.
func (s *Signal) FigureText() string {
	switch {
	case s.Value == nil:
		return "no figure"
	case s.Stall:
		return s.Unit.Format(*s.Value) + " of the time"
	}
	text := s.Unit.FormatWithNoun(*s.Value)
	if s.Capacity != nil {
		text += " of " + s.Unit.Format(*s.Capacity)
		if *s.Capacity > 0 {
			text += " (" + Percent.Format(100**s.Value / *s.Capacity) + ")"
		}
	}
	return text
}

// ReclaimText returns what the node removes before it evicts a pod.
func (s *Signal) ReclaimText() string {
	words := make([]string, len(s.ReclaimsFirst))
	for i, c := range s.ReclaimsFirst {
		switch c {
		case "container":
			c = "ended containers"
		case "image":
			c = "unused images"
		}
		words[i] = c
	}
	return strings.Join(words, " and ")
}

// ReclaimMessage describes what is removed before a pod is evicted; empty if nothing is. reclaims is
// EvictionReport.Reclaims.
func (s *Signal) ReclaimMessage(reclaims bool) string {
	switch words := s.ReclaimText(); {
	case words == "":
		return ""
	case reclaims:
		return words + ", removed before any pod is evicted"
	default:
		return words + ", but weir does not remove them without --eviction-reclaim"
	}
}

// SkippedPods returns the skipped pods that come before the next one, with the reasons.
func (r *Ranking) SkippedPods() string {
	var names []string
	for i := range r.Pods {
		pod := &r.Pods[i]
		if pod.Skipped == "" {
			break
		}
		names = append(names, pod.String()+" ("+pod.Message+")")
	}
	return humanize.List(names, 3)
}

// tint returns the colour for the worst state of the signal's thresholds.
func (s *Signal) tint() humanize.Tint {
	tint := humanize.Bold
	for i := range s.Thresholds {
		switch t := s.Thresholds[i].tint(); {
		case t == humanize.Red, t == humanize.Amber && tint == humanize.Bold:
			tint = t
		}
	}
	return tint
}

func (t *Threshold) tint() humanize.Tint {
	switch t.State {
	case InForce, Reclaiming:
		return humanize.Red
	case GracePeriod, Unknown:
		return humanize.Amber
	}
	return humanize.Plain
}

// Kind returns "hard" or "soft".
func (t *Threshold) Kind() string {
	if t.Hard {
		return "hard"
	}
	return "soft"
}

func (tw *textWriter) exceeded(r *EvictionReport) {
	for i := range r.Exceeded {
		e := &r.Exceeded[i]
		if i == 0 {
			tw.Title("Over a limit of local storage")
		}
		tw.Line(2, humanize.Red, e.Message)
	}
}

func (tw *textWriter) conditions(r *EvictionReport) {
	if len(r.Conditions)+len(r.Contention) == 0 && r.Admission == nil {
		return
	}
	tw.Title("Conditions that follow from these thresholds")
	line := func(kind, message string, reported bool) {
		tint := humanize.Plain
		if reported {
			tint = humanize.Amber
		}
		tw.Line(2, tint, kind+" is "+message)
	}
	for _, c := range r.Conditions {
		line(c.Type, c.Message, c.Reported)
	}
	for _, c := range r.Contention {
		line(c.Type, c.Message, c.Reported)
	}
	if len(r.Conditions)+len(r.Contention) == 0 {
		tw.Line(2, humanize.Plain, "none was met since the start")
	}
	if r.Admission != nil {
		tw.Line(2, humanize.Plain, "new pods: "+r.Admission.Message)
	}
}

// maxActions is how many actions are shown without TextOptions.All.
const maxActions = 5

func (tw *textWriter) actions(r *EvictionReport) {
	if r.State == Starting && len(r.Actions) == 0 {
		return
	}
	tw.Title("Recent actions")
	if len(r.Actions) == 0 {
		tw.Line(2, humanize.Plain, "none")
		return
	}
	most := maxActions
	if tw.all {
		most = len(r.Actions)
	}
	for i := range r.Actions[:min(len(r.Actions), most)] {
		a := &r.Actions[i]
		tint := humanize.Plain
		switch a.Result {
		case "Blocked", "Failed", "Refused":
			tint = humanize.Amber
		}
		tw.Line(2, tint, fmt.Sprintf("%s  %s: %s", humanize.DateTime(a.At), a.Result, a.Message))
		if more := a.Details(); more != "" {
			tw.Line(27, humanize.Dim, more)
		}
	}
	if more := len(r.Actions) - most; more > 0 {
		tw.Line(2, humanize.Dim, fmt.Sprintf("and %d more: --all shows them", more))
	}
}

// Details returns the second line of an action: what woke the guard, and what happens next.
func (a *Action) Details() string {
	var parts []string
	if !a.Since.IsZero() {
		parts = append(parts, "repeated since "+humanize.Clock(a.Since, a.At))
	}
	if a.WokenBy != "" {
		parts = append(parts, fmt.Sprintf("woken by: %s, decided %s after it", a.WokenBy, humanize.Seconds(a.DecidedAfterSeconds)))
	}
	if a.Removed {
		parts = append(parts, "removed after "+humanize.Seconds(a.WaitedSeconds))
	}
	if !a.NotBefore.IsZero() {
		parts = append(parts, "tried again at "+humanize.Clock(a.NotBefore, a.At)+" at the earliest")
	}
	return strings.Join(parts, "; ")
}

// watches writes what triggers a read.
func (tw *textWriter) watches(r *EvictionReport) {
	if r.State == Starting || r.State == NoThresholds {
		return
	}
	tw.Title("What triggers a reading")
	for i := range r.Watches {
		tw.Line(2, humanize.Plain, r.Watches[i].Message)
	}
	for _, w := range r.Unwatched {
		tw.Line(2, humanize.Amber, "not watched: "+w)
	}
	if r.PollSeconds > 0 {
		tw.Line(2, humanize.Plain, "disks and process ids are read every "+humanize.Seconds(r.PollSeconds))
	}
	timer := "a timer"
	if len(r.Watches) == 0 {
		timer += " alone"
	}
	if r.MaxIntervalSeconds > 0 {
		timer += ", every " + humanize.Seconds(r.MaxIntervalSeconds)
	}
	if len(r.Watches) == 0 {
		timer += ": the kernel sends no notice"
	}
	tw.Line(2, humanize.Plain, timer)
}

// ranking writes the whole ranking of a signal. Signals with the same ranking share one table.
func (tw *textWriter) ranking(all []Signal, i int) {
	r := all[i].Ranking
	if r == nil || len(r.Pods) == 0 {
		return
	}
	names := []string{all[i].Name}
	for k := range all {
		same := k != i && all[k].Ranking != nil && reflect.DeepEqual(all[k].Ranking, r)
		switch {
		case same && k < i:
			return
		case same:
			names = append(names, all[k].Name)
		}
	}
	tw.Title("Eviction order for " + strings.Join(names, ", "))
	rows := [][]string{{"POD", "OVER REQUEST", "PRIORITY", "USES", "REQUESTS", "EXCESS", "BEFORE THE NEXT BY", "SKIPPED BECAUSE"}}
	for i := range r.Pods {
		pod := &r.Pods[i]
		rows = append(rows, []string{
			pod.String(), pod.OverText(), strconv.Itoa(int(pod.Priority)), r.Unit.FormatKnown(pod.Usage), r.Unit.FormatKnown(pod.Request), r.Unit.FormatKnown(pod.Excess),
			strings.ToLower(pod.BeforeNextBy), cmp.Or(pod.Message, "–"),
		})
	}
	tw.Table(rows)
}

// OverText reports whether the pod uses more than it requests: "yes", "no", or "–" if that is not known.
func (p *RankedPod) OverText() string {
	switch {
	case p.Request == nil:
		return "–"
	case p.OverRequest:
		return "yes"
	}
	return "no"
}
