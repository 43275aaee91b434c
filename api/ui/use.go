package ui

import (
	"fmt"
	"math"
	"time"

	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/metric"
)

// resourceUse is the use of CPU or memory as the page shows it.
type resourceUse struct {
	Text  string // "250m", "180Mi"; empty if there is no number
	Share string // "25%" of Of; empty if the whole is unknown
	Of    string // "of 1000m allocatable"
	Width int    // width of the bar of Share: 0 to 100
	Level string // level of the bar: "", "high" or "full"
	Stale bool   // a last known value
	Line  trend
	// Request and Limit are empty if unknown.
	Request, Limit string

	// The values that are written, negative if unknown, and the description of the whole with %s in its place.
	used, request, limit, whole float64
	description                 string
}

// resource is CPU or memory: its metrics and its format.
type resource struct {
	name                  string
	group                 metric.Group
	used, request, limit  metric.ID
	allocatable, capacity metric.ID
	// formatLike returns the format of values that stand together, of which largest is the largest.
	formatLike func(largest float64) func(float64) string
}

var resources = struct{ cpu, memory resource }{
	resource{
		"CPU", metric.CPU, metric.CPUUsageRate, metric.CPURequest, metric.CPULimit,
		metric.CPUNodeAllocatable, metric.CPUNodeCapacity, humanize.CoresLike,
	},
	resource{
		"Memory", metric.Memory, metric.MemoryWorkingSet, metric.MemoryRequest, metric.MemoryLimit,
		metric.MemoryNodeAllocatable, metric.MemoryNodeCapacity, func(float64) func(float64) string { return humanize.Bytes },
	},
}

// value returns a metric of a sample, or -1 if there is none or the sample is nil, so that the item
// sorts after zero.
func value(s *metric.Sample, id metric.ID) float64 {
	if s == nil {
		return -1
	}
	v, ok := s.Values.Get(id)
	if !ok || math.IsNaN(v) {
		return -1
	}
	return v
}

// usageOf returns the use of r in a sample, as a share of its limit. The sample may be nil.
// spec has the limits from the API server and may be nil.
func (r *resource) usageOf(s *metric.Sample, spec *metric.Values) resourceUse {
	u := resourceUse{used: value(s, r.used), request: valueOr(s, spec, r.request), limit: valueOr(s, spec, r.limit)}
	u.Stale = u.used >= 0 && s.LastKnown&(1<<r.group) != 0
	u.whole, u.description = r.limitOf(s, spec)
	switch {
	case u.whole <= 0 || u.description == ofRequest: // using more than a request is normal
	case u.used >= 0.9*u.whole:
		u.Level = "full"
	case u.used >= 0.75*u.whole:
		u.Level = "high"
	}
	r.write(&u)
	return u
}

// write writes the values of a use that stands alone, in one unit.
func (r *resource) write(u *resourceUse) { u.write(r.formatLike(max(u.used, u.whole))) }

// write writes the values, the share and its bar.
func (u *resourceUse) write(format func(float64) string) {
	text := func(v float64) string {
		if v < 0 {
			return ""
		}
		return format(v)
	}
	u.Text, u.Request, u.Limit, u.Of, u.Share = text(u.used), text(u.request), text(u.limit), "", ""
	if u.whole <= 0 {
		return
	}
	u.Of = fmt.Sprintf(u.description, format(u.whole))
	if u.used >= 0 {
		u.Share = humanize.Percent(u.used / u.whole)
		u.Width = int(math.Round(100 * min(u.used/u.whole, 1)))
	}
}

// sumOf returns the use of several objects together, as a share of whole if that is positive. used is
// negative if it is unknown.
func (r *resource) sumOf(used, whole float64, description string) resourceUse {
	u := resourceUse{used: used, request: -1, limit: -1, whole: whole, description: description}
	r.write(&u)
	return u
}

// writeColumn writes the values and lines of one column of a table: the values in one unit, the lines with
// one scale. It returns the upper end of the scale, which is empty if all lines are zero.
func (r *resource) writeColumn(uses []*resourceUse) (scale string) {
	var largest, high float64
	for _, u := range uses {
		if u.Line.line != nil {
			high = max(high, u.Line.line.high)
		}
		largest = max(largest, u.used, u.request, u.limit, high)
	}
	format := r.formatLike(largest)
	for _, u := range uses {
		u.write(format)
		u.Line.draw(r.name, format, high)
	}
	if high > 0 {
		scale = format(high)
	}
	return scale
}

// compareWith makes u a share of whole. description has %s in the place of the whole. If whole is not
// positive, u has no share.
func (r *resource) compareWith(u *resourceUse, whole float64, description string) {
	u.whole, u.description, u.Level = whole, description, ""
	r.write(u)
}

// valueOr returns a metric of a sample, or else of spec, or -1 if neither has it.
func valueOr(s *metric.Sample, spec *metric.Values, id metric.ID) float64 {
	if v := value(s, id); v >= 0 || spec == nil {
		return v
	}
	if v, ok := spec.Get(id); ok {
		return v
	}
	return -1
}

const ofRequest = "of the request of %s"

// limitOf returns the whole of a share and its description. For a node it is the allocatable amount
// or the capacity, otherwise the limit or the request.
func (r *resource) limitOf(s *metric.Sample, spec *metric.Values) (whole float64, description string) {
	for _, c := range [...]struct {
		id          metric.ID
		description string
	}{
		{r.allocatable, "of %s allocatable"}, {r.capacity, "of %s capacity"},
		{r.limit, "of the limit of %s"}, {r.request, ofRequest},
	} {
		if v := valueOr(s, spec, c.id); v > 0 {
			return v, c.description
		}
	}
	return 0, ""
}

// shareOf returns used divided by whole, for sorting. It is negative if unknown.
func (r *resource) shareOf(s *metric.Sample, spec *metric.Values) float64 {
	used := value(s, r.used)
	whole, _ := r.limitOf(s, spec)
	if used < 0 || whole <= 0 {
		return -1
	}
	return used / whole
}

// usageTrend returns the line of the use of r in the last fifteen minutes. writeColumn draws it.
func (p *page) usageTrend(r *resource, e metric.Entity) trend {
	if p.opts.Points == nil || p.View == nil {
		return trend{}
	}
	points := p.opts.Points(e, r.used, p.Now.Add(-shortestSpan), p.Now.Add(time.Minute))
	return trend{line: newTimeline(points, p.Now, shortestSpan, 60, p.maxSampleAge(e.Node))}
}

// maxSampleAge returns how old the last known value of a node may be. Package
// processors/aggregate has the same rule.
func (p *page) maxSampleAge(node metric.NodeName) time.Duration {
	if p.sampleAges == nil {
		p.sampleAges = map[metric.NodeName]time.Duration{}
		for i := range p.Sources {
			s := &p.Sources[i]
			p.sampleAges[s.Node] = max(p.sampleAges[s.Node], 3*s.Interval)
		}
	}
	return max(p.sampleAges[node], p.sampleAges[""], time.Minute)
}

// usageAndTrends returns the use of CPU and memory in a sample, with their lines.
func (p *page) usageAndTrends(e metric.Entity, s *metric.Sample, spec *metric.Values) (cpu, memory resourceUse) {
	if s != nil {
		e = s.Entity // the sample has the node
	}
	cpu, memory = resources.cpu.usageOf(s, spec), resources.memory.usageOf(s, spec)
	cpu.Line, memory.Line = p.usageTrend(&resources.cpu, e), p.usageTrend(&resources.memory, e)
	return cpu, memory
}
