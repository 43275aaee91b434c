package ui

import (
	"context"
	"errors"
	"math"
	"net/http"
	"strings"

	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/eviction/evictionreport"
	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/metric"
)

// evictionBody is the body of the page of the evictions of a node. Some fields replace those of
// the report.
type evictionBody struct {
	*evictionreport.EvictionReport
	State      state
	Facts      facts
	Signals    []evictionSignal
	Exceeded   []evictionreport.ExceededLimit
	Conditions []string
	Actions    []evictionAction
	Watches    []string
}

// evictionSignal is an eviction signal as the page shows it.
type evictionSignal struct {
	Name, Value string
	State       state
	Gauge       gauge
	Thresholds  []evictionreport.Threshold
	Lines       facts // what is reclaimed first, which pod is next, which pods are skipped
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

// evictionCandidate is a pod in the order of eviction. Some fields replace those of the RankedPod.
type evictionCandidate struct {
	*evictionreport.RankedPod
	Href, Usage, Request string
	Next                 bool
}

// evictionAction is an action of the agent, or one that a dry run would have taken.
type evictionAction struct {
	At             shownTime
	Result         state
	Message, After string
}

// The maximum numbers of items on a page.
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
	var problem *weirdev.Problem
	switch {
	case errors.As(err, &problem) && problem.Status == http.StatusNotFound:
		return &pageError{http.StatusNotFound, printable(problem.Message), printable(problem.Hint)}
	case errors.As(err, &problem):
		return &pageError{http.StatusBadGateway, printable(problem.Message), printable(problem.Hint)}
	case err != nil:
		return &pageError{http.StatusBadGateway, printable(err.Error()), "Reload the page. The log of weir may have details."}
	}
	p.show(printable(string(name)), "eviction", p.evictionBody(r))
	p.Kind = "evictions"
	p.Path = append(p.Path, p.nodesAnchor(), p.nodeAnchor(name))
	return nil
}

// evictionLink returns the link from a node to its evictions. It is empty without Options.Eviction.
func (p *page) evictionLink(node metric.NodeName) []anchor {
	if p.opts.Eviction == nil {
		return nil
	}
	return []anchor{{Text: "How close the node is to evicting pods, and which pod would be evicted next", Href: p.linkTo(query{view: oneEviction, node: node})}}
}

