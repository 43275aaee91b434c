// Package report says what a decision of an autoscaler was and how it came about,
// to people and to machines. It decides nothing: package autoscaler does.
package report

import (
	"io"

	"github.com/weir-metrics/weir/autoscaler"
)

// Verdict is why a pod has no number, in the words of package explain.
type Verdict struct {
	Reason  string `json:"reason"`  // TooYoung, NodeTimeout ...
	Message string `json:"message"` // with its evidence
	Advice  string `json:"advice,omitempty"`
}

// Context is what a decision does not carry.
type Context struct {
	Kind     string // HorizontalPodAutoscaler or Autoscaler
	Mode     string // Active, DryRun or Shadow; empty for an evaluation
	Target   string // Deployment/web
	Min, Max int32
	// Verdict returns why a pod has no sample of the metric Spec.Metrics[i]; false
	// if nothing is known. May be nil.
	Verdict func(i int, pod string) (Verdict, bool)
}

// Report is a decision, told.
type Report struct {
	Summary string `json:"summary"`
}

// Of tells a decision.
func Of(d *autoscaler.Decision, c Context) *Report { return &Report{} }

// WriteText writes r in plain words with the table of pods; colour only if asked.
func (r *Report) WriteText(w io.Writer, colour bool) error { return nil }
