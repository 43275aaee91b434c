package why

import (
	"encoding/json"
	"fmt"
	"io"

	"sigs.k8s.io/yaml"

	explainapi "github.com/weir-metrics/weir/api/explain"
	"github.com/weir-metrics/weir/explain"
)

// document returns an explanation as the API has it.
func document(e *explain.Explanation) any { return explainapi.NewExplanation(*e) }

// reportDocument returns a report as the API has it.
func reportDocument(r *explain.Report) any { return explainapi.NewReport(*r) }

// write writes a document as JSON or YAML.
func write(w io.Writer, format string, body any) error {
	var text []byte
	var err error
	if format == "yaml" {
		text, err = yaml.Marshal(body)
	} else {
		text, err = json.MarshalIndent(body, "", "  ")
		text = append(text, '\n')
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", format, err)
	}
	if _, err := w.Write(text); err != nil {
		return fmt.Errorf("write %s: %w", format, err)
	}
	return nil
}
