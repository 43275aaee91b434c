// Package cadvisor turns a kubelet's /metrics/cadvisor, or /metrics of a cAdvisor that runs on its
// own, into samples: one for every cgroup that is watched. A sample has the cgroup's path, and the
// container ID if it is a container of a pod.
//
// If the kubelet reports a pod's sandbox, the pod has two samples: one of its cgroup, and one of
// the sandbox with the network counters, because these counters begin and end with the sandbox. The
// sandbox's other numbers are already in the pod's. A container that has two paths has two samples;
// identity decides which one is living.
//
//	parser.go  payload → lines; which cgroup the labels of a line name
//	family.go  the table of families
//	labels.go  the labels of a line
//	cgroup.go  cgroups, their roles and their paths
//	take.go    lines → samples
package cadvisor

import (
	"hash/maphash"
	"strings"
	"time"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/kubelet/payload"
)

// Clock is the resolution of the endpoint's timestamps.
const Clock = time.Millisecond

// Parser turns payloads of one node into samples. It keeps the names of the node, so that an
// unchanged payload allocates nothing. Only one goroutine may use it at a time.
type Parser struct {
	scan          payload.FamilyScanner[family]
	lines         payload.NameCache[line]
	cgroups       map[uint64]*cgroup   // by the hash of their labels
	paths         map[string]*pathNode // by path
	lastSeen      map[*family]uint32   // the last round in which each family occurred
	touched       []*subject           // the subjects that have samples in this payload
	withProcesses []*pathNode          // the paths with processes in this payload
	round         uint32
	req           payload.Request
	batch         *metric.Batch
	node          *cgroup // "/"
}

// subject is an entity or a part of one, with its samples in this payload.
type subject struct {
	entity  metric.Entity
	cgroup  *cgroup
	seen    bool
	samples []int32 // indexes in batch; -1 if the bound on samples was reached
}

// line is what a set of labels refers to: a cgroup, and a part of it.
type line struct {
	cgroup *cgroup  // nil if weir has no metric for it
	part   *subject // nil for the cgroup itself
	// count is the number of lines with these labels that family has had in round.
	family *family
	round  uint32
	count  int32
	labels labelUse
	// tooLong means that a name is longer than Kubernetes allows, or that there are too many cgroups.
	tooLong bool
}

// labelUse is what a label adds to the meaning of a family.
type labelUse uint8

const (
	nothing     labelUse = iota
	majorFaults          // failure_type="pgmajfault"
	local                // scope="container": without the cgroups below
	loopback             // interface="lo"
	eth0                 // interface="eth0"
)

// New returns a Parser that knows no names yet.
func New() *Parser {
	return &Parser{cgroups: map[uint64]*cgroup{}, paths: map[string]*pathNode{}, lastSeen: map[*family]uint32{}}
}

// Parse appends the samples in body to b, and sets b.Cores if the payload has the number of CPUs.
// The error, if any, is a *metric.ReadError. With NodeBadPayload nothing is appended; with
// NodeScrapeError the samples are.
//
// b does not refer to body afterwards.
func (p *Parser) Parse(body []byte, req payload.Request, b *metric.Batch) error {
	base := len(b.Samples)
	p.req, p.batch = req, b
	p.touched, p.withProcesses = p.touched[:0], p.withProcesses[:0]
	p.round++
	// A cgroup has about eight different sets of labels.
	p.lines.Max = 8 * req.Limit()
	p.lines.Begin()
	p.sweep()
	if p.node == nil {
		p.node = p.cgroup(&labels{id: "/"})
	}
	p.node.begin(p.round)
	p.scan.Begin(body, families)
	failed := p.readLines()
	p.completeSamples()
	err := p.scan.End("cAdvisor")
	p.batch = nil
	return p.req.Finish(b, base, err, failed)
}

// readLines reads all lines. If the kubelet reports that it could not read everything, failed is
// the family that reports it.
func (p *Parser) readLines() (failed string) {
	for p.scan.Next() {
		f := p.scan.Family
		if p.scan.Changed {
			if p.lastSeen[f] == p.round {
				p.scan.Fail("the lines of this family are in two places; they must follow each other")
				break
			}
			p.lastSeen[f] = p.round
		}
		if f.use == failure || f.use == machine {
			n, t, ok := p.scan.ValueOnly()
			switch {
			case !ok:
			case f.use == machine:
				p.takeMachine(f, n, t)
			case n.Mantissa != 0:
				failed = string(p.scan.Name)
			}
			continue
		}
		l := p.line()
		if l == nil {
			continue
		}
		if l.tooLong {
			p.req.Refuse()
		}
		if n, t, ok := p.scan.Value(); ok && l.cgroup != nil {
			p.takeLine(l, f, n, t)
		}
	}
	return failed
}

