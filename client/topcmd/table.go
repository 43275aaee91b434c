package topcmd

import (
	"regexp"
	"strings"

	"github.com/weir-metrics/weir/api/usage"
	"github.com/weir-metrics/weir/humanize"
)

// missing is shown for a number that is not there.
const missing = "-"

// table is rows of cells; the first row may be titles.
type table struct {
	rows   [][]string
	titles bool // whether rows[0] holds them
}

// layout makes the table of a list. It leaves out columns that say the same of every item: the
// namespace if one was asked for, the node if there is only one.
func layout(list *usage.List, q usage.Query, wide, titles bool) table {
	var chosen []column
	for _, c := range columns(list.Resource) {
		switch {
		case c.wide && !wide:
		case c.title == "NAMESPACE" && q.Namespace != "" && !strings.ContainsAny(q.Namespace, "*?"):
		case c.title == "NODE" && !c.wide && oneNode(list.Items):
		default:
			chosen = append(chosen, c)
		}
	}
	t := table{titles: titles}
	var row []string
	if titles {
		for _, c := range chosen {
			row = append(row, c.title)
		}
		t.rows = append(t.rows, row)
	}
	for i := range list.Items {
		row = nil
		for _, c := range chosen {
			text := c.text(&list.Items[i])
			if text == "" && c.title != "REASON" {
				text = missing
			}
			row = append(row, text)
		}
		t.rows = append(t.rows, row)
	}
	return t
}

func oneNode(items []usage.Item) bool {
	for i := range items {
		if items[i].Node != items[0].Node {
			return false
		}
	}
	return true
}

var (
	anyTitle    = regexp.MustCompile(`\S+`)
	missingCell = regexp.MustCompile(`(^| )-( |$)`)
)

// lines returns the table as text. A width other than 0 cuts lines there. Colour sets off titles
// and what is missing.
func (t *table) lines(width int, colour bool) []string {
	var p humanize.Page
	p.Table(t.rows)
	lines := strings.Split(strings.TrimSuffix(p.String(), "\n"), "\n")
	for i, line := range lines {
		if runes := []rune(line); width > 0 && len(runes) > width {
			line = strings.TrimRight(string(runes[:width]), " ")
		}
		switch {
		case colour && t.titles && i == 0:
			line = anyTitle.ReplaceAllStringFunc(line, humanize.Bold.Apply)
		case colour:
			line = missingCell.ReplaceAllString(line, "${1}"+humanize.Amber.Apply(missing)+"${2}")
		}
		lines[i] = line
	}
	return lines
}
