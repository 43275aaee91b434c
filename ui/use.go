package ui

import (
	"fmt"
	"iter"
	"math"
	"strconv"
	"time"

	"github.com/weir-metrics/weir/humanize"
	"github.com/weir-metrics/weir/metric"
)

// resourceUse is how much of one thing, CPU or memory, something uses.
type resourceUse struct {
	Text  string // "250m", "180Mi"; empty if there is no number
	Share string // "25%", of Of; empty if nobody says of how much
	Of    string // "of 1000m allocatable"
	Width int    // of the bar that shows Share: 0 to 100
	Level string // of the bar: "", "high" or "full"
	Stale bool   // the last known value: the last read brought none
	Line  trend
	// Request and Limit are what was asked for and allowed, where anyone says.
	Request, Limit string
}

// resource is CPU or memory: which metrics tell it, and how it is written.
type resource struct {
	name                               string
	group                              metric.Group
	used, request, limit               metric.ID
	allocatable, capacity, utilization metric.ID
	format                             func(float64) string
}

var resources = struct{ cpu, memory resource }{
	cpu: resource{
		"CPU", metric.CPU, metric.CPUUsageRate, metric.CPURequest, metric.CPULimit,
		metric.CPUNodeAllocatable, metric.CPUNodeCapacity, metric.CPUNodeUtilization, humanize.Cores,
	},
	memory: resource{
		"Memory", metric.Memory, metric.MemoryWorkingSet, metric.MemoryRequest, metric.MemoryLimit,
		metric.MemoryNodeAllocatable, metric.MemoryNodeCapacity, metric.MemoryNodeUtilization, humanize.Bytes,
	},
}

// value returns a metric of a sample that may be nil; negative if there is none,
// so that it comes after zero.
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

// usageOf returns how much of r a sample says is used, as a share of what limits it.
// The sample may be nil, and spec is what the API server says of the same thing,
// which may be nil too.
func (r *resource) usageOf(s *metric.Sample, spec *metric.Values) resourceUse {
	var u resourceUse
	used := value(s, r.used)
	if used >= 0 {
		u.Text = r.format(used)
		u.Stale = s.LastKnown&(1<<r.group) != 0
	}
	if v := valueOr(s, spec, r.request); v >= 0 {
		u.Request = r.format(v)
	}
	if v := valueOr(s, spec, r.limit); v >= 0 {
		u.Limit = r.format(v)
	}
	whole, of := r.limitOf(s, spec)
	if whole <= 0 {
		return u
	}
	u.Of = fmt.Sprintf(of, r.format(whole))
	if used >= 0 {
		u.setShare(used / whole)
	}
	switch {
	case used >= 0.9*whole:
		u.Level = "full"
	case used >= 0.75*whole:
		u.Level = "high"
	}
	return u
}

// setShare sets the share and the bar that shows it.
func (u *resourceUse) setShare(of float64) {
	u.Share = humanize.Percent(of)
	u.Width = int(math.Round(100 * min(of, 1)))
}

// shareOfNode makes u, which s tells, a share of what the node has, so that the cgroups
// of a node can be compared.
func (r *resource) shareOfNode(u *resourceUse, s, node *metric.Sample) {
	u.Share, u.Of, u.Level = "", "", ""
	if used, has := value(s, r.used), value(node, r.capacity); used >= 0 && has > 0 {
		u.Of = fmt.Sprintf("of %s capacity", r.format(has))
		u.setShare(used / has)
	}
}

// valueOr returns a metric as a sample has it, or else the API server; negative if
// neither does.
func valueOr(s *metric.Sample, spec *metric.Values, id metric.ID) float64 {
	if v := value(s, id); v >= 0 || spec == nil {
		return v
	}
	if v, ok := spec.Get(id); ok {
		return v
	}
	return -1
}

// limitOf returns what a share is of, and how to say so: of a node what it has for
// pods, or has; of others the limit, or what was requested.
func (r *resource) limitOf(s *metric.Sample, spec *metric.Values) (whole float64, of string) {
	for _, c := range [...]struct {
		id metric.ID
		of string
	}{
		{r.allocatable, "of %s allocatable"}, {r.capacity, "of %s capacity"},
		{r.limit, "of the limit of %s"}, {r.request, "of the request of %s"},
	} {
		if v := valueOr(s, spec, c.id); v > 0 {
			return v, c.of
		}
	}
	return 0, ""
}

