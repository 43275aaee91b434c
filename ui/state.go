package ui

import (
	"strings"

	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/metric"
)

// tone is the colour of a state. It never says what the word beside it does not.
type tone string

// The tones.
const (
	good  tone = "good"
	warn  tone = "warn"
	bad   tone = "bad"
	quiet tone = "quiet"
)

// state is how something is, in a word.
type state struct {
	Word string
	Tone tone
}

// severityState returns how bad a reason is.
func severityState(gravity string) state {
	switch gravity {
	case metric.Broken.String():
		return state{"broken", bad}
	case metric.Temporary.String():
		return state{"temporary", warn}
	}
	return state{"expected", quiet}
}

// stateOf returns how a finding is.
func stateOf(f *explain.Finding) state {
	switch {
	case f.Served && f.Reason != metric.Measured.String():
		return state{"in doubt", warn}
	case f.Held:
		return state{"stale", warn}
	case f.Served:
		return state{"ok", good}
	case f.Severity == metric.Broken.String():
		return state{"missing", bad}
	case f.Severity == metric.Temporary.String():
		return state{"not yet", warn}
	}
	return state{"none", quiet}
}

// worst returns the finding of CPU and memory that matters most; nil if both are
// well.
func worst(e *explain.Explanation) *explain.Finding {
	order := map[tone]int{bad: 3, warn: 2, quiet: 1}
	var w *explain.Finding
	most := 0
	for i := range e.Findings {
		f := &e.Findings[i]
		if f.Group != metric.CPU.String() && f.Group != metric.Memory.String() {
			continue
		}
		if n := order[stateOf(f).Tone]; n > most {
			w, most = f, n
		}
	}
	return w
}

// findingText says in a line why a number is missing or in doubt.
func findingText(f *explain.Finding) string {
	switch {
	case f.Message == "":
		return f.Reason
	case f.Reason == metric.Measured.String():
		return f.Message // the last known value is served
	}
	return f.Reason + ": " + f.Message
}

// nodeState returns how a node is, and why in a line if it is not well.
func (p *page) nodeState(it *listItem[knownNode]) (state, string) {
	if it.rank == measured {
		return state{"ok", good}, ""
	}
	if e, ok := p.Node(it.of.name); ok {
		if f := worst(&e); f != nil {
			s := stateOf(f)
			if p.isExcluded(it.of.name) {
				s = state{"excluded", quiet}
			}
			return s, findingText(f)
		}
	}
	return rankState(it.rank), ""
}

// podState returns how a pod is, and why in a line if it is not well.
func (p *page) podState(it *listItem[knownPod]) (state, string) {
	if it.rank == measured {
		return state{"ok", good}, ""
	}
	f := p.podFinding(&it.of)
	if f == nil {
		return rankState(it.rank), ""
	}
	s := stateOf(f)
	if it.rank == idle && it.of.facts != nil {
		s = state{strings.ToLower(string(it.of.facts.Phase)), s.Tone}
	}
	return s, findingText(f)
}

// podFinding returns the finding of a pod that matters most; nil if all is well or
// nothing is known. Why says it without looking through all that stands, of which
// there is much when many pods lack numbers; but where CPU is well it is silent of
// memory.
func (p *page) podFinding(k *knownPod) *explain.Finding {
	if k.facts != nil {
		if f := p.Why(k.facts); stateOf(&f).Tone != good {
			return &f
		}
	}
	if e, ok := p.Pod(k.ref); ok {
		return worst(&e)
	}
	return nil
}

// rankState is the state of something of which nobody says more.
func rankState(r rank) state {
	switch r {
	case missing:
		return state{"missing", bad}
	case doubtful:
		return state{"in doubt", warn}
	case measured:
		return state{"ok", good}
	}
	return state{"idle", quiet}
}
