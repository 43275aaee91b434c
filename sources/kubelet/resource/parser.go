// Package resource turns a kubelet's /metrics/resource into samples: CPU time,
// working set and swap of the node, of pods and of containers, each with the
// node's time in milliseconds.
//
// The endpoint names neither pod UIDs nor container IDs. If a node has two
// containers of one name it writes two lines with the same labels; both are
// kept, as two samples of one entity, for package identity to judge. The start
// times have no time of their own, so of two equal lines a kubelet writes one:
// where an entity has not as many starts as samples, none of them gets a start.
package resource

import (
	"time"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/kubelet/exposition"
	"github.com/weir-metrics/weir/sources/kubelet/payload"
)

// Clock is the resolution of the endpoint's timestamps.
const Clock = time.Millisecond

// Parser turns payloads of one node into samples. It remembers the node's
// names, so that an unchanged payload costs no allocation. It must not be used by two
// goroutines at once.
type Parser struct {
	scan    exposition.Scanner
	names   [metric.NumKinds]payload.Names[subject]
	touched []*subject
	req     payload.Request
	batch   *metric.Batch
	base    int // of this payload's samples in batch
}

// subject is an entity this node speaks of and what it said of it in this
// payload.
type subject struct {
	entity  metric.Entity
	ignored bool              // its labels name nobody
	seen    bool              // in this payload
	samples []int32           // indexes in batch, in order of appearance; -1 beyond the bound
	starts  []int64           // in order of appearance
	lines   [numValues]uint16 // how many lines of each family so far
}

// New returns a Parser that knows no names yet.
func New() *Parser { return &Parser{} }

// Parse appends the samples in body to b. The error, if any, is a
// *metric.ReadError: NodeBadPayload, and then nothing is appended, or
// NodeScrapeError, beside the samples.
//
// Nothing in b refers to body afterwards.
func (p *Parser) Parse(body []byte, req payload.Request, b *metric.Batch) error {
	p.req, p.batch, p.base = req, b, len(b.Samples)
	p.touched = p.touched[:0]
	for k := range p.names {
		p.names[k].Max = 2 * req.Limit()
		p.names[k].Begin()
	}
	p.scan.Reset(body)
	failed, known := p.lines()
	p.finish()
	p.batch = nil
	err := p.scan.Err()
	if err == nil && !known {
		err = payload.Bad(body, 0, "no family of /metrics/resource")
	}
	p.scan.Reset(nil)
	switch {
	case err != nil:
		b.Samples = b.Samples[:p.base]
		return err
	case failed != "":
		return payload.Unreadable(failed)
	}
	return nil
}

// lines reads all lines. It returns the family that says the kubelet failed, if
// one does, and whether there was any family it knows.
func (p *Parser) lines() (failed string, known bool) {
	var f *family
	for p.scan.Next() {
		if p.scan.Changed {
			f = familyOf(p.scan.Name)
			if f == nil {
				// An unknown family is checked once, then skipped.
				if labels := p.scan.Labels(); labels != nil {
					p.scan.Advance(len(labels))
					p.scan.Value()
				}
				continue
			}
			known = true
		} else if f == nil {
			p.scan.Skip()
			continue
		}
		if f.value == failure {
			labels := p.scan.Labels()
			p.scan.Advance(len(labels))
			if n, _, ok := p.scan.Value(); ok && n.Mantissa != 0 {
				failed = f.name
			}
			continue
		}
		s := p.subject(f.kind)
		if s == nil {
			continue
		}
		n, t, ok := p.scan.Value()
		if ok && !s.ignored {
			p.line(s, f, n, t)
		}
	}
	return failed, known
}

// subject returns whom the present line is about and moves to its value.
func (p *Parser) subject(kind metric.Kind) *subject {
	names := &p.names[kind]
	// Fast path: the same lines in the same order as the last time.
	name := names.Guess(p.scan.Rest())
	if name == nil || !p.scan.Plain(len(name.Key())) {
		// Slow path: find where the labels end.
		labels := p.scan.Labels()
		if labels == nil {
			return nil
		}
		var found bool
		if name, found = names.Find(labels); !found {
			e, ok, valid := entityOf(kind, labels)
			if !valid {
				names.Forget(name)
				p.scan.Fail("not a list of labels")
				return nil
			}
			name.Data = subject{entity: e, ignored: !ok}
		}
	}
	p.scan.Advance(len(name.Key()))
	s := &name.Data
	if !s.seen {
		s.seen = true
		s.entity.Node = p.req.Node
		s.samples, s.starts = s.samples[:0], s.starts[:0]
		s.lines = [numValues]uint16{}
		p.touched = append(p.touched, s)
	}
	return s
}

// line takes one line about s.
func (p *Parser) line(s *subject, f *family, n payload.Number, t int64) {
	if f.value == start {
		ns, ok := n.Scaled(9)
		if !ok {
			ns = 0
		}
		s.starts = append(s.starts, ns)
		return
	}
	k := int(s.lines[f.value])
	s.lines[f.value]++
	i := p.sample(s, f, k, t)
	if i < 0 {
		return
	}
	var v float64
	var ok bool
	if f.scale != 0 {
		var whole int64
		whole, ok = n.Scaled(f.scale)
		v = float64(whole)
	} else {
		v, ok = n.Value()
	}
	if ok {
		p.req.Set(&p.batch.Samples[i], f.id, v, t)
	}
}

// sample returns the index of the sample that the k-th line of family f about
// s belongs to, or -1 beyond the bound. That is the k-th sample; but if one that
// still lacks the family was taken at this line's very time, it is that one:
// of two containers of one name one may be missing from a family.
func (p *Parser) sample(s *subject, f *family, k int, t int64) int32 {
	if len(s.samples) > 1 && t != 0 {
		for _, i := range s.samples {
			if i >= 0 && !p.batch.Samples[i].Values.Has(f.id) && timed(&p.batch.Samples[i], t) {
				return i
			}
		}
	}
	for len(s.samples) <= k {
		s.samples = append(s.samples, p.req.Add(p.batch, s.entity, f.id.Describe().Group))
	}
	return s.samples[k]
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

// finish hands out the start times and forgets the batch.
func (p *Parser) finish() {
	for _, s := range p.touched {
		s.seen = false
		if len(s.starts) != len(s.samples) {
			continue // whose they are is not known
		}
		for k, i := range s.samples {
			if i >= 0 && s.starts[k] > 0 {
				in := &p.batch.Samples[i].Instance
				in.Start, in.Origin = s.starts[k], metric.StartReported
			}
		}
	}
}

// Names returns how many names are remembered.
func (p *Parser) Names() (n int) {
	for k := range p.names {
		n += p.names[k].Len()
	}
	return n
}
