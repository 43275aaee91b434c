package ui

import (
	"strings"

	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/metric"
)

// tone is the colour of a state. The word of the state has the same meaning.
type tone string

// The tones.
const (
	good  tone = "good"
	warn  tone = "warn"
	bad   tone = "bad"
	quiet tone = "quiet"
)

// urgency orders tones: the smallest number needs attention most.
var urgency = map[tone]int{bad: 0, warn: 1, good: 2, quiet: 3}

// state is a word with its colour.
type state struct {
	Word string
	Tone tone
}

// fine is the state of something that is as it should be. It has no word: the page names what is
// wrong.
var fine = state{"", good}

// clockDiffers is the state of a node that answers and has the wrong time.
var clockDiffers = state{"wrong clock", warn}

// slowNode is the state of a node that takes long to answer.
var slowNode = state{"slow", warn}

// causeState returns the state for a reason and its severity.
func causeState(reason, severity string) state {
	if s, waits := waitingState(reason, severity); waits {
		return s
	}
	switch severity {
	case metric.Broken.String():
		return state{"broken", bad}
	case metric.Temporary.String():
		return state{"temporary", warn}
	}
	return state{"expected", quiet}
}

// waitingState returns the state of a pod or container that waits to start, and whether the reason shows
// that. It is never bad: no number is missing while nothing runs.
func waitingState(reason, severity string) (state, bool) {
	switch {
	case reason != metric.PodPending.String() && reason != metric.ContainerNotStarted.String():
		return state{}, false
	case severity == metric.Broken.String(): // it waits for long
		return state{"waiting", warn}, true
	}
	return state{"waiting", quiet}, true
}

// stateOf returns the state of a finding.
func stateOf(f *explain.Finding) state {
	if s, waits := waitingState(f.Reason, f.Severity); waits && !f.Served {
		return s
	}
	switch {
	case f.Served && f.Reason != metric.Measured.String():
		return state{"in doubt", warn}
	case f.LastKnown:
		return state{"stale", warn}
	case f.Served:
		return fine
	case f.Severity == metric.Broken.String():
		return state{"missing", bad}
	case f.Severity == metric.Temporary.String():
		return state{"not yet", warn}
	}
	return state{"none", quiet}
}

// worst returns the more severe finding of CPU and memory, or nil if both are ok.
func worst(e *explain.Explanation) *explain.Finding {
	for _, t := range []tone{bad, warn, quiet} {
		for i := range e.Findings {
			f := &e.Findings[i]
			if (f.Group == metric.CPU.String() || f.Group == metric.Memory.String()) && stateOf(f).Tone == t {
				return f
			}
		}
	}
	return nil
}

// findingText returns in one line why a number is missing or in doubt.
func findingText(f *explain.Finding) string {
	switch {
	case f.Message == "":
		return f.Reason
	case f.Reason == metric.Measured.String():
		return f.Message // the last known value is served
	}
	return f.Reason + ": " + f.Message
}

// nodeState returns the state of a node, and the reason in one line if it is not ok.
func (p *page) nodeState(it *listItem) (state, string) {
	if it.rank == measured {
		return fine, ""
	}
	if e, ok := p.Node(it.entity.Node); ok {
		if f := worst(&e); f != nil {
			s := stateOf(f)
			if p.isExcluded(it.entity.Node) {
				s = state{"excluded", quiet}
			}
			if risk, ok := p.Risk(it.entity.Node); ok && f.Served && !risk.Until.IsZero() {
				return s, risk.Message
			}
			return s, findingText(f)
		}
	}
	if it.atRisk != "" {
		return it.risk, it.atRisk
	}
	return rankStates[it.rank], ""
}

// podState returns the state of a pod, and the reason in one line if it is not ok.
func (p *page) podState(it *listItem) (state, string) {
	switch it.rank {
	case measured:
		return fine, ""
	case partial:
		runs, _ := it.pod.Partial()
		return rankStates[partial], runs.String()
	}
	f := p.podFinding(it)
	if f == nil {
		return rankStates[it.rank], ""
	}
	s := stateOf(f)
	if it.rank == idle && it.pod != nil {
		s = state{strings.ToLower(string(it.pod.Phase)), s.Tone}
	}
	return s, findingText(f)
}

// podFinding returns the most severe finding of a pod, or nil if the pod is ok or unknown. It tries
// Explainer.Why first, because Why does not read all verdicts. If CPU is ok, Why does not report
// memory.
func (p *page) podFinding(it *listItem) *explain.Finding {
	if it.pod != nil {
		if f := p.Why(it.pod); stateOf(&f).Tone != good {
			return &f
		}
	}
	if e, ok := p.Pod(it.entity.PodRef()); ok {
		return worst(&e)
	}
	return nil
}

// rankStates are the states of items without an explanation.
var rankStates = [...]state{
	missing: {"missing", bad}, waiting: {"waiting", warn}, doubtful: {"in doubt", warn}, partial: {"partial", warn}, measured: fine, idle: {"idle", quiet},
}