func (p *page) evictionBody(r *evictionreport.EvictionReport) *evictionBody {
	b := &evictionBody{EvictionReport: r, State: evictionState(r.State), Exceeded: r.Exceeded[:min(len(r.Exceeded), page25)]}
	b.Facts.add("mode", r.Mode)
	b.Facts.add("read", relativeTime(r.ReadAt, p.Now).Text)
	b.Facts.add("woken by", r.WokenBy)
	if r.WokenBy != "" {
		b.Facts.add("decided after", humanize.Seconds(r.DecidedAfterSeconds))
	}
	b.Facts.add("not read", r.ReadError)
	if r.NoPods() {
		b.Facts.add("pods", evictionreport.NoPods)
	}
	for i := range r.Signals[:min(len(r.Signals), maxSignals)] {
		if s := &r.Signals[i]; !r.IsRedundant(s) {
			b.Signals = append(b.Signals, p.evictionSignal(s, r.Reclaims))
		}
	}
	for i := range r.Conditions {
		b.Conditions = append(b.Conditions, printable(r.Conditions[i].Type)+" is "+printable(r.Conditions[i].Message))
	}
	if r.Admission != nil {
		b.Conditions = append(b.Conditions, "New pods: "+printable(r.Admission.Message))
	}
	for i := range r.Actions[:min(len(r.Actions), maxActions)] {
		b.Actions = append(b.Actions, p.evictionAction(&r.Actions[i]))
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

// evictionStates are the states of nodes that need a word of their own.
var evictionStates = map[evictionreport.NodeState]state{
	evictionreport.Evicting: {"evicting", bad}, evictionreport.Pressure: {"under pressure", warn},
	evictionreport.NoData: {"no data", bad}, evictionreport.Normal: {"normal", good},
}

// evictionState returns the state of a node.
func evictionState(s evictionreport.NodeState) state {
	if known, ok := evictionStates[s]; ok {
		return known
	}
	return state{strings.ToLower(printable(string(s))), quiet}
}

func (p *page) evictionSignal(s *evictionreport.Signal, reclaims bool) evictionSignal {
	g := evictionSignal{Name: printable(s.Name), State: fine, Thresholds: s.Thresholds}
	if s.Value != nil {
		g.Value = s.FigureText()
		if !s.Stall {
			g.Value += " left" // the bar beside it shows how much is used
		}
	}
	if s.Doubt != "" {
		g.State = state{"no figure", warn}
	}
	if s.Doubt != "" && s.Value != nil {
		g.Lines.add("doubt", s.Doubt)
	}
	for i := range s.Thresholds {
		t := thresholdStates[s.Thresholds[i].State]
		if t.Tone == bad || t.Tone == warn && g.State.Tone == good {
			g.State = t
		}
	}
	g.Gauge = gaugeOf(s, g.State.Tone)
	g.Lines.add("note", strings.Join(s.Notes, "; "))
	g.Lines.add("first", s.ReclaimMessage(reclaims))
	if s.Ranking == nil || len(s.Ranking.Pods) == 0 {
		return g
	}
	g.Lines.add("next", s.Ranking.Message)
	g.Lines.add("skipped", s.Ranking.SkippedPods())
	for i := range s.Ranking.Pods[:min(len(s.Ranking.Pods), maxPods)] {
		g.Rows = append(g.Rows, p.evictionCandidate(s.Ranking, &s.Ranking.Pods[i]))
	}
	g.More = len(s.Ranking.Pods) - len(g.Rows)
	return g
}

// thresholdStates are the states of thresholds.
var thresholdStates = map[evictionreport.ThresholdState]state{
	evictionreport.InForce: {"in force", bad}, evictionreport.Reclaiming: {"reclaiming", bad},
	evictionreport.GracePeriod: {"grace period", warn}, evictionreport.Unknown: {"no figure", warn}, evictionreport.NotMet: fine,
}

// gaugeOf returns the gauge of a signal. If the signal is an available amount, the gauge shows the
// used amount, so that every gauge gets worse to the right.
func gaugeOf(s *evictionreport.Signal, t tone) gauge {
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
	g := gauge{Title: s.FigureText() + " left", Tone: t, Width: at(*s.Value)}
	if s.Stall {
		g.Title = "stalled " + s.Unit.Format(*s.Value) + " of the time"
	}
	var marks []string
	for i := range s.Thresholds {
		if th := &s.Thresholds[i]; th.Limit != nil {
			g.Marks = append(g.Marks, at(*th.Limit))
			marks = append(marks, s.Unit.Format(*th.Limit))
		}
	}
	g.Title += "; thresholds at " + strings.Join(marks, " and ")
	return g
}

func (p *page) evictionCandidate(r *evictionreport.Ranking, pod *evictionreport.RankedPod) evictionCandidate {
	return evictionCandidate{
		RankedPod: pod, Href: p.linkTo(query{view: onePod, pod: metric.PodRef{Namespace: metric.Namespace(pod.Namespace), Name: metric.PodName(pod.Name)}}),
		Usage: r.Unit.FormatKnown(pod.Usage), Request: r.Unit.FormatKnown(pod.Request),
		Next: r.Next != "" && pod.Skipped == "" && pod.String() == r.Next,
	}
}

func (p *page) evictionAction(a *evictionreport.Action) evictionAction {
	result := state{strings.ToLower(printable(a.Result)), quiet}
	switch a.Result {
	case "Killed", "Evicted", "Requested":
		result.Tone = bad
	case "Blocked", "Failed", "Refused":
		result.Tone = warn
	}
	return evictionAction{At: relativeTime(a.At, p.Now), Result: result, Message: a.Message, After: printable(a.Details())}
}
