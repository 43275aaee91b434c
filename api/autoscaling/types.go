package autoscaling

import (
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