// shareOf returns used over whole as a number to sort by; negative if unknown.
func (r *resource) shareOf(s *metric.Sample, spec *metric.Values) float64 {
	used := value(s, r.used)
	whole, _ := r.limitOf(s, spec)
	if used < 0 || whole <= 0 {
		return -1
	}
	return used / whole
}

// usageTrend returns what an entity used of r in the last fifteen minutes.
func (p *page) usageTrend(r *resource, e metric.Entity) trend {
	if p.opts.Points == nil || p.View == nil {
		return trend{}
	}
	now := p.Now
	points := p.opts.Points(e, r.used, now.Add(-lineTime), now.Add(time.Minute))
	return drawTrend(r.name, points, now, p.maxSampleAge(e.Node), r.format)
}

// maxSampleAge returns how old the last known value of a node may be.
// It is the rule by which numbers are served (processors/aggregate).
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

// usageAndTrends returns what a sample says is used of CPU and memory, with their lines.
func (p *page) usageAndTrends(e metric.Entity, s *metric.Sample, spec *metric.Values) (cpu, memory resourceUse) {
	if s != nil {
		e = s.Entity // which knows its node
	}
	cpu, memory = resources.cpu.usageOf(s, spec), resources.memory.usageOf(s, spec)
	cpu.Line, memory.Line = p.usageTrend(&resources.cpu, e), p.usageTrend(&resources.memory, e)
	return cpu, memory
}

// A line shows the last fifteen minutes in as many columns as a small picture has
// room for. Its lowest edge is zero, its highest the highest number in it.
const (
	lineTime    = 15 * time.Minute
	lineColumns = 60
	lineStep    = 2 // from one column to the next
	lineHeight  = 80
)

// trend is what is drawn of a metric over time. The zero line is none.
type trend struct {
	Path  string // of an SVG image of 120 by 80; empty if there were no numbers
	Title string // the same in words
}

// drawTrend draws the points of one metric up to now. Where they lie further apart than
// hold there was no number to be served between them, and the line breaks; format
// writes a number.
func drawTrend(name string, points iter.Seq2[time.Time, float64], now time.Time, hold time.Duration, format func(float64) string) trend {
	from := now.Add(-lineTime)
	type column struct {
		at, n int
		sum   float64
		moves bool // the first after a gap
	}
	var columns []column
	low, high, last := math.Inf(1), math.Inf(-1), 0.0
	var before time.Time
	var absent time.Duration
	for at, v := range points {
		if at.Before(from) || math.IsNaN(v) || math.IsInf(v, 0) {
			continue
		}
		low, high, last = min(low, v), max(high, v), v
		gap := !before.IsZero() && at.Sub(before) > hold
		if gap {
			absent += at.Sub(before)
		}
		// A node's clock may be ahead of ours.
		i := min(int(at.Sub(from)*lineColumns/lineTime), lineColumns)
		if n := len(columns); n == 0 || gap || columns[n-1].at != i {
			columns = append(columns, column{at: i, moves: gap || n == 0})
		}
		c := &columns[len(columns)-1]
		c.sum += v
		c.n++
		before = at
	}
	if len(columns) == 0 {
		return trend{Title: name + ": no number in the last " + humanize.Duration(lineTime)}
	}
	if tail := now.Sub(before); tail > hold {
		absent += tail
	}
	path := make([]byte, 0, 6*len(columns))
	for i, c := range columns {
		y := lineHeight - 2
		if high > 0 {
			// A line that lay on an edge would be cut in half.
			y = lineHeight - 2 - int(math.Round(c.sum/float64(c.n)/high*(lineHeight-4)))
		}
		command := byte('L')
		if c.moves {
			command = 'M'
		}
		path = append(path, command)
		path = strconv.AppendInt(path, int64(c.at*lineStep), 10)
		path = append(path, ' ')
		path = strconv.AppendInt(path, int64(y), 10)
		if c.moves && (i+1 == len(columns) || columns[i+1].moves) {
			path = append(path, "h0"...) // a dot
		}
	}
	title := fmt.Sprintf("%s in the last %s: lowest %s, highest %s, newest %s", name, humanize.Duration(lineTime), format(low), format(high), format(last))
	if absent > 0 {
		title += "; no number for " + humanize.Duration(absent)
	}
	return trend{string(path), title}
}
