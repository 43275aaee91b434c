package autoscaling

import (
	"encoding/json"

	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/autoscaler/decisionreport"
)

// The kinds of responses.
const (
	ExplanationKind = "AutoscalerExplanation" // of a decision that was made
	EvaluationKind  = "AutoscalerEvaluation"  // of a decision that would be made
)

// Response is a report as JSON, with apiVersion and kind.
type Response struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	decisionreport.DecisionReport
}

// NewResponse returns r with its apiVersion and kind.
func NewResponse(kind string, r *decisionreport.DecisionReport) *Response {
	return &Response{weirdev.APIVersion, kind, *r}
}

// UnmarshalJSON implements json.Unmarshaler. It rejects other kinds.
func (r *Response) UnmarshalJSON(b []byte) error {
	type plain Response // without this method
	if err := json.Unmarshal(b, (*plain)(r)); err != nil {
		return err
	}
	if r.Kind == EvaluationKind && r.APIVersion == weirdev.APIVersion {
		return nil
	}
	return weirdev.CheckKind(r.APIVersion, r.Kind, ExplanationKind)
}
