package topcmd

import (
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/weir-metrics/weir/api/usage"
	"github.com/weir-metrics/weir/internal/humanize"
)

// missing is shown for a missing number.
const missing = "-"

// cell is one text of a table.
type cell struct {
	text string
	tint humanize.Tint
}

// plain returns cells without a tint.
func plain(texts ...string) (cells []cell) {
	for _, text := range texts {
		cells = append(cells, cell{text: text})
	}
	return cells
}

// table is rows of cells.
type table [][]cell

// layout makes the table of items.
func layout(items []usage.Item, shown []column, titles bool) table {
	var t table
	if titles {
		t = append(t, titlesOf(shown))
	}
	for i := range items {
		t = append(t, cellsOf(&items[i], shown))
	}
	return t
}

func titlesOf(columns []column) (row []cell) {
	for _, c := range columns {
		row = append(row, cell{c.title, humanize.Bold})
	}
	return row
}

func cellsOf(it *usage.Item, columns []column) (row []cell) {
	for _, c := range columns {
		next := cell{text: humanize.Printable(c.text(it))}
		switch {
		case next.text == "" && !c.blank:
			next = cell{missing, humanize.Amber}
			if c.wide {
				next.tint = humanize.Dim // most pods have no limit
			}
		case c.tint != nil:
			next.tint = c.tint(it)
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

// lines returns the table as text, left-aligned as kubectl does. It cuts lines at width, unless width
// is 0. Cells have their tints if colour is set.
func (t table) lines(width int, colour bool) []string {
	var widths []int
	for _, row := range t {
		for i, c := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(c.text))
		}
	}
	if width == 0 {
		width = math.MaxInt
	}
	lines := make([]string, len(t))
	for n, row := range t {
		var line strings.Builder
		gap, left := 0, width
		for i, c := range row {
			text := truncate(c.text, left-gap)
			if text == "" {
				gap += widths[i] + columnGap
				continue
			}
			line.WriteString(strings.Repeat(" ", gap))
			length := utf8.RuneCountInString(text)
			left -= gap + length
			gap = widths[i] - length + columnGap
			if colour && c.tint != humanize.Plain {
				text = c.tint.Apply(text)
			}
			line.WriteString(text)
		}
		lines[n] = line.String()
	}
	return lines
}

// columnGap is the space between two columns.
const columnGap = 3

// truncate cuts a line at width.
func truncate(line string, width int) string {
	if r := []rune(line); len(r) > max(width, 0) {
		return string(r[:max(width, 0)])
	}
	return line
}
