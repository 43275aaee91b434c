package promclient

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"time"
)

// MaxPoints is how many points of a series Prometheus returns in one answer.
const MaxPoints = 11_000

// Point is a value at a time.
type Point struct {
	Time  time.Time
	Value float64
}

// TimeSeries is one series over time.
type TimeSeries struct {
	Labels map[string]string
	// Points are in order of time, on the requested steps. Steps without a value have no point.
	Points []Point
}

// RangeAnswer is the result of a query over time.
type RangeAnswer struct {
	Series   []TimeSeries
	Warnings []string
}

// QueryRange returns the result of a query from one time to another, both included, at every
// step. There may be at most MaxPoints steps. Errors are as those of Query.
func (c *Client) QueryRange(ctx context.Context, query string, from, to time.Time, step time.Duration) (*RangeAnswer, error) {
	if n := to.Sub(from)/step + 1; n > MaxPoints {
		return nil, fmt.Errorf("ask Prometheus: %d points are more than the %d it gives: take a longer step", n, MaxPoints)
	}
	status, body, err := c.post(ctx, "query_range", url.Values{
		"query": {query}, "start": {seconds(from)}, "end": {seconds(to)},
		"step": {strconv.FormatFloat(step.Seconds(), 'f', 3, 64)},
	})
	if err != nil {
		return nil, err
	}
	return decodeRange(status, body)
}

// decodeRange decodes the answer of QueryRange.
func decodeRange(status int, body []byte) (*RangeAnswer, error) {
	a, err := envelope(status, body)
	if err != nil {
		return nil, err
	}
	if a.Data.Type != "matrix" {
		return nil, fmt.Errorf("read Prometheus' answer: it is a %q and not a matrix", a.Data.Type)
	}
	var matrix []struct {
		Metric map[string]string `json:"metric"`
		Values []point           `json:"values"`
		// A histogram's: its points are not numbers.
		Histograms []json.RawMessage `json:"histograms"`
	}
	if err := json.Unmarshal(a.Data.Result, &matrix); err != nil {
		return nil, fmt.Errorf("read Prometheus' answer: %w", err)
	}
	to := &RangeAnswer{Warnings: a.Warnings}
	for _, s := range matrix {
		if len(s.Histograms) > 0 {
			return nil, fmt.Errorf("the query gives a histogram where it should give a number: put histogram_quantile(), histogram_count() or the like around it")
		}
		line := TimeSeries{Labels: s.Metric, Points: make([]Point, len(s.Values))}
		for i, p := range s.Values {
			line.Points[i] = Point{Time: p.time(), Value: p.value}
			if i > 0 && !line.Points[i].Time.After(line.Points[i-1].Time) {
				return nil, fmt.Errorf("read Prometheus' answer: its points are not in order of time")
			}
		}
		to.Series = append(to.Series, line)
	}
	return to, nil
}
