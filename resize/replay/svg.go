package replay

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"math"

	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/resize"
)

// The size of a panel of the picture, and of the plot in it, in pixels.
const (
	panelWidth, panelHeight             = 460.0, 420.0
	plotLeft, plotTop, plotSide, plotUp = 60.0, 56.0, 370.0, 270.0
)

const svgStyle = `
  svg { --ink: #24292f; --soft: #6e7781; --grid: #d8dee4; --back: #ffffff; }
  @media (prefers-color-scheme: dark) {
    svg { --ink: #e6edf3; --soft: #8d96a0; --grid: #30363d; --back: #0d1117; }
  }
  text { font: 12px system-ui, sans-serif; fill: var(--soft); }
  .title { font-size: 15px; font-weight: 600; fill: var(--ink); }
  .name { fill: var(--ink); }
  .back { fill: var(--back); }
  .grid { stroke: var(--grid); }
  .range { stroke-width: 2; stroke-opacity: 0.45; }
`

// ruleColors are for light and dark pages, in the order of the rules.
var ruleColors = []string{"#2f81f7", "#e0701a", "#2da44e", "#bf4bd8", "#c9a100", "#d1242f"}

// WriteSVG draws what each rule costs: to the right the slack, upwards what was too little, the overrun of CPU
// and the OOM kills of memory. Lines are the 95% intervals. The baseline is left out. The picture is for light
// and dark pages, without scripts and external fonts.
func (r *Result) WriteSVG(w io.Writer) error {
	var b bytes.Buffer
	var panels [][]Row
	for _, resource := range resize.Resources() {
		var rows []Row
		for _, row := range r.Rows {
			if row.Resource == resource && row.Estimator != Baseline {
				rows = append(rows, row)
			}
		}
		if len(rows) > 0 {
			panels = append(panels, rows)
		}
	}
	width := panelWidth * float64(len(panels))
	fmt.Fprintf(&b, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %g %g\" width=\"%g\" height=\"%g\" role=\"img\">\n<title>Slack of requests, and what they lacked</title>\n<style>%s</style>\n", width, panelHeight, width, panelHeight, svgStyle)
	fmt.Fprintf(&b, "<rect class=\"back\" width=\"%g\" height=\"%g\"/>\n", width, panelHeight)
	for i, rows := range panels {
		fmt.Fprintf(&b, "<g transform=\"translate(%g 0)\">\n", panelWidth*float64(i))
		drawPanel(&b, rows)
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	if _, err := w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("write picture: %w", err)
	}
	return nil
}

// lack returns what was too little with a rule, and its interval.
func (r *Row) lack() (value, low, high float64) {
	value, interval := r.Overrun, r.OverrunRange
	if r.Kills != nil {
		value, interval = *r.Kills, r.KillsRange
	}
	if interval == nil {
		return value, value, value
	}
	return value, interval.Low, interval.High
}

// drawPanel draws the rules for one resource.
func drawPanel(b *bytes.Buffer, rows []Row) {
	title, axis, format := "CPU", "use above the request", humanize.Percent
	if rows[0].Kills != nil {
		title, axis, format = "Memory", "OOM kills a day", func(v float64) string { return humanize.Decimal(v, 2) }
	}
	right, up := 0.0, 0.0
	for i := range rows {
		_, _, high := rows[i].lack()
		right, up = max(right, rows[i].Slack), max(up, high)
		if s := rows[i].SlackRange; s != nil {
			right = max(right, s.High)
		}
	}
	stepRight, stepUp := tickStep(max(right, 0.01)), tickStep(max(up, 0.001))
	right, up = min(math.Ceil(right/stepRight)*stepRight, 1), math.Ceil(max(up, 0.001)/stepUp)*stepUp
	x := func(v float64) float64 { return plotLeft + plotSide*v/right }
	y := func(v float64) float64 { return plotTop + plotUp*(1-v/up) }
	line := func(class, color string, x1, y1, x2, y2 float64) {
		fmt.Fprintf(b, "<line class=\"%s\" stroke=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", class, color, x1, y1, x2, y2)
	}
	text := func(class, anchor string, x, y float64, s string) {
		fmt.Fprintf(b, "<text class=\"%s\" text-anchor=\"%s\" x=\"%.1f\" y=\"%.1f\">", class, anchor, x, y)
		_ = xml.EscapeText(b, []byte(s)) // a buffer has no errors
		b.WriteString("</text>\n")
	}
	text("title", "start", plotLeft, 24, title)
	text("", "start", plotLeft, 44, "↑ "+axis)
	text("", "end", plotLeft+plotSide, plotTop+plotUp+40, "slack: requested and not used →")
	for v := 0.0; v <= right*1.001; v += stepRight {
		line("grid", "", x(v), y(0), x(v), y(up))
		text("", "middle", x(v), y(0)+18, humanize.Percent(v))
	}
	for v := 0.0; v <= up*1.001; v += stepUp {
		line("grid", "", x(0), y(v), x(right), y(v))
		text("", "end", x(0)-6, y(v)+4, format(v))
	}
	for i := range rows {
		row, color := &rows[i], ruleColors[i%len(ruleColors)]
		value, low, high := row.lack()
		line("range", color, x(row.Slack), y(low), x(row.Slack), y(high))
		if s := row.SlackRange; s != nil {
			line("range", color, x(s.Low), y(value), x(s.High), y(value))
		}
		fmt.Fprintf(b, "<circle fill=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"5\"/>\n", color, x(row.Slack), y(value))
		below := plotTop + plotUp + 64 + 18*float64(i/3)
		fmt.Fprintf(b, "<circle fill=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"5\"/>\n", color, plotLeft+6+130*float64(i%3), below-4)
		text("name", "start", plotLeft+18+130*float64(i%3), below, row.Estimator)
	}
}

// tickStep returns the distance between the marks of an axis: 1, 2 or 5 times a power of ten, so that four to
// ten marks reach the value most.
func tickStep(most float64) float64 {
	step := math.Pow(10, math.Floor(math.Log10(most/4)))
	for _, factor := range []float64{5, 2} {
		if step*factor <= most/4 {
			return step * factor
		}
	}
	return step
}
