package explainapi

import (
	"strings"

	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/explain"
)

// ExplanationDocument is an answer about one node, pod, container or cgroup as JSON. Its kind is
// "NodeExplanation", "PodExplanation", "ContainerExplanation" or "CgroupExplanation", after the kind
// of the embedded answer.
type ExplanationDocument struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	explain.Explanation
}

// NewExplanation returns e with its apiVersion and kind.
func NewExplanation(e explain.Explanation) *ExplanationDocument {
	return &ExplanationDocument{weirdev.APIVersion, strings.ToUpper(e.Kind[:1]) + e.Kind[1:] + "Explanation", e}
}

// reportKind is the kind of a ReportDocument.
const reportKind = "MissingReport"

// ReportDocument is an answer about everything that is missing as JSON.
type ReportDocument struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	explain.MissingReport
}

// NewReport returns r with its apiVersion and kind.
func NewReport(r explain.MissingReport) *ReportDocument {
	return &ReportDocument{weirdev.APIVersion, reportKind, r}
}
