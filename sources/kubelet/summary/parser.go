// Package summary turns a kubelet's /stats/summary into samples: the node, its
// system containers, pods by UID, their containers, volumes and interfaces,
// with the node's times in whole seconds.
//
// The kubelet writes containers by name only; two containers of one name in a
// pod are two samples. Parts of an entity (an interface, a volume, the image file
// system) are samples of their own with Entity.Part set.
package summary

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/kubelet/payload"
)

// Clock is the resolution of the endpoint's timestamps.
const Clock = time.Second

// Parser turns payloads of one node into samples. It remembers the node's
// names, so that an unchanged payload costs no allocation. It must not be used by two
// goroutines at once.
type Parser struct {
	scan     scanner
	names    payload.Names[subject]
	order    payload.Order
	lastID   uint32
	key      []byte
	readings []reading
	req      payload.Request
	batch    *metric.Batch
	nodeName []byte
	// now is the minute of the last measurement, and then that of the last start.
	now, then clock
	// quiet are, for each depth, the bytes of this payload that say that there was no
	// pressure, "full" before "some".
	quiet [maxQuiet][]byte
}

// maxQuiet is beyond the depth of any pressure.
const maxQuiet = 8

// subject is an entity the node speaks of.
type subject struct {
	id     uint32 // distinguishes the children of one subject from another's
	entity metric.Entity
	uid    metric.PodUID
}

// kinds of subjects, as they appear in keys.
const (
	keyPod         = 'p'
	keyContainer   = 'c'
	keySystem      = 's'
	keyInterface   = 'i'
	keyVolume      = 'v'
	keyImageFS     = 'I'
	keyContainerFS = 'C'
	keyLogs        = 'L'
	keyAccelerator = 'a'
)

// New returns a Parser that knows no names yet.
func New() *Parser { return &Parser{} }

// Parse appends the samples in body to b. The error, if any, is a
// *metric.ReadError with NodeBadPayload or NodeWrongIdentity, and then nothing
// is appended. It sets b.Layout if b held nothing and all samples are within the bound.
//
// Nothing in b refers to body afterwards.
func (p *Parser) Parse(body []byte, req payload.Request, b *metric.Batch) error {
	base := len(b.Samples)
	p.req, p.batch, p.nodeName = req, b, nil
	p.readings = p.readings[:0]
	p.names.Max = limitOf(&req)
	p.names.Begin()
	p.order.Begin(b)
	p.scan = scanner{body: body}

	known := p.summary()
	err := p.scan.err
	switch {
	case err != nil:
	case !known:
		err = payload.Bad(body, 0, "neither node nor pods")
	case req.Expect != "" && len(p.nodeName) > 0 && string(p.nodeName) != string(req.Expect) && unescape(p.nodeName) != string(req.Expect):
		err = &metric.ReadError{
			Reason: metric.NodeWrongIdentity,
			Err:    fmt.Errorf("expected node %q, the summary is of node %q: its address may have passed to another machine", req.Expect, unescape(p.nodeName)),
		}
	}
	if err != nil {
		b.Samples = b.Samples[:base]
	} else {
		p.order.End(b)
	}
	p.scan, p.batch, p.nodeName, p.quiet = scanner{}, nil, nil, [maxQuiet][]byte{}
	return err
}

// summary reads the whole, and returns whether it had anything to say.
func (p *Parser) summary() (known bool) {
	s := &p.scan
	if len(s.body) == 0 {
		s.fail("empty")
		return false
	}
	for more := s.open('{'); more; more = s.more('}') {
		switch string(s.key()) {
		case "node":
			known = true
			p.node()
		case "pods":
			known = true
			for more := s.open('['); more; more = s.more(']') {
				p.pod()
			}
		default:
			s.skip()
		}
	}
	s.end()
	return known
}

// child returns the subject of that kind and name below parent, or below the
// node if parent is nil. The file systems of keyImageFS and so on need no name.
func (p *Parser) child(parent *subject, kind byte, raw []byte) *subject {
	var id uint32
	if parent != nil {
		id = parent.id
	}
	p.key = binary.LittleEndian.AppendUint32(p.key[:0], id)
	p.key = append(append(p.key, kind), raw...)
	name, found := p.names.Find(p.key)
	s := &name.Data
	if !found {
		p.lastID++
		s.id = p.lastID
		p.describe(s, parent, kind, raw)
	}
	s.entity.Node = p.req.Node
	return s
}

// describe fills a new subject.
func (p *Parser) describe(s, parent *subject, kind byte, raw []byte) {
	if parent != nil {
		s.entity, s.uid = parent.entity, parent.uid
	} else {
		s.entity.Kind = metric.Node
	}
	switch kind {
	case keyPod:
		s.entity.Kind = metric.Pod
		ref := scanner{body: raw}
		for more := ref.open('{'); more; more = ref.more('}') {
			switch string(ref.key()) {
			case "name":
				s.entity.Pod = metric.PodName(unescape(ref.name()))
			case "namespace":
				s.entity.Namespace = metric.Namespace(unescape(ref.name()))
			case "uid":
				s.uid = metric.PodUID(unescape(ref.name()))
			default:
				ref.skip()
			}
		}
	case keyContainer:
		s.entity.Kind, s.entity.Name = metric.Container, unescape(raw)
	case keySystem:
		s.entity.Kind, s.entity.Name = metric.System, unescape(raw)
	case keyInterface:
		s.entity.Part = "interface:" + unescape(raw)
	case keyVolume:
		s.entity.Part = "volume:" + unescape(raw)
	case keyImageFS:
		s.entity.Part = "device:imagefs"
	case keyContainerFS:
		s.entity.Part = "device:containerfs"
	case keyLogs:
		s.entity.Part = "device:logs"
	case keyAccelerator:
		s.entity.Part = "accelerator:" + unescape(raw)
	}
}

// add appends a sample of s and returns its index, or -1 beyond the bound.
func (p *Parser) add(s *subject, g metric.Group) int32 {
	i := p.order.Add(&p.req, p.batch, &s.entity, g)
	if i >= 0 {
		p.batch.Samples[i].Instance.UID = s.uid
	}
	return i
}

// start sets the start time of the samples of kind from index from on.
func (p *Parser) start(from int, kind metric.Kind, t int64) {
	if t <= 0 {
		return
	}
	for i := from; i < len(p.batch.Samples); i++ {
		if s := &p.batch.Samples[i]; s.Entity.Kind == kind {
			s.Instance.Start, s.Instance.Origin = t, metric.StartReported
		}
	}
}

// member returns the value of a member of the object ahead, white space before it
// included, and does not move. It is nil if there is no such member. Kubelets
// write names first, so that it seldom looks far.
func (p *Parser) member(name string) []byte {
	s := &p.scan
	pos, depth := s.pos, s.depth
	var value []byte
	for more := s.open('{'); more; more = s.more('}') {
		found := string(s.key()) == name
		s.peek()
		from := s.pos
		s.skip()
		if found && s.err == nil {
			value = s.body[from:s.pos]
			break
		}
	}
	if s.err == nil {
		s.pos, s.depth = pos, depth
	}
	return value
}
