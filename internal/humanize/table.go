package humanize

import (
	"cmp"
	"math"
	"strings"
	"unicode/utf8"
)

// Cell is one text of a Table.
type Cell struct {
	Text string
	Tint Tint
}

// Table is rows of cells.
type Table [][]Cell

// columnGap is the space between two columns.
const columnGap = 3

// Lines returns the table as kubectl writes it: left-aligned, three spaces between columns, no space at
// the end of a line. It cuts lines at width, unless width is 0. Cells have their tints if colour is set.
// The last cell of a row may be wider than its column.
func (t Table) Lines(width int, colour bool) []string {
	var widths []int
	for _, row := range t {
		for i, c := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			if i < len(row)-1 {
				widths[i] = max(widths[i], utf8.RuneCountInString(c.Text))
			}
		}
	}
	width = cmp.Or(width, math.MaxInt)
	lines := make([]string, len(t))
	for n, row := range t {
		var line strings.Builder
		gap, left := 0, width
		for i, c := range row {
			text := Truncate(c.Text, left-gap)
			if text == "" {
				gap += widths[i] + columnGap
				continue
			}
			line.WriteString(strings.Repeat(" ", gap))
			length := utf8.RuneCountInString(text)
			left -= gap + length
			gap = widths[i] - length + columnGap
			if colour && c.Tint != Plain {
				text = c.Tint.Apply(text)
			}
			line.WriteString(text)
		}
		lines[n] = line.String()
	}
	return lines
}

// Truncate cuts a line at width.
func Truncate(line string, width int) string {
	if r := []rune(line); len(r) > max(width, 0) {
		return string(r[:max(width, 0)])
	}
	return line
}
