package decisionreport

import (
	"time"

	"github.com/weir-metrics/weir/autoscaler"
)

// Verdict is why a pod has no number, in the words of package explain.
type Verdict struct {
	Reason  string `json:"reason"`  // TooYoung, NodeTimeout ...
	Message string `json:"message"` // with its evidence
	Advice  string `json:"advice,omitempty"`
}

// The modes.
const (
	Active = "Active" // the autoscaler writes what it decides
	DryRun = "DryRun" // it only says what it would do
	Shadow = "Shadow" // another controller acts on the object; weir decides beside it
)

// Context is what a decision does not carry.
type Context struct {
	Kind     string // HorizontalPodAutoscaler or Autoscaler
	Mode     string // Active, DryRun or Shadow; empty for an evaluation
	Target   string // Deployment/web
	Min, Max int32
	// Input is what the decision was made of: it tells the specification, the pods
	// and the settings. May be nil; then the report says less. Read is not called.
	Input *autoscaler.Input
	// Verdict returns why a pod has no sample of the metric Spec.Metrics[i]; false
	// if nothing is known. May be nil.
	Verdict func(i int, pod string) (Verdict, bool)
	// Forgetful says that no earlier decision was remembered, where one would
	// be: stabilization windows and policies held nothing back.
	Forgetful bool
	// Notes are what else a reader must know.
	Notes []string
	// Write is why the new count could not be written; nil if it was, or none was
	// to be.
	Write error
	// Other is, of an object that weir shadows, what the controller that acts on it
	// decided. Nil if that is not known.
	Other *Other
}

// Other is what another controller decided about the same object.
type Other struct {
	Desired int32     `json:"desired"`
	At      time.Time `json:"at,omitzero"` // when it last changed the count
	Agrees  bool      `json:"agrees"`
	// Why says where and why the two differ; empty if they agree.
	Why string `json:"why,omitempty"`
}
