// Package summary turns a kubelet's /stats/summary into samples: the node, its system
// containers, pods with their UIDs, their containers, volumes and interfaces. Times are
// whole seconds of the node's clock.
//
// Containers have only a name; two containers of one name in a pod are two samples. A part of an
// entity (an interface, a volume, the image file system) is a separate sample with Entity.Part set.
//
//	parser.go    Parser, and which entity an object is about
//	entities.go  node, pod, container: objects → samples
//	fields.go    the table of objects and their numbers
//	json.go      a JSON scanner that allocates nothing; time.go times
//
// The fastest general JSON parser takes 1.35 times as long, encoding/json 9 times
// (docs/performance.md).
package summary

import (
	"encoding/binary"
	"time"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/kubelet/payload"
)

// Clock is the resolution of the endpoint's timestamps.
const Clock = time.Second

// Parser turns payloads of one node into samples. It keeps the names of the node, so that an
// unchanged payload allocates nothing. Only one goroutine may use it at a time.
type Parser struct {
	scan     scanner
	names    payload.NameCache[subject]
	lastID   uint32
	key      []byte
	readings []reading
	req      payload.Request
	batch    *metric.Batch
	nodeName []byte
	// measured has the minute of the last measurement, started the minute of the last start time.
	measured, started minuteCache
	// zeroPressure has, for each depth, the bytes of an object in this payload with zero pressure
	// everywhere, "full" before "some".
	zeroPressure [maxPressureDepth][]byte
}

// maxPressureDepth is larger than the depth of any pressure object.
const maxPressureDepth = 8

// subject is an entity of the node.
type subject struct {
	id     uint32 // part of the key of its children, so that two subjects can have children of one name
	entity metric.Entity
	uid    metric.PodUID
	// tooLong means that a name in entity is longer than Kubernetes allows, so that it has no samples.
	tooLong bool
}

// The kinds of subjects, as bytes of keys.
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

// Parse appends the samples in body to b. The error, if any, is a *metric.ReadError with
// NodeBadPayload or NodeWrongIdentity; nothing is appended then.
//
// b does not refer to body afterwards.
func (p *Parser) Parse(body []byte, req payload.Request, b *metric.Batch) error {
	base := len(b.Samples)
	p.req, p.batch, p.nodeName = req, b, nil
	p.readings = p.readings[:0]
	p.names.Max = req.Limit() * 3 / 2 // some names have no sample
	p.names.Begin()
	p.scan = scanner{body: body}

	known := p.readSummary()
	err := p.scan.err
	switch {
	case err != nil:
	case !known:
		err = payload.ParseError(body, 0, "neither node nor pods")
	case req.Expect != "" && len(p.nodeName) > 0 && string(p.nodeName) != string(req.Expect) && unescape(p.nodeName) != string(req.Expect):
		err = metric.ReadErrorf(metric.NodeWrongIdentity, "expected node %q, the summary is of node %q: its address may belong to another machine now", req.Expect, unescape(p.nodeName))
	}
	err = p.req.Finish(b, base, err, "")
	p.scan, p.batch, p.nodeName, p.zeroPressure = scanner{}, nil, nil, [maxPressureDepth][]byte{}
	return err
}

// readSummary reads the payload, and returns whether it has a node or pods.
func (p *Parser) readSummary() (known bool) {
	s := &p.scan
	if len(s.body) == 0 {
		s.fail("empty")
		return false
	}
	for more := s.open('{'); more; more = s.more('}') {
		switch string(s.key()) {
		case "node":
			known = true
			p.readNode()
		case "pods":
			known = true
			for more := s.open('['); more; more = s.more(']') {
				p.readPod()
			}
		default:
			s.skip()
		}
	}
	s.end()
	return known
}

// child returns the subject of that kind and name below parent, or below the node if parent is nil.
// File systems (keyImageFS, keyContainerFS, keyLogs) have no name.
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
		p.setEntity(s, parent, kind, raw)
		s.tooLong = parent != nil && parent.tooLong || payload.IsTooLong(&s.entity, s.uid)
	}
	if s.tooLong {
		p.req.Refuse()
	}
	s.entity.Node = p.req.Node
	return s
}

func (p *Parser) setEntity(s, parent *subject, kind byte, raw []byte) {
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

// addSample appends a sample of s and returns its index, or -1 if the bound is reached.
func (p *Parser) addSample(s *subject, g metric.Group) int32 {
	if s.tooLong {
		return -1
	}
	i := p.req.Add(p.batch, s.entity, g)
	if i >= 0 {
		p.batch.Samples[i].Instance.UID = s.uid
	}
	return i
}

// setStart sets the start time of the samples of that kind, beginning at index from.
func (p *Parser) setStart(from int, kind metric.Kind, t int64) {
	if t <= 0 {
		return
	}
	for i := from; i < len(p.batch.Samples); i++ {
		if s := &p.batch.Samples[i]; s.Entity.Kind == kind {
			s.Instance.Start, s.Instance.Origin = t, metric.StartReported
		}
	}
}

// peekMember returns the value of a member of the object at the current position. It does not move.
// It returns nil if there is no such member. Kubelets write names first, so the search is short.
func (p *Parser) peekMember(name string) []byte {
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
