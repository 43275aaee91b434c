package rate

import (
	"math"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/metric/run"
)

// isSameInstance decides whether sample is of the instance that t follows. An ID or inode that
// both have decides, whatever the starts are; but a container with two cgroups has two counters.
// Without one, a start after the last reading begins a new instance, unless the counter is too
// large for so short a life, or the start lay after its own reading before: then the start is
// wrong, as a cgroup's modification time often is.
func (ca *Calculator) isSameInstance(t *track, sample *metric.Sample, b *metric.Batch) bool {
	p, c := &t.instance, &sample.Instance
	switch {
	case p.Inode != 0 && c.Inode != 0:
		return p.Inode == c.Inode && p.Path == c.Path
	case p.ID != "" && c.ID != "":
		return p.ID == c.ID && (p.Line == c.Line || !isOtherPath(p, c))
	case p.UID != "" && c.UID != "" && p.UID != c.UID:
		return false
	case p.Line != 0 && c.Line != 0 && p.Line != c.Line && !t.resumes(sample):
		return false
	}
	return !ca.startsAnew(t, sample, b)
}

// startsAnew reports whether the start of sample shows that it is of another instance than t: it is
// after the last reading, and the counter fell or fits the time since that start.
func (ca *Calculator) startsAnew(t *track, sample *metric.Sample, b *metric.Batch) bool {
	p, c := &t.instance, &sample.Instance
	sr := &t.groups[metric.CPU].series
	if c.Start == 0 || sr.n == 0 {
		return false
	}
	prev := sr.last()
	if c.Start <= prev.time || p.Start > prev.time && run.AssignmentDistance(p.Start, c.Start) <= int64(run.Cut) {
		return false
	}
	cpu, ok := sample.Values.Get(metric.CPUUsage)
	if !ok || math.IsNaN(prev.counters[0]) || cpu < prev.counters[0] {
		return true
	}
	// The start and the reading may be of one second, or cut to it.
	read := sample.Times[metric.CPU] + int64(b.Resolution+run.CounterLag)
	if run.IsCut(c.Start) {
		read += int64(run.Cut)
	}
	return !run.CoresAllow(cpu, ca.cores.capacity, read).EndsBefore(c.Start)
}

// isOtherPath reports whether two instances have different cgroup paths.
func isOtherPath(a, b *metric.Instance) bool {
	return a.Path != "" && b.Path != "" && a.Path != b.Path
}

// resumes reports whether sample continues the instance of t although identity gave it a new
// line: the start and path are the same and the counter did not fall. Identity forgot the line
// because it was not reported for a long time.
func (t *track) resumes(sample *metric.Sample) bool {
	last, ok := t.last.get(metric.CPUUsage)
	in, reported := sample.Values.Get(metric.CPUUsage)
	return ok && reported && in >= last && t.instance.Start != 0 && t.instance.Start == sample.Instance.Start && !isOtherPath(&t.instance, &sample.Instance)
}

// readingOf returns a sample's first counter of group g, as evidence of a verdict.
func readingOf(g metric.Group, sample *metric.Sample, at int64) metric.CounterReading {
	var value float64
	if list := counters[g]; len(list) > 0 {
		value, _ = sample.Values.Get(list[0].counter)
	}
	i := &sample.Instance
	return metric.CounterReading{Time: at, Start: i.Start, Value: value, UID: i.UID, ID: i.ID, Path: i.Path}
}
