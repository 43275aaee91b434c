package nodeapi

import (
	"encoding/json"
	"fmt"

	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/eviction/evictionreport/document"
)

// ExplanationKind is the kind of a Report.
const ExplanationKind = "EvictionExplanation"

// Report is how a node stands with evictions, as JSON.
type Report struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	document.Report
}

// NewReport returns r with its apiVersion and kind.
func NewReport(r *document.Report) *Report { return &Report{weirdev.APIVersion, ExplanationKind, *r} }

// UnmarshalJSON is part of json.Unmarshaler. It refuses what is of another kind.
func (r *Report) UnmarshalJSON(b []byte) error {
	type plain Report // without this method
	if err := json.Unmarshal(b, (*plain)(r)); err != nil {
		return err
	}
	if r.Kind != ExplanationKind || r.APIVersion != weirdev.APIVersion {
		return fmt.Errorf("a %s of %s is no %s of %s", r.Kind, r.APIVersion, ExplanationKind, weirdev.APIVersion)
	}
	return nil
}
