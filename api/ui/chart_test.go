package ui

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/metric"
)

// The lines of a grid have round values, and there are two to five of them, zero included.
func TestAxisStep(t *testing.T) {
	for _, test := range []struct {
		top  float64
		unit metric.Unit
		want string
	}{
		{430e6, metric.Nanocores, "200m"}, {1e9, metric.Nanocores, "500m"}, {12.3e9, metric.Nanocores, "5"},
		{219 << 20, metric.Bytes, "64Mi"}, {512 << 20, metric.Bytes, "128Mi"}, {3, metric.Bytes, "1"},
		{1500, metric.BytesPerSecond, "512/s"}, {0.37, metric.Ratio, "10%"}, {0, metric.Count, "1"},
	} {
		step := axisStep(test.top, test.unit)
		if got := formatOf(test.unit, test.top)(step); got != test.want {
			t.Errorf("to %g %s: got steps of %s, want %s", test.top, test.unit, got, test.want)
		}
		if lines := math.Ceil(test.top / step); lines > 4 {
			t.Errorf("to %g %s: %g steps of %g, want at most 4", test.top, test.unit, lines, step)
		}
	}
}

func TestTimeTicks(t *testing.T) {
	for _, test := range []struct {
		span time.Duration
		want string
	}{
		{15 * time.Minute, "11:50 at 33.3%, 11:55 at 66.7%, 12:00 at 100%"},
		{time.Hour, "11:15 at 25%, 11:30 at 50%, 11:45 at 75%, 12:00 at 100%"},
		{24 * time.Hour, "16:00 at 16.7%, 20:00 at 33.3%, 00:00 at 50%, 04:00 at 66.7%, 08:00 at 83.3%, 12:00 at 100%"},
		{7 * 24 * time.Hour, "Dec 27 at 7.1%, Dec 28 at 21.4%, Dec 29 at 35.7%, Dec 30 at 50%, Dec 31 at 64.3%, Jan 1 at 78.6%, Jan 2 at 92.9%"},
	} {
		var got []string
		for _, tick := range timeTicks(noon.Add(-test.span), noon) {
			got = append(got, fmt.Sprintf("%s at %g%%", tick.Text, tick.At))
		}
		if got := strings.Join(got, ", "); got != test.want {
			t.Errorf("%s\n got: %s\nwant: %s", test.span, got, test.want)
		}
	}
}

// A column between two reads has the value that was served then. One in a gap has none.
func TestTimelineValues(t *testing.T) {
	for _, test := range []struct {
		points []float64
		want   string
	}{
		{[]float64{900, 1e9, 885, 2e9, 870, 3e9}, "1000m|1000m|2000m|2000m|3000m|3000m|3000m|3000m|3000m|3000m|3000m|3000m"},
		{[]float64{890, 1e9, 817, 2e9}, "|1000m||||||||||2000m"},
		{[]float64{850, 1e9, -10, 2e9}, "||||||1000m|||||"},
		{nil, "|||||||||||"},
	} {
		line := newTimeline(points(test.points...), noon, shortestSpan, chartWidth, time.Minute)
		all := strings.Split(line.values(humanize.Cores), "|")
		if len(all) != chartWidth {
			t.Errorf("%v: %d values, want %d", test.points, len(all), chartWidth)
		}
		if got := strings.Join(all[:12], "|"); got != test.want {
			t.Errorf("%v\n got: %s\nwant: %s", test.points, got, test.want)
		}
	}
}

// A limit far above the values is named and not drawn, and a sum of limits is neither.
func TestMarks(t *testing.T) {
	line := newTimeline(points(30, 100e6, 15, 200e6), noon, shortestSpan, chartWidth, time.Minute)
	var spec metric.Values
	spec.Set(metric.CPURequest, 400e6)
	spec.Set(metric.CPULimit, 2e9)
	c := newChart(metric.Container, metric.CPUUsageRate.Describe(), line, nil, &spec)
	if got, want := fmt.Sprint(c.Marks), "[{request 400m 0 false false} {limit 2000m -400 true true}]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	c = newChart(metric.Node, metric.CPUUsageRate.Describe(), line, nil, &spec)
	if got, want := fmt.Sprint(c.Marks), "[{requested by pods 400m 0 false false}]"; got != want {
		t.Errorf("a node: got %s, want %s", got, want)
	}
	if c.Name != "CPU usage" || c.Newest != "200m" {
		t.Errorf("got %q with %q", c.Name, c.Newest)
	}
}
