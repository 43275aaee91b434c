package resource

import (
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/kubelet/payload"
)

// duplicates has the samples and start times of an entity that has several lines in one family.
type duplicates struct {
	samples []int32          // in the form of subject.sample, in order of appearance
	starts  []int64          // in order of appearance; 0 if the value is not a time
	lines   [numValues]int32 // the number of lines of each family so far
}

// takeDuplicate stores a line about s if this family or an earlier one has a second line about s. A
// line without a usable value, or with a value and time that s has already, is none: it is not of
// another container.
func (p *Parser) takeDuplicate(s *subject, f *family, n payload.Number, t int64) {
	if f.value != start && (!isUsable(n) || p.isRepeated(s, f, n, t)) {
		return
	}
	if s.duplicates == 0 {
		p.startDuplicates(s)
	}
	d := &p.duplicates[s.duplicates-1]
	if f.value == start {
		ns, _ := n.Scaled(9)
		d.starts = append(d.starts, ns)
		return
	}
	k := int(d.lines[f.value])
	d.lines[f.value]++
	p.setValue(p.duplicateSample(s, d, f, k, t)-1, f, n, t)
}

// startDuplicates starts the duplicates of s, which so far has had at most one line of each family.
func (p *Parser) startDuplicates(s *subject) {
	// The memory of the last payload is reused.
	if len(p.duplicates) < cap(p.duplicates) {
		p.duplicates = p.duplicates[:len(p.duplicates)+1]
	} else {
		p.duplicates = append(p.duplicates, duplicates{})
	}
	s.duplicates = int32(len(p.duplicates))
	d := &p.duplicates[s.duplicates-1]
	*d = duplicates{samples: d.samples[:0], starts: d.starts[:0]}
	if s.sample != 0 {
		d.samples = append(d.samples, s.sample)
	}
	if s.values&(1<<start) != 0 {
		d.starts = append(d.starts, s.start)
	}
	for v := range numValues {
		d.lines[v] = int32(s.values >> v & 1)
	}
}

// duplicateSample returns the sample for the k-th line of family f about s, in the form of
// subject.sample. It is the k-th sample, with one exception: if a sample that has no value of this
// family has the time of the line, it is that sample. This matters if two containers have one name
// and one of them is missing from a family.
func (p *Parser) duplicateSample(s *subject, d *duplicates, f *family, k int, t int64) int32 {
	if len(d.samples) > 1 && t != 0 {
		for _, i := range d.samples {
			if i > 0 && !p.batch.Samples[i-1].Values.Has(f.id) && hasTime(&p.batch.Samples[i-1], t) {
				return i
			}
		}
	}
	for len(d.samples) <= k {
		i := p.addSample(f)
		d.samples = append(d.samples, i)
		if s.sample == 0 {
			s.sample = i
		}
	}
	return d.samples[k]
}

// isUsable reports whether a line has an amount: neither negative nor NaN.
func isUsable(n payload.Number) bool {
	v, ok := n.Value()
	return ok && v >= 0
}

// isRepeated reports whether the first sample of s has the value of the line, and its time.
func (p *Parser) isRepeated(s *subject, f *family, n payload.Number, t int64) bool {
	if s.sample <= 0 || t == 0 {
		return false
	}
	first := &p.batch.Samples[s.sample-1]
	v, ok := f.amount(n)
	before, known := first.Values.Get(f.id)
	return ok && known && before == v && first.Times[f.id.Describe().Group] == t
}

// hasTime reports whether a group of s was read at t.
func hasTime(s *metric.Sample, t int64) bool {
	for _, g := range s.Times {
		if g == t {
			return true
		}
	}
	return false
}
