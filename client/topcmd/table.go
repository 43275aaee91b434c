package topcmd

import (
	"strings"
	"unicode/utf8"

	"github.com/weir-metrics/weir/api/usage"
)

// missing stands where a number is not there.
const missing = "-"

// table is rows of cells; the first row may be titles.
type table struct {
	rows   [][]string
	titles bool // whether rows[0] holds them
}

// layout makes the table of a list. Columns that say the same of every item,
// as the namespace does where one was asked for, are left out.
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
	if titles {
		row := make([]string, len(chosen))
		for i, c := range chosen {
			row[i] = c.title
		}
		t.rows = append(t.rows, row)
	}
	for i := range list.Items {
		row := make([]string, len(chosen))
		for j, c := range chosen {
			if row[j] = c.text(&list.Items[i]); row[j] == "" && c.title != "REASON" {
				row[j] = missing
			}
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

const (
	bold  = "\x1b[1m"
	amber = "\x1b[33m"
	plain = "\x1b[0m"
)

// lines writes the table as kubectl does: columns to the left, three spaces
// apart, no space at the end of a line. A width other than 0 cuts lines there.
// Colour sets off titles and what is missing.
func (t *table) lines(width int, colour bool) []string {
	var widths []int
	for _, row := range t.rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	lines := make([]string, len(t.rows))
	for n, row := range t.rows {
		var line strings.Builder
		at := 0 // cells of the terminal written
		pad := 0
		for i, cell := range row {
			if cell == "" {
				pad += widths[i] + 3
				continue
			}
			if width > 0 && at+pad >= width {
				break
			}
			line.WriteString(strings.Repeat(" ", pad))
			at += pad
			runes := utf8.RuneCountInString(cell)
			pad = widths[i] - runes + 3
			if width > 0 && at+runes > width {
				cell, runes = string([]rune(cell)[:width-at]), width-at
			}
			at += runes
			switch {
			case colour && t.titles && n == 0:
				cell = bold + cell + plain
			case colour && cell == missing:
				cell = amber + cell + plain
			}
			line.WriteString(cell)
		}
		lines[n] = line.String()
	}
	return lines
}
