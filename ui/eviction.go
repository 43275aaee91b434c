package ui

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/weir-metrics/weir/eviction/evictionreport/document"
	"github.com/weir-metrics/weir/metric"
)

// Unavailable is why how a node stands with evictions cannot be told, and what to do about
// it: an error of Options.Eviction.
type Unavailable struct {
	// Status is of HTTP: 404 of a node that nobody knows. Anything else is answered 502:
	// it is not this weir that fails.
	Status    int
	Why, Todo string
}

// Error says why.
func (u *Unavailable) Error() string { return u.Why }

// standing is the body of the page of a node's evictions.
type standing struct {
	Summary    string
	State      state
	Facts      []fact
	Warnings   []string
	Signals    []gauged
	Exceeded   []string
	Conditions []string
	Acts       []deed
	Quiet      bool // nothing was done lately
	Watches    []string
}

// gauged is a signal, as it is drawn.
type gauged struct {
	Name, Value string
	State       state
	Gauge       gauge
	Thresholds  []mark
	Lines       []fact // what goes first, who is next, who is spared
	Rows        []candidate
	More        int // rows that are not shown
}

// gauge is a bar that fills as the signal gets worse, with a mark at each threshold.
type gauge struct {
	Title string // what it shows, in words; empty for no gauge
	Tone  tone
	Width int // filled, of 1000
	Marks []int
}

// mark is a threshold.
type mark struct {
	Text, Kind, Message string
	State               state
}

// candidate is a pod in the order in which they would go.
type candidate struct {
	Name, Href, Over, Usage, Request, Priority, Why string
	Next                                            bool
}

// deed is something that was done, or would have been.
type deed struct {
	At             moment
	Did            state
	Message, After string
}

// What a page shows at most.
const (
	mostSignals = 30
	mostPods    = 10
	mostDeeds   = 20
)

// eviction fills the page of a node's evictions.
func (p *page) eviction(ctx context.Context) error {
	name := p.query.node
	if p.opts.Eviction == nil {
		return &problem{http.StatusNotFound, "This weir looks after no node's evictions, and asks nobody who does.",
			"The agent on each node does (docs/agent.md); on a machine of no cluster `weir run` does."}
	}
	r, err := p.opts.Eviction(ctx, string(name))
	var u *Unavailable
	switch {
	case errors.As(err, &u) && u.Status == http.StatusNotFound:
		return &problem{http.StatusNotFound, clean(u.Why), clean(u.Todo)}
	case errors.As(err, &u):
		return &problem{http.StatusBadGateway, clean(u.Why), clean(u.Todo)}
	case err != nil:
		return &problem{http.StatusBadGateway, clean(err.Error()), "Ask again; weir's log may say more."}
	}
	p.Heading, p.Kind = clean(string(name)), "evictions"
	p.Path = p.above(anchor{Text: "Nodes", Href: p.to(query{view: allNodes})}, anchor{Text: p.Heading, Href: p.to(query{view: oneNode, node: name})})
	p.Body = p.standing(r)
	return nil
}

// evictionLink leads from a node to its evictions; none where nobody tells of them.
func (p *page) evictionLink(node metric.NodeName) []anchor {
	if p.opts.Eviction == nil {
		return nil
	}
	return []anchor{{Text: "How near it is to evicting pods, and who would go next", Href: p.to(query{view: oneEviction, node: node})}}
}

func (p *page) standing(r *document.EvictionReport) *standing {
	b := &standing{Summary: clean(r.Summary), State: standingState(r.State), Quiet: len(r.Actions) == 0}
	b.fact("mode", clean(r.Mode))
	b.fact("read", when(r.ReadAt, p.Now).Text)
	b.fact("woken by", clean(r.WokenBy))
	if r.WokenBy != "" {
		b.fact("decided after", document.Lasting(seconds(r.DecidedAfterSeconds)))
	}
	b.fact("not read", clean(r.ReadError))
	if r.NoPods() {
		b.fact("pods", document.NoPods)
	}
	for _, w := range r.Warnings {
		b.Warnings = append(b.Warnings, clean(w))
	}
	for i := range r.Signals[:min(len(r.Signals), mostSignals)] {
		if s := &r.Signals[i]; !r.IsRedundant(s) {
			b.Signals = append(b.Signals, p.gauged(s, r.Reclaims))
		}
	}
	for i := range r.Exceeded[:min(len(r.Exceeded), page25)] {
		b.Exceeded = append(b.Exceeded, clean(r.Exceeded[i].Message))
	}
	for i := range r.Conditions {
		b.Conditions = append(b.Conditions, clean(r.Conditions[i].Type)+" is "+clean(r.Conditions[i].Message))
	}
	if r.Admission != nil {
		b.Conditions = append(b.Conditions, "New pods: "+clean(r.Admission.Message))
	}
	for i := range r.Actions[:min(len(r.Actions), mostDeeds)] {
		b.Acts = append(b.Acts, p.deed(&r.Actions[i]))
	}
	for i := range r.Watches {
		b.Watches = append(b.Watches, clean(r.Watches[i].Message))
	}
	for _, w := range r.Unwatched {
		b.Watches = append(b.Watches, "not: "+clean(w))
	}
	if r.PollSeconds > 0 {
		b.Watches = append(b.Watches, "disks and process ids are read every "+document.Lasting(seconds(r.PollSeconds)))
	}
	if r.MaxIntervalSeconds > 0 {
		b.Watches = append(b.Watches, "a timer, every "+document.Lasting(seconds(r.MaxIntervalSeconds)))
	}
	return b
}

