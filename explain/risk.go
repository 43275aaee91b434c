package explain

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/metric"
)

// Risk is why numbers that a node has may soon be missing, or wrong.
type Risk struct {
	Node metric.NodeName `json:"node"`
	// Message describes it: "no new reading for 45s (NodeTimeout), its numbers are withdrawn in 15s".
	Message string `json:"message"`
	// Until is when its numbers are withdrawn if nothing changes; zero if they are not.
	Until time.Time `json:"until,omitzero"`
}

// Risk returns what is at risk of a node that has numbers, and false if nothing is.
func (ex *Explainer) Risk(name metric.NodeName) (Risk, bool) {
	return ex.risk(name, ex.readingOf(name))
}

// Risks returns what is at risk of all nodes that have numbers, by node.
func (ex *Explainer) Risks() map[metric.NodeName]Risk {
	risks := map[metric.NodeName]Risk{}
	if ex.View == nil {
		return risks
	}
	s := &Survey{explainer: ex}
	for node := range ex.View.Samples(metric.Node) {
		name := node.Entity.Node
		if risk, ok := ex.risk(name, ex.newReading(s.sourcesOf(name))); ok {
			risks[name] = risk
		}
	}
	return risks
}

func (ex *Explainer) risk(name metric.NodeName, read *reading) (Risk, bool) {
	s := ex.lookup(metric.Entity{Kind: metric.Node, Node: name})
	if s == nil {
		return Risk{}, false
	}
	reason := "" // why the node fails
	since := read.success
	if read.err == nil {
		since = read.byOurClock(s.Time(metric.CPU)) // it may answer with an old reading
	} else {
		reason = fmt.Sprintf(" (%v)", reasonOf(read.err, metric.NodeUnreachable))
	}
	hold := metric.LastKnownFor(read.every())
	if age := ex.Now.Sub(since); !since.IsZero() && (read.err != nil || 3*age > 2*hold) {
		end := "at the next read"
		if left := hold - age; left > 0 {
			end = "in " + humanize.Duration(left.Round(time.Second))
		}
		return Risk{name, fmt.Sprintf("no new reading for %s%s, its numbers are withdrawn %s", humanize.Duration(age.Round(time.Second)), reason, end), utc(since.Add(hold))}, true
	}
	for i := range read.sources {
		source := &read.sources[i]
		last := NewRead(source)
		if text := cmp.Or(source.SlowText(), last.ClockText()); source.Node == name && text != "" {
			return Risk{Node: name, Message: text}, true
		}
	}
	return Risk{}, false
}

// SlowText describes that a source answers so slowly that it may soon be late: the last read took a third of
// the time between two reads. It is empty for others.
func (s *SourceState) SlowText() string {
	if s.Err != nil || s.Unread != nil || s.Took < time.Second || 3*s.Took < s.Interval {
		return ""
	}
	return "the last read took " + humanize.Duration(s.Took)
}

// RiskText names in one line the nodes at risk: "At risk: n6: no new reading for 45s (NodeTimeout), its
// numbers are withdrawn in 15s; and 2 more nodes". It is empty if there are none.
func (r *MissingReport) RiskText() string {
	const most = 3
	var parts []string
	for _, risk := range r.AtRisk[:min(len(r.AtRisk), most)] {
		parts = append(parts, string(risk.Node)+": "+risk.Message)
	}
	if len(parts) == 0 {
		return ""
	}
	if more := r.NodesAtRisk - len(parts); more > 0 {
		parts = append(parts, "and "+humanize.Count(more, "more node"))
	}
	return "At risk: " + strings.Join(parts, "; ")
}
