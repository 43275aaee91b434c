package app

import (
	"fmt"
	"math"
	"time"

	"github.com/weir-metrics/weir/autoscaler/replay"
	"github.com/weir-metrics/weir/autoscaler/replay/chart"
)

// replayChart draws a report: the demand in pods that would use the target exactly,
// the replicas there were, and those under each specification.
func replayChart(r *replay.Report) *chart.Chart {
	last := r.Runs[len(r.Runs)-1]
	c := &chart.Chart{
		Title:    fmt.Sprintf("Replicas of %s %s", r.Namespace, r.Target),
		Subtitle: fmt.Sprintf("%s to %s UTC", r.From.UTC().Format("2006-01-02 15:04"), r.To.UTC().Format("2006-01-02 15:04")),
		From:     r.From, To: r.To, Unit: "pods",
	}
	for _, run := range r.Runs {
		t := run.Totals
		c.Subtitle += fmt.Sprintf(" · %s: %.1f pod-hours, %s above target", run.Name, t.PodHours, t.Above.Duration().Round(time.Second))
	}
	c.Series = append(c.Series, line("demand at the target of "+last.Name, chart.Area, last.Points, func(p *replay.Point) float64 { return p.Demand }))
	if last.Recorded != nil {
		c.Series = append(c.Series, line("recorded", chart.Past, last.Points, func(p *replay.Point) float64 { return float64(p.Recorded) }))
	}
	for _, run := range r.Runs {
		c.Series = append(c.Series, line(run.Name, chart.Step, run.Points, func(p *replay.Point) float64 { return float64(p.Desired) }))
	}
	for _, bound := range []struct {
		name  string
		value int32
	}{{"minReplicas", last.Min}, {"maxReplicas", last.Max}} {
		c.Series = append(c.Series, chart.Series{Name: fmt.Sprintf("%s %d", bound.name, bound.value), Style: chart.Bound, Points: []chart.Point{{At: r.From, Value: float64(bound.value)}}})
	}
	return c
}

// line is one number of each point; what is below zero is not known.
func line(name string, style chart.Style, points []replay.Point, value func(*replay.Point) float64) chart.Series {
	s := chart.Series{Name: name, Style: style, Points: make([]chart.Point, len(points))}
	for i := range points {
		v := value(&points[i])
		if v < 0 {
			v = math.NaN()
		}
		s.Points[i] = chart.Point{At: points[i].At, Value: v}
	}
	return s
}
