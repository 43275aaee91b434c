//go:build linux

package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// curve has the measurements at one resolution, and the lines through them.
type curve struct {
	Resolution time.Duration `json:"resolution"`
	Points     []point       `json:"points"`
	Fits       *fits         `json:"fits,omitempty"` // nil if there are too few points
	nodes      []int         // the numbers of nodes to measure
}

// parseCurve parses RESOLUTION:N,N,... such as 15s:100,1000.
func parseCurve(text string) (c curve, err error) {
	resolution, numbers, ok := strings.Cut(text, ":")
	if c.Resolution, err = time.ParseDuration(resolution); !ok || err != nil || c.Resolution < time.Second {
		return c, fmt.Errorf("curve %q: want a time from 1s and numbers of nodes, as in 15s:100,1000", text)
	}
	for number := range strings.SplitSeq(numbers, ",") {
		n, err := strconv.Atoi(number)
		if err != nil || n < 1 {
			return c, fmt.Errorf("curve %q: want numbers of nodes from 1, separated by commas", text)
		}
		c.nodes = append(c.nodes, n)
	}
	return c, nil
}

// measure measures the curve's points, and prints each as soon as it is
// measured.
func (c *curve) measure(ctx context.Context, p plan) error {
	if p.faults {
		for _, n := range c.nodes {
			if err := measureFaults(ctx, p, c.Resolution, n); err != nil {
				return fmt.Errorf("measure %d nodes: %w", n, err)
			}
		}
		return nil
	}
	if p.sending {
		return measureSenders(ctx, p, c.Resolution, c.nodes[len(c.nodes)-1])
	}
	fmt.Print(c.title(p) + header)
	for _, n := range c.nodes {
		began := time.Now()
		got, err := measure(ctx, p, c.Resolution, n)
		if err != nil {
			return fmt.Errorf("measure %d nodes: %w", n, err)
		}
		got.Took = time.Since(began)
		c.Points = append(c.Points, got)
		fmt.Print(got.row())
	}
	if f, ok := fitAll(c.Points); ok {
		c.Fits = &f
		fmt.Print("\n" + f.String())
	}
	fmt.Println()
	return nil
}

// title describes the curve.
func (c *curve) title(p plan) string {
	_, window := p.times(c.Resolution)
	over := "TLS"
	if p.plain {
		over = "plain HTTP"
	}
	return fmt.Sprintf("Every %v over %s: %d pods on a node, %d containers in a pod, churn %s; measured for %v.\n\n",
		c.Resolution, over, p.pods, p.containers, p.churn, window)
}

// text returns the curve in Markdown.
func (c *curve) text(p plan) string {
	var b strings.Builder
	b.WriteString(c.title(p) + header)
	for _, one := range c.Points {
		b.WriteString(one.row())
	}
	if c.Fits != nil {
		b.WriteString("\n" + c.Fits.String())
	}
	return b.String()
}
