package chart

import "strings"

// most is how many letters fit into a line.
const most = int((width - left - right - 5) / letter)

// lines breaks a text at " · ", so that each line fits if it can.
func lines(text string) []string {
	const dot = " · "
	parts := strings.Split(text, dot)
	list := parts[:1]
	for _, part := range parts[1:] {
		last := &list[len(list)-1]
		if longer := *last + dot + part; letters(longer) <= most {
			*last = longer
		} else {
			list = append(list, part)
		}
	}
	return list
}

// name is one of the legend, and where it stands.
type name struct {
	text string
	x    float64
	row  int
}

// legend places the names of the series, from the left to the right and in as many
// rows as it takes.
func (c *Chart) legend() (names []name, rows int) {
	x, row := left, 0
	for i := range c.Series {
		n := name{text: c.Series[i].Name}
		wide := 44 + letter*float64(letters(n.text))
		if x > left && x+wide > width {
			x, row = left, row+1
		}
		n.x, n.row = x, row
		names = append(names, n)
		x += wide
	}
	return names, row + 1
}

func letters(s string) int { return len([]rune(s)) }
