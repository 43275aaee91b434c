package summary

import (
	"slices"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/kubelet/payload"
)

// psiScale turns PSI totals into nanoseconds. The API's documentation says they
// are nanoseconds, but kubelets pass on what the kernel writes, which is
// microseconds.
const psiScale = 1000

// field is a number in an object and the metric it is.
type field struct {
	name string
	id   metric.ID
}

// object describes one kind of object in a summary: its numbers in the order of which
// kubelets write, and the metrics of its pressure.
type object struct {
	fields     []field
	some, full metric.ID
}

// The objects. CPUUsageRate stands for usageNanoCores.
var (
	cpuObject = object{
		fields: []field{{"usageNanoCores", metric.CPUUsageRate}, {"usageCoreNanoSeconds", metric.CPUUsage}},
		some:   metric.CPUPressureSome, full: metric.CPUPressureFull,
	}
	memoryObject = object{
		fields: []field{
			{"availableBytes", metric.MemoryAvailable},
			{"usageBytes", metric.MemoryUsage},
			{"workingSetBytes", metric.MemoryWorkingSet},
			{"rssBytes", metric.MemoryRSS},
			{"pageFaults", metric.MemoryPageFaults},
			{"majorPageFaults", metric.MemoryMajorPageFaults},
		},
		some: metric.MemoryPressureSome, full: metric.MemoryPressureFull,
	}
	ioObject   = object{some: metric.IOPressureSome, full: metric.IOPressureFull}
	swapObject = object{fields: []field{
		{"swapAvailableBytes", metric.MemorySwapAvailable},
		{"swapUsageBytes", metric.MemorySwap},
	}}
	networkObject = object{fields: []field{
		{"rxBytes", metric.NetworkRx},
		{"rxErrors", metric.NetworkRxErrors},
		{"txBytes", metric.NetworkTx},
		{"txErrors", metric.NetworkTxErrors},
	}}
	fsObject = object{fields: []field{
		{"availableBytes", metric.FilesystemAvailable},
		{"capacityBytes", metric.FilesystemLimit},
		{"usedBytes", metric.FilesystemUsage},
		{"inodesFree", metric.FilesystemInodesFree},
		{"inodes", metric.FilesystemInodes},
		{"inodesUsed", metric.FilesystemInodesUsed},
	}}
	// ephemeralObject is what a pod uses of the node's file system; the size of
	// that file system is the node's to report.
	ephemeralObject = object{fields: []field{
		{"usedBytes", metric.EphemeralStorageUsage},
		{"inodesUsed", metric.FilesystemInodesUsed},
	}}
	rlimitObject = object{fields: []field{
		{"maxpid", metric.ProcessLimit},
		{"curproc", metric.ProcessCount},
	}}
	processObject     = object{fields: []field{{"process_count", metric.ProcessCount}}}
	acceleratorObject = object{fields: []field{
		{"memoryTotal", metric.AcceleratorMemoryTotal},
		{"memoryUsed", metric.AcceleratorMemoryUsed},
		{"dutyCycle", metric.AcceleratorDutyCycle},
	}}
)

// averages are what an object's pressure holds beside its total.
var averages = [...]string{"avg10", "avg60", "avg300"}

// reading is a number that was read, in the unit of its metric.
type reading struct {
	id    metric.ID
	value float64
}

// header is what an object says beside its readings.
type header struct {
	time int64  // 0 if it gives none
	name []byte // unresolved; of an interface, volume or accelerator
	from int    // its readings are Parser.readings[from:]
}

// read reads an object of the kind o describes onto the stack of readings. The
// caller takes them and calls drop. Members it does not know are passed to
// other, which reads the value or returns false.
func (p *Parser) read(o *object, other func(p *Parser, key []byte) bool) header {
	h := header{from: len(p.readings)}
	s := &p.scan
	var more bool
	if s.enters("time") { // fast path
		h.time = p.time(&p.now)
		p.expected(o, 0)
		more = s.more('}')
	} else {
		more = s.open('{')
	}
	for ; more; more = s.more('}') {
		next := 0
		switch key := s.key(); string(key) {
		case "time":
			h.time = p.time(&p.now)
		case "name", "id":
			h.name = s.name()
		case "psi":
			p.psi(o)
		default:
			next = slices.IndexFunc(o.fields, func(f field) bool { return f.name == string(key) }) + 1
			if next > 0 {
				p.number(o.fields[next-1].id, 1)
			} else if other == nil || !other(p, key) {
				s.skip()
			}
		}
		p.expected(o, next)
	}
	return h
}

