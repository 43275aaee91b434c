package summary

import (
	"github.com/weir-metrics/weir/metric"
)

// node reads the object "node".
func (p *Parser) node() {
	self := subject{entity: metric.Entity{Kind: metric.Node, Node: p.req.Node}}
	from := len(p.batch.Samples)
	i := p.add(&self, metric.CPU)
	var start int64
	s := &p.scan
	for more := s.open('{'); more; more = s.more('}') {
		switch key := s.key(); string(key) {
		case "nodeName":
			p.nodeName = s.name()
		case "startTime":
			start = p.time(&p.then)
		case "systemContainers":
			for more := s.open('['); more; more = s.more(']') {
				p.container(nil, keySystem)
			}
		case "fs":
			p.store(i, p.read(&fsObject, nil))
		case "rlimit":
			p.store(i, p.read(&rlimitObject, nil))
		case "runtime":
			for more := s.open('{'); more; more = s.more('}') {
				switch string(s.key()) {
				case "imageFs":
					p.device(nil, keyImageFS)
				case "containerFs":
					p.device(nil, keyContainerFS)
				default:
					s.skip()
				}
			}
		case "network":
			p.network(nil, i)
		default:
			p.usage(i, key)
		}
	}
	p.start(from, metric.Node, start)
}

// pod reads an object of "pods".
func (p *Parser) pod() {
	s := &p.scan
	ref := p.member("podRef")
	if ref == nil || ref[0] != '{' {
		s.skip() // nobody's
		return
	}
	self := p.child(nil, keyPod, ref)
	if self.entity.Pod == "" {
		s.skip()
		return
	}
	from := len(p.batch.Samples)
	i := p.add(self, metric.CPU)
	var start int64
	for more := s.open('{'); more; more = s.more('}') {
		switch key := s.key(); string(key) {
		case "startTime":
			start = p.time(&p.then)
		case "containers":
			for more := s.open('['); more; more = s.more(']') {
				p.container(self, keyContainer)
			}
		case "volume":
			for more := s.open('['); more; more = s.more(']') {
				if h := p.read(&fsObject, nil); len(h.name) > 0 {
					p.store(p.add(p.child(self, keyVolume, h.name), metric.Filesystem), h)
				} else {
					p.drop(h)
				}
			}
		case "ephemeral-storage":
			p.store(i, p.read(&ephemeralObject, nil))
		case "process_stats":
			p.store(i, p.read(&processObject, nil))
		case "network":
			p.network(self, i)
		default:
			p.usage(i, key)
		}
	}
	p.start(from, metric.Pod, start)
}

// container reads an object of "containers" or "systemContainers".
func (p *Parser) container(pod *subject, kind byte) {
	s := &p.scan
	name := p.member("name")
	if len(name) <= len(`""`) || name[0] != '"' {
		s.skip() // nobody's
		return
	}
	self := p.child(pod, kind, name[1:len(name)-1])
	from := len(p.batch.Samples)
	i := p.add(self, metric.CPU)
	var start, fsTime int64
	var rootfs, logs float64
	var hasRootfs, hasLogs bool
	for more := s.open('{'); more; more = s.more('}') {
		switch key := s.key(); string(key) {
		case "startTime":
			start = p.time(&p.then)
		case "rootfs":
			h := p.read(&fsObject, nil)
			fsTime = h.time
			rootfs, hasRootfs = p.get(h, metric.FilesystemUsage)
			p.store(i, h)
		case "logs":
			logs, hasLogs = p.device(self, keyLogs)
		case "accelerators":
			for more := s.open('['); more; more = s.more(']') {
				p.accelerator(self)
			}
		default:
			p.usage(i, key)
		}
	}
	if i >= 0 && hasRootfs && hasLogs {
		p.req.Set(&p.batch.Samples[i], metric.EphemeralStorageUsage, rootfs+logs, fsTime)
	}
	p.start(from, self.entity.Kind, start)
}

// usage reads a member that nodes, pods and containers have in common.
func (p *Parser) usage(i int32, key []byte) {
	switch string(key) {
	case "cpu":
		p.cpu(i)
	case "memory":
		p.store(i, p.read(&memoryObject, nil))
	case "io":
		p.store(i, p.read(&ioObject, nil))
	case "swap":
		p.store(i, p.read(&swapObject, nil))
	default:
		p.scan.skip()
	}
}

// cpu reads CPU use. The kubelet's own rate counts only where it gives no
// counter; over which window it was measured, nobody knows.
func (p *Parser) cpu(i int32) {
	h := p.read(&cpuObject, nil)
	_, counter := p.get(h, metric.CPUUsage)
	_, rate := p.get(h, metric.CPUUsageRate)
	p.store(i, h)
	if i < 0 || !rate {
		return
	}
	s := &p.batch.Samples[i]
	if counter {
		s.Values.Delete(metric.CPUUsageRate)
	} else {
		s.Rates[metric.CPU] = metric.Window{End: s.Times[metric.CPU]}
	}
}

// network reads the counters of the default interface, which are the entity's
// own, and those of every interface. The interfaces share the network's time,
// wherever in the object that stands.
func (p *Parser) network(parent *subject, i int32) {
	from := len(p.batch.Samples)
	h := p.read(&networkObject, func(p *Parser, key []byte) bool {
		if string(key) != "interfaces" {
			return false
		}
		for more := p.scan.open('['); more; more = p.scan.more(']') {
			h := p.read(&networkObject, nil)
			if len(h.name) == 0 {
				p.drop(h)
				continue
			}
			p.store(p.add(p.child(parent, keyInterface, h.name), metric.Network), h)
		}
		return true
	})
	p.store(i, h)
	for j := from; j < len(p.batch.Samples); j++ {
		if s := &p.batch.Samples[j]; s.Times[metric.Network] != 0 {
			p.req.Stamp(s, metric.Network, h.time)
		}
	}
}

// device reads a file system as a part of parent, and returns what is used of it.
func (p *Parser) device(parent *subject, kind byte) (used float64, ok bool) {
	h := p.read(&fsObject, nil)
	used, ok = p.get(h, metric.FilesystemUsage)
	if len(p.readings) == h.from {
		return 0, false // null, or an object without numbers
	}
	p.store(p.add(p.child(parent, kind, nil), metric.Filesystem), h)
	return used, ok
}

// accelerator reads one object of "accelerators", which carries no time. Its
// duty cycle is in percent.
func (p *Parser) accelerator(parent *subject) {
	h := p.read(&acceleratorObject, nil)
	if len(h.name) == 0 {
		p.drop(h)
		return
	}
	for j := h.from; j < len(p.readings); j++ {
		if r := &p.readings[j]; r.id == metric.AcceleratorDutyCycle {
			r.value /= 100
		}
	}
	p.store(p.add(p.child(parent, keyAccelerator, h.name), metric.Accelerator), h)
}
