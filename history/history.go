// Package history looks further back than weir's memory: it asks a
// Prometheus-compatible server for days and weeks, in pieces of a size that the
// server answers.
//
// weir builds no database of its own. What is asked, and what the answers mean, is
// the caller's affair.
package history

import (
	"context"
	"fmt"
	"sort"
	"strings"
	"time"

	"github.com/weir-metrics/weir/history/promclient"
)

// pointsPerRequest is fewer than the server's maximum, so that each answer is quick.
const pointsPerRequest = promclient.MaxPoints / 2

// Options name the server.
type Options struct {
	// Client sends the queries. Required.
	Client *promclient.Client
	// Progress, if not nil, is called before each request with its number and the number of all.
	Progress func(query string, piece, of int)
}

// History queries times of any length. It is safe for concurrent use if Progress is.
type History struct{ options Options }

// New returns a history.
func New(o Options) *History { return &History{o} }

// Step returns the distance of points for a span: 15 s up to a day, 30 s up to three days, 60 s
// beyond.
func Step(span time.Duration) time.Duration {
	switch day := 24 * time.Hour; {
	case span <= day:
		return 15 * time.Second
	case span <= 3*day:
		return 30 * time.Second
	}
	return time.Minute
}

// Now returns the result of a query at a time.
func (h *History) Now(ctx context.Context, query string, at time.Time) (*promclient.Answer, error) {
	return h.options.Client.Query(ctx, query, at)
}

// Range returns the result of a query from one time to another, both included, at every step.
// Series are sorted by their labels, each whole.
func (h *History) Range(ctx context.Context, query string, from, to time.Time, step time.Duration) ([]promclient.TimeSeries, error) {
	if step <= 0 || to.Before(from) {
		return nil, fmt.Errorf("ask from %s to %s in steps of %s: there is no such time", from.Format(time.RFC3339), to.Format(time.RFC3339), step)
	}
	span := pointsPerRequest * step
	pieces := int(to.Sub(from)/span) + 1
	byLabels := map[string]*promclient.TimeSeries{}
	for i := range pieces {
		if h.options.Progress != nil {
			h.options.Progress(query, i+1, pieces)
		}
		start := from.Add(time.Duration(i) * span)
		end := start.Add(span - step)
		if end.After(to) {
			end = to
		}
		answer, err := h.options.Client.QueryRange(ctx, query, start, end, step)
		if err != nil {
			return nil, fmt.Errorf("query %s from %s to %s: %w", query, start.Format(time.RFC3339), end.Format(time.RFC3339), err)
		}
		for _, line := range answer.Series {
			k := labelsKey(line.Labels)
			if whole := byLabels[k]; whole != nil {
				whole.Points = append(whole.Points, line.Points...)
			} else {
				byLabels[k] = &line
			}
		}
	}
	keys := make([]string, 0, len(byLabels))
	for k := range byLabels {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	lines := make([]promclient.TimeSeries, len(keys))
	for i, k := range keys {
		lines[i] = *byLabels[k]
	}
	return lines, nil
}

// labelsKey returns a string that is unique for a set of labels.
func labelsKey(labels map[string]string) string {
	pairs := make([]string, 0, len(labels))
	for name, value := range labels {
		pairs = append(pairs, fmt.Sprintf("%q=%q", name, value))
	}
	sort.Strings(pairs)
	return strings.Join(pairs, ",")
}
