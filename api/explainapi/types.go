package explainapi

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/explain"
)

// Explanation is an answer about one node, pod or container as JSON. Its kind is
// "NodeExplanation", "PodExplanation" or "ContainerExplanation"; the kind of the
// embedded answer follows from it.
type Explanation struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	explain.Explanation
}

// NewExplanation returns e with its apiVersion and kind.
func NewExplanation(e explain.Explanation) *Explanation {
	return &Explanation{weirdev.APIVersion, strings.ToUpper(e.Kind[:1]) + e.Kind[1:] + "Explanation", e}
}

// Report is an answer about everything that is missing as JSON. Its kind is
// "MissingReport".
type Report struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	explain.Report
}

// NewReport returns r with its apiVersion and kind.
func NewReport(r explain.Report) *Report { return &Report{weirdev.APIVersion, "MissingReport", r} }

// UnmarshalJSON is part of json.Unmarshaler. It refuses what is of another kind.
func (e *Explanation) UnmarshalJSON(b []byte) error {
	type plain Explanation // without this method
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
func (r *Report) UnmarshalJSON(b []byte) error {
	type plain Report // without this method
	if err := json.Unmarshal(b, (*plain)(r)); err != nil {
		return err
	}
	if r.Kind != "MissingReport" || r.APIVersion != weirdev.APIVersion {
		return fmt.Errorf("a %s of %s is no report of %s", r.Kind, r.APIVersion, weirdev.APIVersion)
	}
	return nil
}