// line returns the meaning of the current line's labels, and moves to its value.
func (p *Parser) line() *line {
	// Fast path: the lines come in the same order as in the last payload.
	name := p.lines.Next(p.scan.Rest())
	if name == nil || !p.scan.ValueAt(name.Size()) {
		// Slow path: find where the labels end.
		raw := p.scan.Labels()
		if raw == nil {
			return nil
		}
		var found bool
		if name, found = p.lines.Find(raw); !found {
			var ok bool
			if name.Data, ok = p.newLine(raw); !ok {
				p.lines.Remove(name)
				p.scan.Fail("not a list of labels")
				return nil
			}
		}
	}
	p.scan.Advance(name.Size())
	return &name.Data
}

// maxPath is the kernel's limit on the length of a path.
const maxPath = 4096

// newLine returns the meaning of labels that were not seen before.
func (p *Parser) newLine(raw []byte) (line, bool) {
	var l labels
	if !l.parse(raw) {
		return line{}, false
	}
	if l.id == "" || l.id[0] != '/' || len(l.id) > maxPath {
		return line{}, true // not a cgroup
	}
	c := p.cgroup(&l)
	if c == nil {
		return line{tooLong: true}, true
	}
	n := line{cgroup: c}
	part := ""
	switch {
	case l.iface != "":
		part = "interface:" + l.iface
		switch l.iface {
		case "lo":
			n.labels = loopback
		case "eth0":
			n.labels = eth0
		}
	case l.device != "":
		part = "device:" + l.device
	case l.accelerator != "":
		part = "accelerator:" + l.accelerator
	case l.scope == "container":
		n.labels = local
	case l.failure == "pgmajfault":
		n.labels = majorFaults
	}
	if part != "" {
		n.part = &subject{entity: c.entity, cgroup: c}
		n.part.entity.Part = part
		if payload.IsTooLong(&n.part.entity, "") {
			return line{tooLong: true}, true
		}
	}
	return n, true
}

// seed is random: a node cannot make two sets of labels with one hash.
var seed = maphash.MakeSeed()

// cgroup returns the cgroup that labels describe; nil if a name is too long, or if there are too many
// cgroups.
func (p *Parser) cgroup(l *labels) *cgroup {
	hash := maphash.Comparable(seed, [...]string{l.id, l.name, l.namespace, l.pod, l.container})
	c := p.cgroups[hash]
	if c == nil {
		if len(p.cgroups) >= p.maxCgroups() {
			return nil
		}
		if c = newCgroup(l); payload.IsTooLong(&c.entity, c.instance.UID) {
			return nil
		}
		c.pathNode = p.pathNode(l.id)
		p.cgroups[hash] = c
	}
	c.begin(p.round)
	return c
}

// pathNode returns the node of a path, below the node of its parent.
func (p *Parser) pathNode(path string) *pathNode {
	pl := p.paths[path]
	if pl == nil {
		pl = &pathNode{}
		if path != "/" {
			pl.parent = p.pathNode(path[:max(strings.LastIndexByte(path, '/'), 1)])
		}
		p.paths[path] = pl
	}
	pl.begin(p.round)
	return pl
}

// keepRounds is the number of rounds for which a cgroup is kept after it last occurred. It is
// longer than package payload keeps lines, because lines point to cgroups.
const keepRounds = 16

// maxCgroups bounds the cgroups that are kept. A payload with more of them loses the others.
func (p *Parser) maxCgroups() int { return 2 * p.req.Limit() }

// sweep removes the cgroups that have not occurred for keepRounds rounds.
func (p *Parser) sweep() {
	if p.round%keepRounds != 0 && len(p.cgroups) < p.maxCgroups() {
		return
	}
	for hash, c := range p.cgroups {
		if p.round-c.round > keepRounds && c != p.node {
			delete(p.cgroups, hash)
		}
	}
	for path, pl := range p.paths {
		if p.round-pl.round > keepRounds {
			delete(p.paths, path)
		}
	}
}
