package replay

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/weir-metrics/weir/internal/humanize"
)

// The size and the margins of the picture, in pixels.
const (
	svgWidth, plotHeight = 960.0, 276.0
	plotLeft, plotRight  = 52.0, 932.0
	lineHeight           = 18.0
)

const svgStyle = `
  svg { --ink: #24292f; --soft: #6e7781; --grid: #d8dee4; --back: #ffffff; --a: #0b63ce; --b: #c2410c; --demand: #2da44e; }
  @media (prefers-color-scheme: dark) {
    svg { --ink: #e6edf3; --soft: #8d96a0; --grid: #30363d; --back: #0d1117; --a: #58a6ff; --b: #ff9248; --demand: #3fb950; }
  }
  text { font: 12px system-ui, sans-serif; fill: var(--soft); }
  .title { font-size: 15px; font-weight: 600; fill: var(--ink); }
  .legend { fill: var(--ink); }
  .back { fill: var(--back); }
  .grid { stroke: var(--grid); }
  path, .key { fill: none; stroke-width: 2; }
  .demand { stroke: var(--demand); stroke-width: 1; fill: var(--demand); fill-opacity: 0.15; }
  .recorded { stroke: var(--soft); }
  .bound { stroke: var(--soft); stroke-width: 1; stroke-dasharray: 5 4; }
  .run0 { stroke: var(--a); }
  .run1 { stroke: var(--b); }
`

// curve is one line of the picture. Each value is valid until the next point.
type curve struct {
	name, class string
	points      []SyncPoint
	value       func(*SyncPoint) float64 // negative if not known
}

// curves returns the curves of the picture: the number of pods that would use exactly the target,
// the recorded number, the number in each run, and the bounds of the last run.
func (co *Comparison) curves() []curve {
	last := co.Runs[len(co.Runs)-1]
	all := []curve{{"demand at the target of " + last.Name, "demand", last.Points, func(p *SyncPoint) float64 { return p.Demand }}}
	if last.Recorded != nil {
		all = append(all, curve{"recorded", "recorded", last.Points, func(p *SyncPoint) float64 { return float64(p.Recorded) }})
	}
	for i, run := range co.Runs {
		all = append(all, curve{run.Name, fmt.Sprintf("run%d", i%2), run.Points, func(p *SyncPoint) float64 { return float64(p.Desired) }})
	}
	bound := func(name string, n int32) curve {
		return curve{fmt.Sprintf("%s %d", name, n), "bound", last.Points, func(*SyncPoint) float64 { return float64(n) }}
	}
	return append(all, bound("minReplicas", last.Min), bound("maxReplicas", last.Max))
}

// WriteSVG draws the numbers of pods over time, for light and dark pages, without scripts and
// external fonts. A bound above the highest mark of the axis is only in the legend.
func (co *Comparison) WriteSVG(w io.Writer) error {
	curves := co.curves()
	subtitle := []string{fmt.Sprintf("%s to %s", humanize.DateTime(co.From), humanize.DateTime(co.To))}
	for _, run := range co.Runs {
		subtitle = append(subtitle, fmt.Sprintf("%s: %.1f pod-hours, %s above target", run.Name, run.Totals.PodHours, humanize.Duration(run.Totals.Above.Duration())))
	}
	p := &plot{from: co.From, to: co.To, top: 70 + lineHeight*float64(len(subtitle)+len(curves)), ticks: valueTicks(largestValue(curves))}
	height := p.top + plotHeight + 40
	p.printf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f" role="img">`, svgWidth, height, svgWidth, height)
	title := fmt.Sprintf("Replicas of %s %s", co.Namespace, co.Target)
	p.printf("<title>%s</title>\n<style>%s</style>", escapeXML(title), svgStyle)
	p.printf(`<rect class="back" width="%.0f" height="%.0f"/>`, svgWidth, height)
	p.printf(`<text class="title" x="%.0f" y="24">%s</text>`, plotLeft, escapeXML(title))
	y := 44.0
	for _, line := range subtitle {
		p.printf(`<text x="%.0f" y="%.0f">%s</text>`, plotLeft, y, escapeXML(line))
		y += lineHeight
	}
	for _, c := range curves {
		p.printf(`<line class="key %s" x1="%.0f" x2="%.0f" y1="%.0f" y2="%.0f"/>`, c.class, plotLeft, plotLeft+18, y-4, y-4)
		p.printf(`<text class="legend" x="%.0f" y="%.0f">%s</text>`, plotLeft+24, y, escapeXML(c.name))
		y += lineHeight
	}
	p.drawAxes()
	for i := range curves {
		p.printf(`<path class="%s" d="%s"/>`, curves[i].class, p.path(&curves[i]))
	}
	p.printf("</svg>")
	if _, err := w.Write(p.out.Bytes()); err != nil {
		return fmt.Errorf("write picture: %w", err)
	}
	return nil
}

