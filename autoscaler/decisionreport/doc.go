// Package decisionreport reports a decision of an autoscaler, and how it was made, to people and to
// programs. It decides nothing; package autoscaler does that.
//
// New returns a DecisionReport. It is the document that the API serves, and its field names are
// stable. WriteText writes it for people: the result in the first line, each metric with its
// arithmetic, each limit in order, what is missing and why, what happens next, and how each pod was
// counted.
//
// The files: types.go has the document and its context; report.go builds it; metric.go, steps.go,
// missing.go and next.go build its parts; arithmetic.go and summary.go write its sentences;
// quantity.go formats numbers; text.go has WriteText.
package decisionreport
