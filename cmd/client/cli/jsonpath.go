package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/util/jsonpath"

	"github.com/weir-metrics/weir/internal/humanize"
)

// parseJSONPath parses a template of kubectl's JSONPath: {.items[*].pod}.
func parseJSONPath(template string) (*jsonpath.JSONPath, error) {
	j := jsonpath.New("output").AllowMissingKeys(true)
	return j, j.Parse(template)
}

// fillTemplate returns what a template of JSONPath makes of body.
func fillTemplate(template string, body any) ([]byte, error) {
	j, err := parseJSONPath(template)
	if err != nil {
		return nil, err
	}
	value, err := generic(body)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := j.Execute(&out, value); err != nil {
		return nil, err
	}
	return []byte(humanize.PrintableLines(out.String())), nil
}

// generic returns body as JSON has it. Whole numbers are int64, because JSONPath would print a
// float64 as 1e+09.
func generic(body any) (any, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	var value any
	return value, utiljson.Unmarshal(text, &value)
}

// customColumn is a column of "custom-columns=TITLE:PATH,...".
type customColumn struct {
	title string
	path  *jsonpath.JSONPath
}

// parseColumns parses columns. A path is .cpu.nanocores, with or without braces.
func parseColumns(text string) ([]customColumn, error) {
	var columns []customColumn
	for column := range strings.SplitSeq(text, ",") {
		title, path, ok := strings.Cut(column, ":")
		path = strings.TrimSuffix(strings.TrimPrefix(path, "{"), "}")
		if !ok || title == "" || path == "" {
			return nil, fmt.Errorf("%q is not a column: write TITLE:.PATH, as in CPU:.cpu.nanocores", column)
		}
		j, err := parseJSONPath("{." + strings.TrimPrefix(path, ".") + "}")
		if err != nil {
			return nil, fmt.Errorf("column %q: %w", column, err)
		}
		columns = append(columns, customColumn{title, j})
	}
	return columns, nil
}

// fillColumns returns a table with a row for each of body's items, or for body if it has none. A
// value that an item does not have is <none>, as in kubectl.
func fillColumns(text string, body any) ([]byte, error) {
	columns, err := parseColumns(text)
	if err != nil {
		return nil, err
	}
	value, err := generic(body)
	if err != nil {
		return nil, err
	}
	items := []any{value}
	if list, ok := value.(map[string]any); ok {
		if all, ok := list["items"].([]any); ok {
			items = all
		}
	}
	titles := make([]string, len(columns))
	for i, c := range columns {
		titles[i] = c.title
	}
	rows := [][]string{titles}
	for _, item := range items {
		row := make([]string, len(columns))
		for i, c := range columns {
			var cell bytes.Buffer
			if err := c.path.Execute(&cell, item); err != nil {
				return nil, fmt.Errorf("column %s: %w", c.title, err)
			}
			if row[i] = humanize.Printable(cell.String()); row[i] == "" {
				row[i] = "<none>"
			}
		}
		rows = append(rows, row)
	}
	var p humanize.Page
	p.Table(rows)
	return []byte(p.String()), nil
}
