package explaincmd

import (
	"github.com/weir-metrics/weir/api/explainapi"
	"github.com/weir-metrics/weir/explain"
)

// document returns an explanation as the API has it.
func document(e *explain.Explanation) any { return explainapi.NewExplanation(*e) }

// reportDocument returns a report as the API has it.
func reportDocument(r *explain.Report) any { return explainapi.NewReport(*r) }
