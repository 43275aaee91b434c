package resource

import (
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/kubelet/payload"
)

// twins is what a payload says of an entity of which a family has several lines.
type twins struct {
	samples []int32          // as subject.sample, in order of appearance
	starts  []int64          // in order of appearance; 0 for one that is no time
	lines   [numValues]int32 // how many lines of each family so far
}

// again takes a line about s, which has had one of its family before, or of another
// family twice.
func (p *Parser) again(s *subject, f *family, n payload.Number, t int64) {
	if s.twins == 0 {
		p.split(s)
	}
	tw := &p.twins[s.twins-1]
	if f.value == start {
		ns, _ := n.Scaled(9)
		tw.starts = append(tw.starts, ns)
		return
	}
	k := int(tw.lines[f.value])
	tw.lines[f.value]++
	p.set(p.twin(s, tw, f, k, t)-1, f, n, t)
}

// split makes twins of s, of which there was one so far.
func (p *Parser) split(s *subject) {
	// The memory of an earlier payload's is used again.
	if len(p.twins) < cap(p.twins) {
		p.twins = p.twins[:len(p.twins)+1]
	} else {
		p.twins = append(p.twins, twins{})
	}
	s.twins = int32(len(p.twins))
	tw := &p.twins[s.twins-1]
	*tw = twins{samples: tw.samples[:0], starts: tw.starts[:0]}
	if s.sample != 0 {
		tw.samples = append(tw.samples, s.sample)
	}
	if s.came&(1<<start) != 0 {
		tw.starts = append(tw.starts, s.start)
	}
	for v := range numValues {
		tw.lines[v] = int32(s.came >> v & 1)
	}
}

// twin returns the sample that the k-th line of family f about s belongs to, as
// subject.sample. That is the k-th sample; but if one that still lacks the family
// was taken at this line's very time, it is that one: of two containers of one name
// one may be missing from a family.
func (p *Parser) twin(s *subject, tw *twins, f *family, k int, t int64) int32 {
	if len(tw.samples) > 1 && t != 0 {
		for _, i := range tw.samples {
			if i > 0 && !p.batch.Samples[i-1].Values.Has(f.id) && timed(&p.batch.Samples[i-1], t) {
				return i
			}
		}
	}
	for len(tw.samples) <= k {
		i := p.add(s, f)
		tw.samples = append(tw.samples, i)
		if s.sample == 0 {
			s.sample = i
		}
	}
	return tw.samples[k]
}

// timed reports whether any group of s was read at t.
func timed(s *metric.Sample, t int64) bool {
	for _, g := range s.Times {
		if g == t {
			return true
		}
	}
	return false
}
