package history

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/weir-metrics/weir/internal/trace"
)

// pointsPerRequest is half of the number of points that Prometheus returns for a series at most, so
// that each answer is quick.
const pointsPerRequest = 5500

// Point is a value at a time.
type Point = trace.Reading

// TimeSeries is one series over time.
type TimeSeries struct {
	Labels map[string]string
	// Points are in order of time, at the requested steps. A step without a value has no point.
	Points []Point
}

// Step returns the time between points for a span: 15 s up to a day, 30 s up to three days, 60 s
// for longer spans.
func Step(span time.Duration) time.Duration {
	switch day := 24 * time.Hour; {
	case span <= day:
		return 15 * time.Second
	case span <= 3*day:
		return 30 * time.Second
	}
	return time.Minute
}

// Range returns the result of a query from one time to another, both included, at every step. It
// sends several requests, each small enough for the server. Series are sorted by their labels; each
// one is complete.
func (c *Client) Range(ctx context.Context, query string, from, to time.Time, step time.Duration) ([]TimeSeries, error) {
	if step <= 0 || to.Before(from) {
		return nil, fmt.Errorf("ask from %s to %s in steps of %s: the end is before the start, or the step is zero", from.Format(time.RFC3339), to.Format(time.RFC3339), step)
	}
	span := pointsPerRequest * step
	pieces := int(to.Sub(from)/span) + 1
	byLabels := map[string]*TimeSeries{}
	for i := range pieces {
		if c.options.Progress != nil {
			c.options.Progress(query, i+1, pieces)
		}
		start := from.Add(time.Duration(i) * span)
		end := start.Add(span - step)
		if end.After(to) {
			end = to
		}
		series, err := c.queryRange(ctx, query, start, end, step)
		if err != nil {
			return nil, fmt.Errorf("query %s from %s to %s: %w", query, start.Format(time.RFC3339), end.Format(time.RFC3339), err)
		}
		for _, s := range series {
			key := labelsKey(s.Labels)
			if whole := byLabels[key]; whole != nil {
				whole.Points = append(whole.Points, s.Points...)
			} else {
				byLabels[key] = &s
			}
		}
	}
	all := make([]TimeSeries, 0, len(byLabels))
	for _, key := range slices.Sorted(maps.Keys(byLabels)) {
		all = append(all, *byLabels[key])
	}
	return all, nil
}

// labelsKey returns a key that is unique for a set of labels.
func labelsKey(labels map[string]string) (key string) {
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		key += fmt.Sprintf("%q=%q,", name, labels[name])
	}
	return key
}

// queryRange sends one request of Range.
func (c *Client) queryRange(ctx context.Context, query string, from, to time.Time, step time.Duration) ([]TimeSeries, error) {
	status, body, err := c.post(ctx, "query_range", url.Values{
		"query": {query}, "start": {seconds(from)}, "end": {seconds(to)},
		"step": {strconv.FormatFloat(step.Seconds(), 'f', 3, 64)},
	})
	if err != nil {
		return nil, err
	}
	return decodeRange(status, body)
}

// decodeRange decodes an answer of query_range.
func decodeRange(status int, body []byte) ([]TimeSeries, error) {
	var data queryResult
	if _, err := envelope(status, body, &data); err != nil {
		return nil, err
	}
	if data.Type != "matrix" {
		return nil, fmt.Errorf("read Prometheus' answer: it is a %q and not a matrix", data.Type)
	}
	var matrix []struct {
		Metric map[string]string `json:"metric"`
		Values []point           `json:"values"`
		// Histograms is set for native histograms: their points are not numbers.
		Histograms []json.RawMessage `json:"histograms"`
	}
	if err := json.Unmarshal(data.Result, &matrix); err != nil {
		return nil, fmt.Errorf("read Prometheus' answer: %w", err)
	}
	var all []TimeSeries
	for _, s := range matrix {
		if len(s.Histograms) > 0 {
			return nil, fmt.Errorf("the query returns a histogram instead of a number: put histogram_quantile(), histogram_count() or the like around it")
		}
		line := TimeSeries{Labels: s.Metric, Points: make([]Point, len(s.Values))}
		for i, p := range s.Values {
			line.Points[i] = Point{At: p.time(), Value: p.value}
			if i > 0 && !line.Points[i].At.After(line.Points[i-1].At) {
				return nil, fmt.Errorf("read Prometheus' answer: its points are not in order of time")
			}
		}
		all = append(all, line)
	}
	return all, nil
}
