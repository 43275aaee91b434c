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
	"sync"
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
	scan  exposition.Scanner
	names names
	twins []twins // of this payload
	req   payload.Request
	batch *metric.Batch
	base  int // of this payload's samples in batch
	// moved says that the samples are not those of the last payload so far, and
	// bounded that there are fewer than the payload has.
	moved, bounded bool
}

// subject is an entity this node speaks of and what it said of it in this
// payload.
type subject struct {
	start int64
	// entity is its place among the names' entities.
	entity int32
	// sample is the index of its sample in the batch and one more; 0 if it has
	// none yet, and negative beyond the bound.
	sample int32
	// twins is its index in Parser.twins and one more, if a line came twice; or 0.
	twins int32
	// at and size are where in the payload its labels stand, with the blank behind them; size
	// is 0 if they have not come yet.
	at   int32
	size uint16
	// came has a bit for each value of which there was a line.
	came uint8
	// plain says that the entity's names stand in labels as they are.
	plain bool
}

// New returns a Parser that knows no names yet.
func New() *Parser { return Sharing(&sync.Pool{}) }

// Sharing returns a Parser that knows no names yet, and that shares with others the
// memory it needs while there is a payload in hand. rooms is theirs alone, and empty.
func Sharing(rooms *sync.Pool) *Parser { return &Parser{names: names{rooms: rooms}} }

// Parse appends the samples in body to b. The error, if any, is a
// *metric.ReadError: NodeBadPayload, and then nothing is appended, or
// NodeScrapeError, beside the samples. It sets b.Layout if b held nothing and
// the payload is whole.
//
// Nothing in b refers to body afterwards.
func (p *Parser) Parse(body []byte, req payload.Request, b *metric.Batch) error {
	p.req, p.batch, p.base = req, b, len(b.Samples)
	p.moved, p.bounded = false, false
	p.twins = p.twins[:0]
	p.names.begin(req.Node, body)
	defer p.names.end()
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
	case failed != "":
		err = payload.Unreadable(failed)
	default:
		if p.moved || len(b.Samples)-p.base != len(p.names.layout.Entities) {
			p.names.learn(b.Samples[p.base:], p.base)
		}
		if p.base == 0 && !p.bounded {
			b.Layout = p.names.layout
		}
	}
	return err
}

// lines reads all lines. It returns the family that says the kubelet failed, if
// one does, and whether there was any family it knows.
func (p *Parser) lines() (failed string, known bool) {
	var f *family
	for p.scan.Next() {
		if p.scan.Changed {
			i := familyOf(p.scan.Name)
			if i < 0 {
				f = nil
				// An unknown family is checked once, then skipped.
				if labels := p.scan.Labels(); labels != nil {
					p.scan.Advance(len(labels))
					p.scan.Value()
				}
				continue
			}
			known = true
			f = &families[i]
			p.names.rewind(i)
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
		n, t, ok := p.scan.Value()
		if ok && s != nil {
			p.line(s, f, n, t)
		}
	}
	return failed, known
}

// subject returns whom the present line is about and moves to its value. It is nil
// if that is nobody, or the line makes no sense.
func (p *Parser) subject(kind metric.Kind) *subject {
	// Fast path: the same lines in the same order as the last time.
	if s, n := p.names.guess(kind, p.scan.Rest()); n > 0 && p.scan.Plain(n) {
		p.scan.Advance(n)
		return s
	}
	// Slow path: find where the labels end and read them.
	labels := p.scan.Labels()
	if labels == nil {
		return nil
	}
	e, ok, valid := entityOf(kind, labels)
	if !valid {
		p.scan.Fail("not a list of labels")
		return nil
	}
	p.scan.Advance(len(labels))
	if !ok {
		return nil
	}
	e.Node = p.req.Node
	// No more names are kept than there can be samples and verdicts, and the node.
	s, ok := p.names.find(e, 2*p.req.Limit()+1)
	if !ok {
		p.bounded = true
	}
	return s
}

// line takes one line about s.
func (p *Parser) line(s *subject, f *family, n payload.Number, t int64) {
	bit := uint8(1) << f.value
	if s.came&bit != 0 || s.twins != 0 {
		p.again(s, f, n, t)
		return
	}
	s.came |= bit
	if f.value == start {
		s.start, _ = n.Scaled(9)
		return
	}
	if s.sample == 0 {
		s.sample = p.add(s, f)
	}
	p.set(s.sample-1, f, n, t)
}

// add appends a sample of s and returns its index and one more, or -1 beyond the
// bound.
func (p *Parser) add(s *subject, f *family) int32 {
	at := len(p.batch.Samples) - p.base
	e := p.names.entity(s)
	i := p.req.Add(p.batch, *e, f.id.Describe().Group)
	if i < 0 {
		p.bounded = true
		return -1
	}
	// Fast path: it is where it was. A twin's entity is in several places.
	if int(s.entity) != at && (s.twins == 0 || at >= len(p.names.layout.Entities) || p.names.layout.Entities[at] != *e) {
		p.moved = true
	}
	return i + 1
}

// set stores the value of a line in sample i, unless i is negative.
func (p *Parser) set(i int32, f *family, n payload.Number, t int64) {
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

// finish hands out the start times.
func (p *Parser) finish() {
	for i := range p.names.subjects {
		s := &p.names.subjects[i]
		if s.start > 0 && s.sample > 0 && s.twins == 0 {
			p.started(s.sample-1, s.start)
		}
	}
	for i := range p.twins {
		tw := &p.twins[i]
		if len(tw.starts) != len(tw.samples) {
			continue // whose they are is not known
		}
		for k, at := range tw.samples {
			if at > 0 && tw.starts[k] > 0 {
				p.started(at-1, tw.starts[k])
			}
		}
	}
}

func (p *Parser) started(i int32, start int64) {
	in := &p.batch.Samples[i].Instance
	in.Start, in.Origin = start, metric.StartReported
}

// Names returns how many names are remembered.
func (p *Parser) Names() int { return p.names.known }
