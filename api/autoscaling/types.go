package autoscaling

import (
	"encoding/json"
	"fmt"

	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/autoscaler/decisionreport"
)

// The kinds of answers.
const (
	ExplanationKind = "AutoscalerExplanation" // of a decision that was made
	EvaluationKind  = "AutoscalerEvaluation"  // of one that would be
)

// Report is an answer as JSON.
type Report struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	decisionreport.Report
}

// NewReport returns r with its apiVersion and kind.
func NewReport(kind string, r *decisionreport.Report) *Report {
	return &Report{weirdev.APIVersion, kind, *r}
}

// UnmarshalJSON is part of json.Unmarshaler. It refuses what is of another kind.
func (r *Report) UnmarshalJSON(b []byte) error {
	type plain Report // without this method
	if err := json.Unmarshal(b, (*plain)(r)); err != nil {
		return err
	}
	if r.Kind != ExplanationKind && r.Kind != EvaluationKind || r.APIVersion != weirdev.APIVersion {
		return fmt.Errorf("a %s of %s is no report of %s", r.Kind, r.APIVersion, weirdev.APIVersion)
	}
	return nil
}
