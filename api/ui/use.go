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
}

// resource is CPU or memory: its metrics and its format.
type resource struct {
	name                  string
	group                 metric.Group
	used, request, limit  metric.ID
	allocatable, capacity metric.ID
	format                func(float64) string
}

var resources = struct{ cpu, memory resource }{
	resource{
		"CPU", metric.CPU, metric.CPUUsageRate, metric.CPURequest, metric.CPULimit,
		metric.CPUNodeAllocatable, metric.CPUNodeCapacity, humanize.Cores,
	},
	resource{
		"Memory", metric.Memory, metric.MemoryWorkingSet, metric.MemoryRequest, metric.MemoryLimit,
		metric.MemoryNodeAllocatable, metric.MemoryNodeCapacity, humanize.Bytes,
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
	whole, sentence := r.limitOf(s, spec)
	if whole <= 0 {
		return u
	}
	u.Of = fmt.Sprintf(sentence, r.format(whole))
	if used >= 0 {
		u.setShare(used / whole)
	}
	switch {
	case sentence == ofRequest: // using more than a request is normal
	case used >= 0.9*whole:
		u.Level = "full"
	case used >= 0.75*whole:
		u.Level = "high"
	}
	return u
}

// setShare sets the share and its bar.
func (u *resourceUse) setShare(share float64) {
	u.Share = humanize.Percent(share)
	u.Width = int(math.Round(100 * min(share, 1)))
}

// compareWith sets u, the use in s, as a share of whole. description has %s in the place
// of the whole. If whole is not positive, u has no share.
func (r *resource) compareWith(u *resourceUse, s *metric.Sample, whole float64, description string) {
	u.Share, u.Of, u.Level = "", "", ""
	if used := value(s, r.used); used >= 0 && whole > 0 {
		u.Of = fmt.Sprintf(description, r.format(whole))
		u.setShare(used / whole)
	}
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

// usageTrend returns the line of the use of r in the last fifteen minutes. scaleTrends draws it.
func (p *page) usageTrend(r *resource, e metric.Entity) trend {
	if p.opts.Points == nil || p.View == nil {
		return trend{}
	}
	points := p.opts.Points(e, r.used, p.Now.Add(-shortestSpan), p.Now.Add(time.Minute))
	line := newTimeline(points, p.Now, shortestSpan, 60, p.maxSampleAge(e.Node))
	return trend{Title: line.title(r.name, r.format), line: line}
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