func (b *standing) fact(name, value string) {
	if value != "" {
		b.Facts = append(b.Facts, fact{Name: name, Value: value})
	}
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// standingState is how a node stands.
func standingState(s document.NodeState) state {
	switch s {
	case document.Evicting:
		return state{"evicting", bad}
	case document.Pressure:
		return state{"under pressure", warn}
	case document.NoData:
		return state{"no figures", bad}
	case document.Normal:
		return state{"calm", good}
	}
	return state{strings.ToLower(clean(string(s))), quiet}
}

func (p *page) gauged(s *document.Signal, reclaims bool) gauged {
	g := gauged{Name: clean(s.Name), State: state{"ok", good}}
	if s.Value != nil {
		g.Value = s.FigureText()
		if !s.Stall {
			g.Value += " left" // beside a bar of what is gone
		}
	}
	if s.Doubt != "" {
		g.State = state{"no figure", warn}
	}
	if s.Doubt != "" && s.Value != nil {
		g.line("doubt", s.Doubt)
	}
	for i := range s.Thresholds {
		t := &s.Thresholds[i]
		m := mark{Text: clean(t.Text), Kind: t.Kind(), Message: clean(t.Message), State: thresholdState(t.State)}
		if m.State.Tone == bad || m.State.Tone == warn && g.State.Tone == good {
			g.State = m.State
		}
		g.Thresholds = append(g.Thresholds, m)
	}
	g.Gauge = gaugeOf(s, g.State.Tone)
	g.line("first", s.ReclaimMessage(reclaims))
	if s.Ranking == nil || len(s.Ranking.Pods) == 0 {
		return g
	}
	g.line("next", s.Ranking.Message)
	g.line("spared", s.Ranking.SkippedPods())
	for i := range s.Ranking.Pods[:min(len(s.Ranking.Pods), mostPods)] {
		g.Rows = append(g.Rows, p.candidate(s.Ranking, &s.Ranking.Pods[i]))
	}
	g.More = len(s.Ranking.Pods) - len(g.Rows)
	return g
}

func (g *gauged) line(name, value string) {
	if value != "" {
		g.Lines = append(g.Lines, fact{Name: name, Value: clean(value)})
	}
}

// thresholdState is how a threshold stands, in a word or two.
func thresholdState(s document.ThresholdState) state {
	switch s {
	case document.InForce:
		return state{"in force", bad}
	case document.Reclaiming:
		return state{"not yet over", bad}
	case document.GracePeriod:
		return state{"met", warn}
	case document.Unknown:
		return state{"no figure", warn}
	}
	return state{"ok", good}
}

// gaugeOf draws a signal. What there is left of shows what is gone, so that each gauge
// gets worse to the right, where its marks are.
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
			marks = append(marks, s.Unit.Words(*th.Limit))
		}
	}
	if s.Stall {
		g.Title = fmt.Sprintf("stalled %s of the time; thresholds at %s", s.Unit.Words(*s.Value), strings.Join(marks, " and "))
	} else {
		g.Title = fmt.Sprintf("%s left; thresholds at %s", s.FigureText(), strings.Join(marks, " and "))
	}
	return g
}

func (p *page) candidate(r *document.Ranking, pod *document.RankedPod) candidate {
	words := func(v *float64) string {
		if v == nil {
			return "–"
		}
		return r.Unit.Words(*v)
	}
	c := candidate{
		Name: clean(pod.String()), Href: p.to(query{view: onePod, pod: metric.PodRef{Namespace: metric.Namespace(pod.Namespace), Name: metric.PodName(pod.Name)}}),
		Over: "no", Usage: words(pod.Usage), Request: words(pod.Request), Priority: strconv.Itoa(int(pod.Priority)), Why: clean(pod.Message),
		Next: r.Next != "" && pod.Skipped == "" && pod.String() == r.Next,
	}
	switch {
	case pod.Request == nil:
		c.Over = "–"
	case pod.OverRequest:
		c.Over = "yes"
	}
	return c
}

func (p *page) deed(a *document.Action) deed {
	d := deed{At: when(a.At, p.Now), Did: state{strings.ToLower(clean(a.Result)), quiet}, Message: clean(a.Message), After: clean(a.Details())}
	switch a.Result {
	case "Killed", "Evicted":
		d.Did.Tone = bad
	case "Blocked", "Failed", "Refused":
		d.Did.Tone = warn
	}
	return d
}
