package autoscaling

import (
	"encoding/json"
	"fmt"

	"github.com/weir-metrics/weir/api/wire"
	"github.com/weir-metrics/weir/autoscaler/report"
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
	report.Report
}

// NewReport returns r with its apiVersion and kind.
func NewReport(kind string, r *report.Report) *Report { return &Report{wire.APIVersion, kind, *r} }

// UnmarshalJSON is part of json.Unmarshaler. It refuses what is of another kind.
func (r *Report) UnmarshalJSON(b []byte) error {
	type plain Report // without this method
	if err := json.Unmarshal(b, (*plain)(r)); err != nil {
		return err
	}
	if r.Kind != ExplanationKind && r.Kind != EvaluationKind || r.APIVersion != wire.APIVersion {
		return fmt.Errorf("a %s of %s is no report of %s", r.Kind, r.APIVersion, wire.APIVersion)
	}
	return nil
}
