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

// object describes one kind of object in a summary: its numbers, and the
// metrics of its pressure.
type object struct {
	fields     []field
	some, full metric.ID
}

// The objects. CPUUsageRate stands for usageNanoCores.
var (
	cpuObject = object{
		fields: []field{{"usageCoreNanoSeconds", metric.CPUUsage}, {"usageNanoCores", metric.CPUUsageRate}},
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
	next := 0 // of o.fields, in the order of which kubelets write
	s := &p.scan
	for more := s.open('{'); more; more = s.more('}') {
		key := s.key()
		switch string(key) {
		case "time":
			h.time = p.time()
		case "name", "id":
			h.name = s.name()
		case "psi":
			p.psi(o)
		default:
			if !p.field(o, key, &next) && (other == nil || !other(p, key)) {
				s.skip()
			}
		}
	}
	return h
}

// field reads the value of one of o's fields; it returns false if key is none. It looks
// at the next one first.
func (p *Parser) field(o *object, key []byte, next *int) bool {
	i := *next
	if i >= len(o.fields) || o.fields[i].name != string(key) {
		i = slices.IndexFunc(o.fields, func(f field) bool { return f.name == string(key) })
	}
	if i < 0 {
		return false
	}
	*next = i + 1
	p.number(o.fields[i].id, 1)
	return true
}

// psi reads the totals of an object's pressure.
func (p *Parser) psi(o *object) {
	if o.some == o.full { // an object without pressure
		p.scan.skip()
		return
	}
	s := &p.scan
	for more := s.open('{'); more; more = s.more('}') {
		var id metric.ID
		switch string(s.key()) {
		case "some":
			id = o.some
		case "full":
			id = o.full
		default:
			s.skip()
			continue
		}
		for more := s.open('{'); more; more = s.more('}') {
			if string(s.key()) == "total" {
				p.number(id, psiScale)
			} else {
				s.skip()
			}
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
func (p *Parser) time() int64 {
	at := p.scan.pos
	raw := p.scan.name()
	if raw == nil {
		return 0
	}
	t, ok := parseTime(raw)
	if !ok {
		p.scan.pos = at
		p.scan.fail("not a time")
	}
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
