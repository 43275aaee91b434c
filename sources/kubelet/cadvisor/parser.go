// Package cadvisor turns a kubelet's /metrics/cadvisor into samples: every
// cgroup the kubelet watches, with its path, and for containers of pods their ID.
//
// A pod has two samples where the kubelet reports its sandbox: one of the pod's
// cgroup, and one of the sandbox with the network counters, which live and die
// with the sandbox. What else the sandbox's own process uses is in the pod's.
// A container under two paths has two samples: identity chooses.
package cadvisor

import (
	"strings"
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
	lines   payload.Names[line]
	order   payload.Order
	cgroups map[string]*cgroup // by labels
	places  map[string]*place  // by path
	came    map[*family]uint32 // the round each family last came in
	touched []*subject         // have samples in this payload
	listed  []*place           // have processes in this payload
	round   uint32
	req     payload.Request
	batch   *metric.Batch
	node    *cgroup // "/"
}

// subject is an entity or a part of one, and its samples in this payload.
type subject struct {
	entity  metric.Entity
	cgroup  *cgroup
	seen    bool
	samples []int32 // indexes in batch; -1 beyond the bound
}

// line is what a set of labels says: which cgroup, and which part of it.
type line struct {
	cgroup *cgroup  // nil: nothing weir has a metric for
	part   *subject // nil: the cgroup itself
	labels labelUse
	family *family // of the lines counted
	round  uint32  // in which they were
	count  int     // of lines with these labels in that family
}

// labelUse is what the labels add to a family's meaning.
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
	return &Parser{cgroups: map[string]*cgroup{}, places: map[string]*place{}, came: map[*family]uint32{}}
}

// Parse appends the samples in body to b, and sets b.Cores if the payload says
// how many there are. The error, if any, is a *metric.ReadError:
// NodeBadPayload, and then nothing is appended, or NodeScrapeError, beside the
// samples. It sets b.Layout if b held nothing and the payload is whole.
//
// Nothing in b refers to body afterwards.
func (p *Parser) Parse(body []byte, req payload.Request, b *metric.Batch) error {
	base := len(b.Samples)
	p.req, p.batch = req, b
	p.touched, p.listed = p.touched[:0], p.listed[:0]
	p.round++
	// A cgroup has a handful of sets of labels.
	p.lines.Max = 8 * req.Limit()
	p.lines.Begin()
	p.order.Begin(b)
	p.sweep()
	if p.node == nil {
		p.node = p.cgroup(&labels{id: "/"})
	}
	p.node.begin(p.round)
	p.scan.Reset(body)
	failed, known := p.walk()
	p.finish()
	err := p.scan.Err()
	if err == nil && !known {
		err = payload.Bad(body, 0, "no family of /metrics/cadvisor")
	}
	p.scan.Reset(nil)
	p.batch = nil
	switch {
	case err != nil:
		b.Samples = b.Samples[:base]
		return err
	case failed != "":
		return payload.Unreadable(failed)
	}
	p.order.End(b)
	return nil
}

// walk reads all lines. It returns the family that says the kubelet failed, if
// one does, and whether there was any family it knows.
func (p *Parser) walk() (failed string, known bool) {
	var f *family
	for p.scan.Next() {
		if p.scan.Changed {
			f = families[string(p.scan.Name)]
			if f == nil {
				// An unknown family is checked once, then skipped.
				if labels := p.scan.Labels(); labels != nil {
					p.scan.Advance(len(labels))
					p.scan.Value()
				}
				continue
			}
			if p.came[f] == p.round {
				p.scan.Fail("this family was there before: its lines must stand together")
				break
			}
			p.came[f], known = p.round, true
		} else if f == nil {
			p.scan.Skip()
			continue
		}
		if f.use == failure || f.use == machine {
			labels := p.scan.Labels()
			p.scan.Advance(len(labels))
			n, t, ok := p.scan.Value()
			switch {
			case !ok:
			case f.use == machine:
				p.machine(f, n, t)
			case n.Mantissa != 0:
				failed = string(p.scan.Name)
			}
			continue
		}
		l := p.line()
		if l == nil {
			continue
		}
		if n, t, ok := p.scan.Value(); ok && l.cgroup != nil {
			p.take(l, f, n, t)
		}
	}
	return failed, known
}

// line returns what the present line's labels say and moves to its value.
func (p *Parser) line() *line {
	// Fast path: the same lines in the same order as the last time.
	name := p.lines.Guess(p.scan.Rest())
	if name == nil || !p.scan.Plain(len(name.Key())) {
		// Slow path: find where the labels end.
		raw := p.scan.Labels()
		if raw == nil {
			return nil
		}
		var found bool
		if name, found = p.lines.Find(raw); !found {
			var ok bool
			if name.Data, ok = p.newLine(raw); !ok {
				p.lines.Forget(name)
				p.scan.Fail("not a list of labels")
				return nil
			}
		}
	}
	p.scan.Advance(len(name.Key()))
	return &name.Data
}

// maxPath is the kernel's bound on paths.
const maxPath = 4096

// newLine reads labels not seen before.
func (p *Parser) newLine(raw []byte) (line, bool) {
	var l labels
	if !l.parse(raw) {
		return line{}, false
	}
	if l.id == "" || l.id[0] != '/' || len(l.id) > maxPath {
		return line{}, true // nobody's
	}
	c := p.cgroup(&l)
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
	}
	return n, true
}

// cgroup returns the cgroup that labels describe.
func (p *Parser) cgroup(l *labels) *cgroup {
	key := strings.Join([]string{l.id, l.name, l.namespace, l.pod, l.container}, "\x00")
	c := p.cgroups[key]
	if c == nil {
		c = newCgroup(l, p.place(l.id))
		p.cgroups[key] = c
	}
	c.begin(p.round)
	return c
}

// place returns the place of that path, below the one that holds it.
func (p *Parser) place(path string) *place {
	pl := p.places[path]
	if pl == nil {
		pl = &place{}
		if path != "/" {
			pl.parent = p.place(path[:max(strings.LastIndexByte(path, '/'), 1)])
		}
		p.places[path] = pl
	}
	pl.begin(p.round)
	return pl
}

// keepRounds is how many rounds a cgroup that no longer comes is remembered; it
// is longer than package payload remembers lines, which point to cgroups.
const keepRounds = 16

// sweep forgets the cgroups that have not come for a while.
func (p *Parser) sweep() {
	if p.round%keepRounds != 0 && len(p.cgroups) <= 4*p.req.Limit() {
		return
	}
	for key, c := range p.cgroups {
		if p.round-c.round > keepRounds && c != p.node {
			delete(p.cgroups, key)
		}
	}
	for path, pl := range p.places {
		if p.round-pl.round > keepRounds {
			delete(p.places, path)
		}
	}
}
