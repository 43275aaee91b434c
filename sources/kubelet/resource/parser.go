// Package resource turns a kubelet's /metrics/resource into samples: CPU time,
// working set and swap of the node, of pods and of containers, each with the
// node's time in milliseconds.
//
// The endpoint has neither pod UIDs nor container IDs. If two containers have the same name, it has
// two lines with the same labels; both become samples of one entity, and package identity judges
// them. Start times have no timestamp, so the kubelet writes two equal lines only once: if an
// entity has fewer start times than samples, no sample gets a start time.
//
//	parser.go       lines → samples
//	family.go       the table of families
//	subjectcache.go which entity the labels of a line name, without allocating
//	duplicates.go   entities with several lines in one family
package resource

import (
	"sync"
	"time"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/kubelet/payload"
)

// Clock is the resolution of the endpoint's timestamps.
const Clock = time.Millisecond

// Parser turns payloads of one node into samples. It keeps the names of the node, so that an
// unchanged payload allocates nothing. Only one goroutine may use it at a time.
type Parser struct {
	scan       payload.FamilyScanner[family]
	names      subjectCache
	duplicates []duplicates // of this payload
	req        payload.Request
	batch      *metric.Batch
}

// subject is an entity of the node, with what this payload reports about it.
type subject struct {
	start int64
	// sample is 1 + the index of its sample in the batch. It is 0 if it has no sample, and -1 if the
	// bound on samples was reached.
	sample int32
	// duplicates is 1 + its index in Parser.duplicates; 0 if no family has two lines about it.
	duplicates int32
	// body[labelsAt:][:labelsSize] are its labels with the blank after them. labelsSize is 0 before
	// its first line.
	labelsAt   int32
	labelsSize uint16
	// values has a bit for each value that had a line.
	values uint8
}

// New returns a Parser that knows no names yet.
func New() *Parser { return NewWithPool(&sync.Pool{}) }

// NewWithPool returns a Parser that knows no names yet. It takes the memory that it parses a
// payload with from pool. Several parsers can share a pool; nothing else may use it.
func NewWithPool(pool *sync.Pool) *Parser { return &Parser{names: subjectCache{pool: pool}} }

// Parse appends the samples in body to b. The error, if any, is a *metric.ReadError. With
// NodeBadPayload nothing is appended; with NodeScrapeError the samples are.
//
// b does not refer to body afterwards.
func (p *Parser) Parse(body []byte, req payload.Request, b *metric.Batch) error {
	base := len(b.Samples)
	p.req, p.batch = req, b
	p.duplicates = p.duplicates[:0]
	p.names.begin(req.Node, body)
	defer p.names.end()
	p.scan.Begin(body, families)
	failed := p.readLines()
	p.setStarts()
	err := p.scan.End("/metrics/resource")
	p.batch = nil
	if err = p.req.Finish(b, base, err, failed); err == nil && p.names.isChanged() {
		p.names.keep()
	}
	return err
}

// readLines reads all lines. If the kubelet reports that it could not read everything, failed is
// the family that reports it.
func (p *Parser) readLines() (failed string) {
	for p.scan.Next() {
		f := p.scan.Family
		if p.scan.Changed {
			p.names.beginFamily(f.kind)
		}
		if f.value == failure {
			if n, _, ok := p.scan.ValueOnly(); ok && n.Mantissa != 0 {
				failed = string(p.scan.Name)
			}
			continue
		}
		s := p.subject(f.kind)
		n, t, ok := p.scan.Value()
		if ok && s != nil {
			p.takeLine(s, f, n, t)
		}
	}
	return failed
}

// subject returns the subject of the current line, and moves to the line's value. It returns nil if
// the labels name no entity or are not valid.
func (p *Parser) subject(kind metric.Kind) *subject {
	// Fast path: the lines come in the same order as in the last payload.
	if n := p.names.match(kind, p.scan.Rest()); n > 0 && p.scan.ValueAt(n) {
		p.scan.Advance(n)
		return &p.names.subjects[p.names.last]
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
	rest := p.scan.Rest()
	p.scan.Advance(len(labels))
	if !ok {
		return nil
	}
	if payload.IsTooLong(&e, "") {
		p.req.Refuse()
		return nil
	}
	e.Node = p.req.Node
	// The bound counts samples, verdicts and the node.
	if !p.names.find(e, 2*p.req.Limit()+1) {
		return nil
	}
	s := &p.names.subjects[p.names.last]
	p.names.rememberLabels(s, rest, len(labels))
	return s
}

// takeLine stores the value of one line about s.
func (p *Parser) takeLine(s *subject, f *family, n payload.Number, t int64) {
	bit := uint8(1) << f.value
	if s.values&bit != 0 || s.duplicates != 0 {
		p.takeDuplicate(s, f, n, t)
		return
	}
	s.values |= bit
	if f.value == start {
		s.start, _ = n.Scaled(9)
		return
	}
	if s.sample == 0 {
		s.sample = p.addSample(f)
	}
	p.setValue(s.sample-1, f, n, t)
}

// addSample appends a sample of the current line's subject. It returns 1 + its index, or -1 if the
// bound is reached.
func (p *Parser) addSample(f *family) int32 {
	i := p.req.Add(p.batch, p.names.entities[p.names.last], f.id.Describe().Group)
	if i < 0 {
		return -1
	}
	return i + 1
}

// setValue stores the value of a line in sample i, unless i is negative.
func (p *Parser) setValue(i int32, f *family, n payload.Number, t int64) {
	if i < 0 {
		return
	}
	if v, ok := f.amount(n); ok {
		p.req.Set(&p.batch.Samples[i], f.id, v, t)
	}
}

// setStarts sets the start times of samples.
func (p *Parser) setStarts() {
	for i := range p.names.subjects {
		s := &p.names.subjects[i]
		if s.start > 0 && s.sample > 0 && s.duplicates == 0 {
			p.setStart(s.sample-1, s.start)
		}
	}
	for i := range p.duplicates {
		d := &p.duplicates[i]
		if len(d.starts) != len(d.samples) {
			continue // it is not known which start belongs to which sample
		}
		for k, at := range d.samples {
			if at > 0 && d.starts[k] > 0 {
				p.setStart(at-1, d.starts[k])
			}
		}
	}
}

func (p *Parser) setStart(i int32, start int64) {
	in := &p.batch.Samples[i].Instance
	in.Start, in.Origin = start, metric.StartReported
}
