package ui

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"

	"github.com/weir-metrics/weir/eviction/evictionreport/document"
	"github.com/weir-metrics/weir/humanize"
	"github.com/weir-metrics/weir/metric"
)

// Unavailable is an error of Options.Eviction: there is no report, for the reason Why, and
// Todo says what to do.
type Unavailable struct {
	// Status is an HTTP status: 404 for an unknown node. The page answers 502 for any other,
	// because the fault is not in this weir.
	Status    int
	Why, Todo string
}

// Error returns Why.
func (u *Unavailable) Error() string { return u.Why }

// evictionBody is the body of the page of the evictions of a node.
type evictionBody struct {
	Summary    string
	State      state
	Facts      []fact
	Warnings   []string
	Signals    []evictionSignal
	Exceeded   []string
	Conditions []string
	Acts       []evictionAction
	Quiet      bool // there were no recent actions
	Watches    []string
}

// evictionSignal is an eviction signal as the page shows it.
type evictionSignal struct {
	Name, Value string
	State       state
	Gauge       gauge
	Thresholds  []thresholdMark
	Lines       []fact // what is reclaimed first, which pod is next, which pods are skipped
	Rows        []evictionCandidate
	More        int // rows that are not shown
}

// gauge is a bar that fills as the signal gets worse, with a mark at each threshold.
type gauge struct {
	Title string // describes the bar; empty if there is no gauge
	Tone  tone
	Width int // filled, of 1000
	Marks []int
}

// thresholdMark is a threshold as the page shows it.
type thresholdMark struct {
	Text, Kind, Message string
	State               state
}

// evictionCandidate is a pod in the order of eviction.
type evictionCandidate struct {
	Name, Href, Over, Usage, Request, Priority, Why string
	Next                                            bool
}

// evictionAction is an action of the agent, or one that a dry run would have taken.
type evictionAction struct {
	At             shownTime
	Did            state
	Message, After string
}

// What a page shows at most.
const (
	maxSignals = 30
	maxPods    = 10
	maxActions = 20
)

// eviction fills the page of the evictions of a node.
func (p *page) eviction(ctx context.Context) error {
	name := p.query.node
	if p.opts.Eviction == nil {
		return &pageError{http.StatusNotFound, "This weir does not evict pods, and it is not configured to ask the agents that do.",
			"The agent on each node evicts pods (docs/agent.md). On a machine outside a cluster, `weir run` does."}
	}
	r, err := p.opts.Eviction(ctx, string(name))
	var u *Unavailable
	switch {
	case errors.As(err, &u) && u.Status == http.StatusNotFound:
		return &pageError{http.StatusNotFound, printable(u.Why), printable(u.Todo)}
	case errors.As(err, &u):
		return &pageError{http.StatusBadGateway, printable(u.Why), printable(u.Todo)}
	case err != nil:
		return &pageError{http.StatusBadGateway, printable(err.Error()), "Reload the page. The log of weir may say more."}
	}
	p.Heading, p.Kind = printable(string(name)), "evictions"
	p.Path = p.breadcrumbs(anchor{Text: "Nodes", Href: p.linkTo(query{view: allNodes})}, anchor{Text: p.Heading, Href: p.linkTo(query{view: oneNode, node: name})})
	p.Body = p.evictionBody(r)
	return nil
}

// evictionLink returns the link from a node to its evictions; none without Options.Eviction.
func (p *page) evictionLink(node metric.NodeName) []anchor {
	if p.opts.Eviction == nil {
		return nil
	}
	return []anchor{{Text: "How close the node is to evicting pods, and which pod would be evicted next", Href: p.linkTo(query{view: oneEviction, node: node})}}
}

func (p *page) evictionBody(r *document.EvictionReport) *evictionBody {
	b := &evictionBody{Summary: printable(r.Summary), State: evictionState(r.State), Quiet: len(r.Actions) == 0}
	b.addFact("mode", printable(r.Mode))
	b.addFact("read", relativeTime(r.ReadAt, p.Now).Text)
	b.addFact("woken by", printable(r.WokenBy))
	if r.WokenBy != "" {
		b.addFact("decided after", humanize.Seconds(r.DecidedAfterSeconds))
	}
	b.addFact("not read", printable(r.ReadError))
	if r.NoPods() {
		b.addFact("pods", document.NoPods)
	}
	for _, w := range r.Warnings {
		b.Warnings = append(b.Warnings, printable(w))
	}
	for i := range r.Signals[:min(len(r.Signals), maxSignals)] {
		if s := &r.Signals[i]; !r.IsRedundant(s) {
			b.Signals = append(b.Signals, p.evictionSignal(s, r.Reclaims))
		}
	}
	for i := range r.Exceeded[:min(len(r.Exceeded), page25)] {
		b.Exceeded = append(b.Exceeded, printable(r.Exceeded[i].Message))
	}
	for i := range r.Conditions {
		b.Conditions = append(b.Conditions, printable(r.Conditions[i].Type)+" is "+printable(r.Conditions[i].Message))
	}
	if r.Admission != nil {
		b.Conditions = append(b.Conditions, "New pods: "+printable(r.Admission.Message))
	}
	for i := range r.Actions[:min(len(r.Actions), maxActions)] {
		b.Acts = append(b.Acts, p.evictionAction(&r.Actions[i]))
	}
	for i := range r.Watches {
		b.Watches = append(b.Watches, printable(r.Watches[i].Message))
	}
	for _, w := range r.Unwatched {
		b.Watches = append(b.Watches, "not watched: "+printable(w))
	}
	if r.PollSeconds > 0 {
		b.Watches = append(b.Watches, "disks and process ids are read every "+humanize.Seconds(r.PollSeconds))
	}
	if r.MaxIntervalSeconds > 0 {
		b.Watches = append(b.Watches, "a timer, every "+humanize.Seconds(r.MaxIntervalSeconds))
	}
	return b
}

