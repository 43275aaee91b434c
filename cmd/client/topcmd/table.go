package topcmd

import (
	"slices"
	"strings"

	"github.com/weir-metrics/weir/api/usage"
	"github.com/weir-metrics/weir/internal/humanize"
)

// missing is shown for a missing number.
const missing = "-"

// plain returns cells without a tint.
func plain(texts ...string) (cells []humanize.Cell) {
	for _, text := range texts {
		cells = append(cells, humanize.Cell{Text: text})
	}
	return cells
}

// layout makes the table of items.
func layout(items []usage.Item, shown []column, titles bool) (t humanize.Table) {
	if titles {
		t = append(t, titlesOf(shown))
	}
	for i := range items {
		t = append(t, cellsOf(&items[i], shown))
	}
	return t
}

func titlesOf(columns []column) (row []humanize.Cell) {
	for _, c := range columns {
		row = append(row, humanize.Cell{Text: c.title, Tint: humanize.Bold})
	}
	return row
}

func cellsOf(it *usage.Item, columns []column) (row []humanize.Cell) {
	for _, c := range columns {
		next := humanize.Cell{Text: humanize.Printable(c.text(it))}
		switch {
		case next.Text == "" && !c.blank:
			next = humanize.Cell{Text: missing, Tint: humanize.Amber}
			if c.wide {
				next.Tint = humanize.Dim // most pods have no limit
			}
		case c.tint != nil:
			next.Tint = c.tint(it)
		}
		row = append(row, next)
	}
	return row
}

// shownColumns returns the columns for a list without those that are equal for every item: the namespace
// if the query names one, and the node if there is only one.
func shownColumns(list *usage.List, q usage.Query, f *flags) []column {
	oneNamespace := q.Namespace != "" && !strings.ContainsAny(q.Namespace, "*?")
	return slices.DeleteFunc(f.columns(list.Resource), func(c column) bool {
		optional := c.rare || f.known && c.wide
		if optional && !slices.ContainsFunc(list.Items, func(it usage.Item) bool { return c.text(&it) != "" }) {
			return true
		}
		return c.title == "NAMESPACE" && oneNamespace || c.title == "NODE" && !c.wide && oneNode(list.Items)
	})
}

func oneNode(items []usage.Item) bool {
	return !slices.ContainsFunc(items, func(it usage.Item) bool { return it.Node != items[0].Node })
}
