package summary

import (
	"slices"

	"github.com/weir-metrics/weir/metric"
)

// psiScale converts PSI totals to nanoseconds. The API's documentation says that they are
// nanoseconds, but kubelets pass on the kernel's microseconds.
const psiScale = 1000

// field is a number in an object, with its metric.
type field struct {
	name string
	id   metric.ID
}

// object describes one kind of object in a summary: its numbers in the order in which kubelets
// write them, and the metrics of its pressure.
type object struct {
	fields     []field
	some, full metric.ID
}

// The kinds of objects. CPUUsageRate is usageNanoCores.
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
	// ephemeralObject is a pod's use of the node's file system. The size of that file system is in the
	// node's object.
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

// averages are the members of a pressure object after its total.
var averages = [...]string{"avg10", "avg60", "avg300"}

// reading is a number from the payload, in the unit of its metric.
type reading struct {
	id    metric.ID
	value float64
}

// header has the members of an object that are not readings.
type header struct {
	time int64  // 0 if the object has none
	name []byte // with its escapes; the name of an interface, volume or accelerator
	from int    // the object's readings are Parser.readings[from:]
}

// readObject reads an object of kind o and pushes its numbers on Parser.readings. The caller uses
// them and calls dropReadings or storeReadings. For members that o does not have it calls other,
// which reads the value or returns false.
func (p *Parser) readObject(o *object, other func(p *Parser, key []byte) bool) header {
	h := header{from: len(p.readings)}
	s := &p.scan
	var more bool
	if s.enterAt("time") { // fast path
		h.time = p.readTime(&p.measured)
		p.readExpected(o, 0)
		more = s.more('}')
	} else {
		more = s.open('{')
	}
	for ; more; more = s.more('}') {
		next := 0
		switch key := s.key(); string(key) {
		case "time":
			h.time = p.readTime(&p.measured)
		case "name", "id":
			h.name = s.name()
		case "psi":
			p.readPressure(o)
		default:
			next = slices.IndexFunc(o.fields, func(f field) bool { return f.name == string(key) }) + 1
			if next > 0 {
				p.readNumber(o.fields[next-1].id, 1)
			} else if other == nil || !other(p, key) {
				s.skip()
			}
		}
		p.readExpected(o, next)
	}
	return h
}

// readExpected reads the members that follow in the order in which kubelets write them, beginning
// with field next. Some may be absent.
func (p *Parser) readExpected(o *object, next int) {
	for i := next; i < len(o.fields); i++ {
		if p.scan.moveTo(o.fields[i].name) {
			p.readNumber(o.fields[i].id, 1)
		}
	}
	if o.some != o.full && p.scan.moveTo("psi") {
		p.readPressure(o)
	}
}

// readPressure reads the totals of an object's pressure.
func (p *Parser) readPressure(o *object) {
	s := &p.scan
	if o.some == o.full { // an object without pressure
		s.skip()
		return
	}
	s.peek()
	// Fast path: most pressure is 0, with the same bytes as before.
	from, depth := s.pos, s.depth
	if depth < len(p.zeroPressure) {
		if q := p.zeroPressure[depth]; len(q) > 0 && len(s.body)-from >= len(q) && string(s.body[from:from+len(q)]) == string(q) {
			s.pos += len(q)
			p.readings = append(p.readings, reading{o.full, 0}, reading{o.some, 0})
			return
		}
	}
	n := len(p.readings)
	for more := s.open('{'); more; more = s.more('}') {
		switch string(s.key()) {
		case "some":
			p.readTotal(o.some)
		case "full":
			p.readTotal(o.full)
		default:
			s.skip()
		}
	}
	if r := p.readings[n:]; s.err == nil && depth < len(p.zeroPressure) && len(r) == 2 && r[0] == (reading{o.full, 0}) && r[1] == (reading{o.some, 0}) {
		p.zeroPressure[depth] = s.body[from:s.pos]
	}
}

// readTotal reads the total of one kind of pressure.
func (p *Parser) readTotal(id metric.ID) {
	s := &p.scan
	var more bool
	if s.enterAt("total") { // fast path
		p.readNumber(id, psiScale)
		for _, name := range averages {
			if s.moveTo(name) {
				s.skip()
			}
		}
		more = s.more('}')
	} else {
		more = s.open('{')
	}
	for ; more; more = s.more('}') {
		if string(s.key()) == "total" {
			p.readNumber(id, psiScale)
		} else {
			s.skip()
		}
	}
}

// readNumber reads a number and pushes it as a reading of id.
func (p *Parser) readNumber(id metric.ID, scale float64) {
	if n, ok := p.scan.number(); ok {
		if v, ok := n.Value(); ok {
			p.readings = append(p.readings, reading{id, v * scale})
		}
	}
}

// readTime reads a time; null gives 0.
func (p *Parser) readTime(c *minuteCache) int64 {
	s := &p.scan
	at := s.pos
	s.peek()
	// Fast path: the time is in the same minute as the last one.
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

// reading returns the reading of id among those of h.
func (p *Parser) reading(h header, id metric.ID) (float64, bool) {
	for _, r := range p.readings[h.from:] {
		if r.id == id {
			return r.value, true
		}
	}
	return 0, false
}

// storeReadings stores the readings of h in sample i, unless i is negative, and drops them.
func (p *Parser) storeReadings(i int32, h header) {
	if i >= 0 {
		s := &p.batch.Samples[i]
		for _, r := range p.readings[h.from:] {
			p.req.Set(s, r.id, r.value, h.time)
		}
	}
	p.dropReadings(h)
}

func (p *Parser) dropReadings(h header) { p.readings = p.readings[:h.from] }