func (b *evictionBody) addFact(name, value string) {
	if value != "" {
		b.Facts = append(b.Facts, fact{Name: name, Value: value})
	}
}

// evictionState returns the state of a node.
func evictionState(s document.NodeState) state {
	switch s {
	case document.Evicting:
		return state{"evicting", bad}
	case document.Pressure:
		return state{"under pressure", warn}
	case document.NoData:
		return state{"no data", bad}
	case document.Normal:
		return state{"normal", good}
	}
	return state{strings.ToLower(printable(string(s))), quiet}
}

func (p *page) evictionSignal(s *document.Signal, reclaims bool) evictionSignal {
	g := evictionSignal{Name: printable(s.Name), State: state{"ok", good}}
	if s.Value != nil {
		g.Value = s.FigureText()
		if !s.Stall {
			g.Value += " left" // the bar beside it shows what is used
		}
	}
	if s.Doubt != "" {
		g.State = state{"no figure", warn}
	}
	if s.Doubt != "" && s.Value != nil {
		g.addLine("doubt", s.Doubt)
	}
	for i := range s.Thresholds {
		t := &s.Thresholds[i]
		m := thresholdMark{Text: printable(t.Text), Kind: t.Kind(), Message: printable(t.Message), State: thresholdState(t.State)}
		if m.State.Tone == bad || m.State.Tone == warn && g.State.Tone == good {
			g.State = m.State
		}
		g.Thresholds = append(g.Thresholds, m)
	}
	g.Gauge = gaugeOf(s, g.State.Tone)
	g.addLine("first", s.ReclaimMessage(reclaims))
	if s.Ranking == nil || len(s.Ranking.Pods) == 0 {
		return g
	}
	g.addLine("next", s.Ranking.Message)
	g.addLine("skipped", s.Ranking.SkippedPods())
	for i := range s.Ranking.Pods[:min(len(s.Ranking.Pods), maxPods)] {
		g.Rows = append(g.Rows, p.evictionCandidate(s.Ranking, &s.Ranking.Pods[i]))
	}
	g.More = len(s.Ranking.Pods) - len(g.Rows)
	return g
}

func (g *evictionSignal) addLine(name, value string) {
	if value != "" {
		g.Lines = append(g.Lines, fact{Name: name, Value: printable(value)})
	}
}

// thresholdState returns the state of a threshold.
func thresholdState(s document.ThresholdState) state {
	switch s {
	case document.InForce:
		return state{"in force", bad}
	case document.Reclaiming:
		return state{"reclaiming", bad}
	case document.GracePeriod:
		return state{"grace period", warn}
	case document.Unknown:
		return state{"no figure", warn}
	}
	return state{"ok", good}
}

// gaugeOf returns the gauge of a signal. For an amount that is left it shows what is used, so
// that every gauge gets worse to the right.
func gaugeOf(s *document.Signal, t tone) gauge {
	whole := 100.0
	if !s.Stall {
		if s.Capacity == nil || *s.Capacity <= 0 {
			return gauge{}
		}
		whole = *s.Capacity
	}
	if s.Value == nil || s.Doubt != "" {
		return gauge{}
	}
	at := func(v float64) int {
		share := v / whole
		if !s.Stall {
			share = 1 - share
		}
		return int(math.Round(1000 * min(max(share, 0), 1)))
	}
	g := gauge{Tone: t, Width: at(*s.Value)}
	var marks []string
	for i := range s.Thresholds {
		if th := &s.Thresholds[i]; th.Limit != nil {
			g.Marks = append(g.Marks, at(*th.Limit))
			marks = append(marks, s.Unit.Format(*th.Limit))
		}
	}
	if s.Stall {
		g.Title = fmt.Sprintf("stalled %s of the time; thresholds at %s", s.Unit.Format(*s.Value), strings.Join(marks, " and "))
	} else {
		g.Title = fmt.Sprintf("%s left; thresholds at %s", s.FigureText(), strings.Join(marks, " and "))
	}
	return g
}

func (p *page) evictionCandidate(r *document.Ranking, pod *document.RankedPod) evictionCandidate {
	words := func(v *float64) string {
		if v == nil {
			return "–"
		}
		return r.Unit.Format(*v)
	}
	c := evictionCandidate{
		Name: printable(pod.String()), Href: p.linkTo(query{view: onePod, pod: metric.PodRef{Namespace: metric.Namespace(pod.Namespace), Name: metric.PodName(pod.Name)}}),
		Over: pod.OverText(), Usage: words(pod.Usage), Request: words(pod.Request), Priority: strconv.Itoa(int(pod.Priority)), Why: printable(pod.Message),
		Next: r.Next != "" && pod.Skipped == "" && pod.String() == r.Next,
	}
	return c
}

func (p *page) evictionAction(a *document.Action) evictionAction {
	d := evictionAction{At: relativeTime(a.At, p.Now), Did: state{strings.ToLower(printable(a.Result)), quiet}, Message: printable(a.Message), After: printable(a.Details())}
	switch a.Result {
	case "Killed", "Evicted":
		d.Did.Tone = bad
	case "Blocked", "Failed", "Refused":
		d.Did.Tone = warn
	}
	return d
}
