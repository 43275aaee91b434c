package explainapi

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/explain"
)

// ExplanationDocument is an answer about one node, pod or container as JSON. Its kind is
// "NodeExplanation", "PodExplanation" or "ContainerExplanation"; the kind of the
// embedded answer follows from it.
type ExplanationDocument struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	explain.Explanation
}

// NewExplanation returns e with its apiVersion and kind.
func NewExplanation(e explain.Explanation) *ExplanationDocument {
	return &ExplanationDocument{weirdev.APIVersion, strings.ToUpper(e.Kind[:1]) + e.Kind[1:] + "Explanation", e}
}

// ReportDocument is an answer about everything that is missing as JSON. Its kind is
// "MissingReport".
type ReportDocument struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	explain.MissingReport
}

// NewReport returns r with its apiVersion and kind.
func NewReport(r explain.MissingReport) *ReportDocument {
	return &ReportDocument{weirdev.APIVersion, "MissingReport", r}
}

// UnmarshalJSON is part of json.Unmarshaler. It refuses what is of another kind.
func (e *ExplanationDocument) UnmarshalJSON(b []byte) error {
	type plain ExplanationDocument // without this method
	if err := json.Unmarshal(b, (*plain)(e)); err != nil {
		return err
	}
	of, ok := strings.CutSuffix(e.Kind, "Explanation")
	if e.Explanation.Kind = strings.ToLower(of); !ok || of == "" || e.APIVersion != weirdev.APIVersion {
		return fmt.Errorf("a %s of %s is no explanation of %s", e.Kind, e.APIVersion, weirdev.APIVersion)
	}
	return nil
}

// UnmarshalJSON is part of json.Unmarshaler. It refuses what is of another kind.
func (r *ReportDocument) UnmarshalJSON(b []byte) error {
	type plain ReportDocument // without this method
	if err := json.Unmarshal(b, (*plain)(r)); err != nil {
		return err
	}
	if r.Kind != "MissingReport" || r.APIVersion != weirdev.APIVersion {
		return fmt.Errorf("a %s of %s is no report of %s", r.Kind, r.APIVersion, weirdev.APIVersion)
	}
	return nil
}
