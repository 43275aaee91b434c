package ui

import (
	"fmt"
	"math"
	"time"

	"github.com/weir-metrics/weir/metric"
)

// use is how much of one thing, CPU or memory, something uses.
type use struct {
	Text  string // "250m", "180Mi"; empty if there is no number
	Share string // "25%", of Of; empty if nobody says of how much
	Of    string // "of 1000m allocatable"
	Width int    // of the bar that shows Share: 0 to 100
	Level string // of the bar: "", "high" or "full"
	Held  bool   // an earlier number, for the last read brought none
	Line  line
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
		metric.CPUNodeAllocatable, metric.CPUNodeCapacity, metric.CPUNodeUtilization, millicores,
	},
	memory: resource{
		"Memory", metric.Memory, metric.MemoryWorkingSet, metric.MemoryRequest, metric.MemoryLimit,
		metric.MemoryNodeAllocatable, metric.MemoryNodeCapacity, metric.MemoryNodeUtilization, binary,
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

// use returns how much of r a sample says is used, as a share of what limits it.
// The sample may be nil, and spec is what the API server says of the same thing,
// which may be nil too.
func (r *resource) use(s *metric.Sample, spec *metric.Values) use {
	var u use
	used := value(s, r.used)
	if used >= 0 {
		u.Text = r.format(used)
		u.Held = s.LastKnown&(1<<r.group) != 0
	}
	if v := either(s, spec, r.request); v >= 0 {
		u.Request = r.format(v)
	}
	if v := either(s, spec, r.limit); v >= 0 {
		u.Limit = r.format(v)
	}
	whole, of := r.whole(s, spec)
	if whole <= 0 {
		return u
	}
	u.Of = fmt.Sprintf(of, r.format(whole))
	if used >= 0 {
		u.share(used / whole)
	}
	switch {
	case used >= 0.9*whole:
		u.Level = "full"
	case used >= 0.75*whole:
		u.Level = "high"
	}
	return u
}

// share sets the share and the bar that shows it.
func (u *use) share(of float64) {
	u.Share = percent(of)
	u.Width = int(math.Round(100 * min(of, 1)))
}

// over makes u, which s tells, a share of what the node has, so that the cgroups
// of a node can be compared.
func (r *resource) over(u *use, s, node *metric.Sample) {
	u.Share, u.Of, u.Level = "", "", ""
	if used, has := value(s, r.used), value(node, r.capacity); used >= 0 && has > 0 {
		u.Of = fmt.Sprintf("of %s capacity", r.format(has))
		u.share(used / has)
	}
}

// either returns a metric as a sample has it, or else the API server; negative if
// neither does.
func either(s *metric.Sample, spec *metric.Values, id metric.ID) float64 {
	if v := value(s, id); v >= 0 || spec == nil {
		return v
	}
	if v, ok := spec.Get(id); ok {
		return v
	}
	return -1
}

// whole returns what a share is of, and how to say so: of a node what it has for
// pods, or has; of others the limit, or what was requested.
func (r *resource) whole(s *metric.Sample, spec *metric.Values) (whole float64, of string) {
	for _, c := range [...]struct {
		id metric.ID
		of string
	}{
		{r.allocatable, "of %s allocatable"}, {r.capacity, "of %s capacity"},
		{r.limit, "of the limit of %s"}, {r.request, "of the request of %s"},
	} {
		if v := either(s, spec, c.id); v > 0 {
			return v, c.of
		}
	}
	return 0, ""
}

// share returns used over whole as a number to sort by; negative if unknown.
func (r *resource) share(s *metric.Sample, spec *metric.Values) float64 {
	used := value(s, r.used)
	whole, _ := r.whole(s, spec)
	if used < 0 || whole <= 0 {
		return -1
	}
	return used / whole
}

// line returns what an entity used of r in the last fifteen minutes.
func (p *page) line(r *resource, e metric.Entity) line {
	if p.opts.Points == nil || p.View == nil {
		return line{}
	}
	now := p.Now
	points := p.opts.Points(e, r.used, now.Add(-lineTime), now.Add(time.Minute))
	return draw(r.name, points, now, p.hold(e.Node), r.format)
}

// hold returns how long a number of a node stands when reads bring no new one.
// It is the rule by which numbers are served (processors/aggregate).
func (p *page) hold(node metric.NodeName) time.Duration {
	if p.holds == nil {
		p.holds = map[metric.NodeName]time.Duration{}
		for i := range p.Sources {
			s := &p.Sources[i]
			p.holds[s.Node] = max(p.holds[s.Node], 3*s.Interval)
		}
	}
	return max(p.holds[node], p.holds[""], time.Minute)
}

// both returns what a sample says is used of CPU and memory, with their lines.
func (p *page) both(e metric.Entity, s *metric.Sample, spec *metric.Values) (cpu, memory use) {
	if s != nil {
		e = s.Entity // which knows its node
	}
	cpu, memory = resources.cpu.use(s, spec), resources.memory.use(s, spec)
	cpu.Line, memory.Line = p.line(&resources.cpu, e), p.line(&resources.memory, e)
	return cpu, memory
}