// largestValue returns the largest value of all curves except the bounds.
func largestValue(curves []curve) (largest float64) {
	for _, c := range curves {
		for i := range c.points {
			if c.class != "bound" {
				largest = max(largest, c.value(&c.points[i]))
			}
		}
	}
	return largest
}

// plot has the state of a picture while it is drawn.
type plot struct {
	out      bytes.Buffer
	from, to time.Time
	top      float64 // the height of the plot's upper edge
	ticks    []float64
}

// printf adds a line to the file.
func (p *plot) printf(format string, args ...any) { fmt.Fprintf(&p.out, format+"\n", args...) }

func (p *plot) x(t time.Time) float64 {
	return plotLeft + (plotRight-plotLeft)*t.Sub(p.from).Seconds()/p.to.Sub(p.from).Seconds()
}

func (p *plot) y(v float64) float64 { return p.top + plotHeight*(1-v/p.ticks[len(p.ticks)-1]) }

func (p *plot) drawAxes() {
	for _, v := range p.ticks {
		p.printf(`<line class="grid" x1="%.0f" x2="%.0f" y1="%.1f" y2="%.1f"/>`, plotLeft, plotRight, p.y(v), p.y(v))
		p.printf(`<text x="%.0f" y="%.1f" text-anchor="end">%g</text>`, plotLeft-8, p.y(v)+4, v)
	}
	p.printf(`<text x="%.0f" y="%.0f" text-anchor="end">pods</text>`, plotLeft-8, p.top-14)
	step := timeStep(p.to.Sub(p.from))
	for at := p.from.UTC().Truncate(step).Add(step); !at.After(p.to); at = at.Add(step) {
		label := at.Format("15:04")
		if at.Truncate(24 * time.Hour).Equal(at) {
			label = at.Format("Jan 2")
		}
		p.printf(`<line class="grid" x1="%.1f" x2="%.1f" y1="%.0f" y2="%.0f"/>`, p.x(at), p.x(at), p.y(0), p.y(0)+5)
		p.printf(`<text x="%.1f" y="%.0f" text-anchor="middle">%s</text>`, p.x(at), p.y(0)+20, label)
	}
}

// path returns the line of a curve, with a gap where values are not known. The curve of the demand
// is closed at the axis, so that the area below it has a colour.
func (p *plot) path(c *curve) string {
	var d strings.Builder
	start, last := 0.0, -1.0 // start is where the current part of the line begins; last is negative outside of a part
	end := func(x float64) {
		if last < 0 {
			return
		}
		fmt.Fprintf(&d, "H%.1f", x)
		if c.class == "demand" {
			fmt.Fprintf(&d, "V%.1fH%.1fZ", p.y(0), start)
		}
	}
	for i := range c.points {
		x, v := p.x(c.points[i].At), c.value(&c.points[i])
		switch {
		case v < 0 || v > p.ticks[len(p.ticks)-1]:
			v = -1
			end(x)
		case last < 0:
			start = x
			fmt.Fprintf(&d, "M%.1f %.1f", x, p.y(v))
		case v != last:
			fmt.Fprintf(&d, "H%.1fV%.1f", x, p.y(v))
		}
		last = v
	}
	end(plotRight)
	return d.String()
}

// valueTicks returns at most seven round values from zero to at least most: steps of one, two or
// five times a power of ten, at least 1.
func valueTicks(most float64) []float64 {
	step := 1.0
	for next := []float64{2, 2.5, 2}; most/step > 6; {
		step *= next[0]
		next = append(next[1:], next[0])
	}
	ticks := []float64{0, step}
	for ticks[len(ticks)-1] < most {
		ticks = append(ticks, ticks[len(ticks)-1]+step)
	}
	return ticks
}

// timeStep returns a time between marks that gives about ten marks on the time axis.
func timeStep(span time.Duration) time.Duration {
	for _, minutes := range []time.Duration{1, 5, 15, 30, 60, 120, 180, 360, 720} {
		if step := minutes * time.Minute; span <= 10*step {
			return step
		}
	}
	const day = 24 * time.Hour
	return day * (span/(10*day) + 1)
}

// escapeXML escapes s for XML. It replaces characters that XML cannot represent.
func escapeXML(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a write to a strings.Builder never fails
	return b.String()
}