// expected reads the members of an object that follow in the order of which kubelets
// write, from field next on. Some may be absent.
func (p *Parser) expected(o *object, next int) {
	for i := next; i < len(o.fields); i++ {
		if p.scan.follows(o.fields[i].name) {
			p.number(o.fields[i].id, 1)
		}
	}
	if o.some != o.full && p.scan.follows("psi") {
		p.psi(o)
	}
}

// psi reads the totals of an object's pressure.
func (p *Parser) psi(o *object) {
	s := &p.scan
	if o.some == o.full { // an object without pressure
		s.skip()
		return
	}
	s.peek()
	// Fast path: no pressure, as most have, in the bytes it was said in before.
	from, depth := s.pos, s.depth
	if depth < len(p.quiet) {
		if q := p.quiet[depth]; len(q) > 0 && len(s.body)-from >= len(q) && string(s.body[from:from+len(q)]) == string(q) {
			s.pos += len(q)
			p.readings = append(p.readings, reading{o.full, 0}, reading{o.some, 0})
			return
		}
	}
	n := len(p.readings)
	for more := s.open('{'); more; more = s.more('}') {
		switch string(s.key()) {
		case "some":
			p.total(o.some)
		case "full":
			p.total(o.full)
		default:
			s.skip()
		}
	}
	if r := p.readings[n:]; s.err == nil && depth < len(p.quiet) && len(r) == 2 && r[0] == (reading{o.full, 0}) && r[1] == (reading{o.some, 0}) {
		p.quiet[depth] = s.body[from:s.pos]
	}
}

// total reads the total of one kind of pressure.
func (p *Parser) total(id metric.ID) {
	s := &p.scan
	var more bool
	if s.enters("total") { // fast path
		p.number(id, psiScale)
		for _, name := range averages {
			if s.follows(name) {
				s.skip()
			}
		}
		more = s.more('}')
	} else {
		more = s.open('{')
	}
	for ; more; more = s.more('}') {
		if string(s.key()) == "total" {
			p.number(id, psiScale)
		} else {
			s.skip()
		}
	}
}

// number reads a number and pushes it as a reading of id.
func (p *Parser) number(id metric.ID, scale float64) {
	if n, ok := p.scan.number(); ok {
		if v, ok := n.Value(); ok {
			p.readings = append(p.readings, reading{id, v * scale})
		}
	}
}

// time reads a time or null, for which it is 0.
func (p *Parser) time(c *clock) int64 {
	s := &p.scan
	at := s.pos
	s.peek()
	// Fast path: the minute of the last one.
	if b := s.body[s.pos:]; len(b) > 21 && b[0] == '"' && b[21] == '"' {
		if t, ok := c.same(b[1:21]); ok {
			s.pos += 22
			return t
		}
	}
	raw := s.name()
	if raw == nil {
		return 0
	}
	t, ok := parseTime(raw)
	if !ok {
		s.pos = at
		s.fail("not a time")
		return t
	}
	c.keep(raw, t)
	return t
}

// get returns the reading of id among those from h on.
func (p *Parser) get(h header, id metric.ID) (float64, bool) {
	for _, r := range p.readings[h.from:] {
		if r.id == id {
			return r.value, true
		}
	}
	return 0, false
}

// store puts h's readings into sample i, unless i is negative, and drops them.
func (p *Parser) store(i int32, h header) {
	if i >= 0 {
		s := &p.batch.Samples[i]
		for _, r := range p.readings[h.from:] {
			p.req.Set(s, r.id, r.value, h.time)
		}
	}
	p.drop(h)
}

func (p *Parser) drop(h header) { p.readings = p.readings[:h.from] }

// limitOf is the bound for names: as many as samples, and half as many more.
func limitOf(req *payload.Request) int { return req.Limit() + req.Limit()/2 }
