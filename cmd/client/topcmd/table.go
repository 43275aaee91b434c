package topcmd

import (
	"regexp"
	"slices"
	"strings"

	"github.com/weir-metrics/weir/api/usage"
	"github.com/weir-metrics/weir/internal/humanize"
)

// missing is shown for a missing number.
const missing = "-"

// table is rows of cells; the first row may be titles.
type table struct {
	rows   [][]string
	titles bool // whether rows[0] has the titles
}

// layout makes the table of a list.
func layout(list *usage.List, q usage.Query, wide, titles bool) table {
	shown := shownColumns(list, q, wide)
	t := table{titles: titles}
	var row []string
	if titles {
		for _, c := range shown {
			row = append(row, c.title)
		}
		t.rows = append(t.rows, row)
	}
	for i := range list.Items {
		row = nil
		for _, c := range shown {
			text := c.text(&list.Items[i])
			if text == "" && !c.rare && c.title != "REASON" {
				text = missing
			}
			row = append(row, text)
		}
		t.rows = append(t.rows, row)
	}
	return t
}

// shownColumns returns the columns of a list without those that are equal for every item: the namespace
// if the query names one, and the node if there is only one.
func shownColumns(list *usage.List, q usage.Query, wide bool) []column {
	oneNamespace := q.Namespace != "" && !strings.ContainsAny(q.Namespace, "*?")
	return slices.DeleteFunc(columns(list.Resource), func(c column) bool {
		if c.rare && !slices.ContainsFunc(list.Items, func(it usage.Item) bool { return c.text(&it) != "" }) {
			return true
		}
		return c.wide && !wide || c.title == "NAMESPACE" && oneNamespace || c.title == "NODE" && !c.wide && oneNode(list.Items)
	})
}

func oneNode(items []usage.Item) bool {
	return !slices.ContainsFunc(items, func(it usage.Item) bool { return it.Node != items[0].Node })
}

var (
	anyTitle    = regexp.MustCompile(`\S+`)
	missingCell = regexp.MustCompile(`(^| )-( |$)`)
)

// lines returns the table as text. It cuts lines at width, unless width is 0. If colour is set,
// titles and missing numbers have colours.
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
