package summary

import (
	"github.com/weir-metrics/weir/metric"
)

func (p *Parser) readNode() {
	self := subject{entity: metric.Entity{Kind: metric.Node, Node: p.req.Node}}
	from := len(p.batch.Samples)
	i := p.addSample(&self, metric.CPU)
	var start int64
	s := &p.scan
	for more := s.open('{'); more; more = s.more('}') {
		switch key := s.key(); string(key) {
		case "nodeName":
			p.nodeName = s.name()
		case "startTime":
			start = p.readTime(&p.started)
		case "systemContainers":
			for more := s.open('['); more; more = s.more(']') {
				p.readContainer(nil, keySystem)
			}
		case "fs":
			p.storeReadings(i, p.readObject(&fsObject, nil))
		case "rlimit":
			p.storeReadings(i, p.readObject(&rlimitObject, nil))
		case "runtime":
			for more := s.open('{'); more; more = s.more('}') {
				switch string(s.key()) {
				case "imageFs":
					p.readFilesystem(nil, keyImageFS)
				case "containerFs":
					p.readFilesystem(nil, keyContainerFS)
				default:
					s.skip()
				}
			}
		case "network":
			p.readNetwork(nil, i)
		default:
			p.readUsage(i, key)
		}
	}
	p.setStart(from, metric.Node, start)
}

func (p *Parser) readPod() {
	s := &p.scan
	ref := p.peekMember("podRef")
	if ref == nil || ref[0] != '{' {
		s.skip() // it has no name
		return
	}
	self := p.child(nil, keyPod, ref)
	if self.entity.Pod == "" {
		s.skip()
		return
	}
	from := len(p.batch.Samples)
	i := p.addSample(self, metric.CPU)
	var start int64
	for more := s.open('{'); more; more = s.more('}') {
		switch key := s.key(); string(key) {
		case "startTime":
			start = p.readTime(&p.started)
		case "containers":
			for more := s.open('['); more; more = s.more(']') {
				p.readContainer(self, keyContainer)
			}
		case "volume":
			for more := s.open('['); more; more = s.more(']') {
				if h := p.readObject(&fsObject, nil); len(h.name) > 0 {
					p.storeReadings(p.addSample(p.child(self, keyVolume, h.name), metric.Filesystem), h)
				} else {
					p.dropReadings(h)
				}
			}
		case "ephemeral-storage":
			p.storeReadings(i, p.readObject(&ephemeralObject, nil))
		case "process_stats":
			p.storeReadings(i, p.readObject(&processObject, nil))
		case "network":
			p.readNetwork(self, i)
		default:
			p.readUsage(i, key)
		}
	}
	p.setStart(from, metric.Pod, start)
}

// readContainer reads an object of "containers" or "systemContainers".
func (p *Parser) readContainer(pod *subject, kind byte) {
	s := &p.scan
	name := p.peekMember("name")
	if len(name) <= len(`""`) || name[0] != '"' {
		s.skip() // it has no name
		return
	}
	self := p.child(pod, kind, name[1:len(name)-1])
	from := len(p.batch.Samples)
	i := p.addSample(self, metric.CPU)
	var start, fsTime int64
	var rootfs, logs float64
	var hasRootfs, hasLogs bool
	for more := s.open('{'); more; more = s.more('}') {
		switch key := s.key(); string(key) {
		case "startTime":
			start = p.readTime(&p.started)
		case "rootfs":
			h := p.readObject(&fsObject, nil)
			fsTime = h.time
			rootfs, hasRootfs = p.reading(h, metric.FilesystemUsage)
			p.storeReadings(i, h)
		case "logs":
			logs, hasLogs = p.readFilesystem(self, keyLogs)
		case "accelerators":
			for more := s.open('['); more; more = s.more(']') {
				p.readAccelerator(self)
			}
		default:
			p.readUsage(i, key)
		}
	}
	if i >= 0 && hasRootfs && hasLogs {
		p.req.Set(&p.batch.Samples[i], metric.EphemeralStorageUsage, rootfs+logs, fsTime)
	}
	p.setStart(from, self.entity.Kind, start)
}

// readUsage reads a member that nodes, pods and containers can have.
func (p *Parser) readUsage(i int32, key []byte) {
	switch string(key) {
	case "cpu":
		p.readCPU(i)
	case "memory":
		p.storeReadings(i, p.readObject(&memoryObject, nil))
	case "io":
		p.storeReadings(i, p.readObject(&ioObject, nil))
	case "swap":
		p.storeReadings(i, p.readObject(&swapObject, nil))
	default:
		p.scan.skip()
	}
}

// readCPU reads CPU usage. The kubelet's own rate is used only if there is no counter; its window
// is not known.
func (p *Parser) readCPU(i int32) {
	h := p.readObject(&cpuObject, nil)
	_, counter := p.reading(h, metric.CPUUsage)
	_, rate := p.reading(h, metric.CPUUsageRate)
	p.storeReadings(i, h)
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

// readNetwork reads the counters of the default interface, which become the entity's own, and those
// of every interface. Interfaces get the time of the network object, which may come after them.
func (p *Parser) readNetwork(parent *subject, i int32) {
	from := len(p.batch.Samples)
	h := p.readObject(&networkObject, func(p *Parser, key []byte) bool {
		if string(key) != "interfaces" {
			return false
		}
		for more := p.scan.open('['); more; more = p.scan.more(']') {
			h := p.readObject(&networkObject, nil)
			if len(h.name) == 0 {
				p.dropReadings(h)
				continue
			}
			p.storeReadings(p.addSample(p.child(parent, keyInterface, h.name), metric.Network), h)
		}
		return true
	})
	p.storeReadings(i, h)
	for j := from; j < len(p.batch.Samples); j++ {
		if s := &p.batch.Samples[j]; s.Times[metric.Network] != 0 {
			p.req.SetTime(s, metric.Network, h.time)
		}
	}
}

// readFilesystem reads a file system as a part of parent, and returns the bytes in use.
func (p *Parser) readFilesystem(parent *subject, kind byte) (used float64, ok bool) {
	h := p.readObject(&fsObject, nil)
	used, ok = p.reading(h, metric.FilesystemUsage)
	if len(p.readings) == h.from {
		return 0, false // null, or an object without numbers
	}
	p.storeReadings(p.addSample(p.child(parent, kind, nil), metric.Filesystem), h)
	return used, ok
}

// readAccelerator reads an object of "accelerators". It has no time, and its duty cycle is in
// percent.
func (p *Parser) readAccelerator(parent *subject) {
	h := p.readObject(&acceleratorObject, nil)
	if len(h.name) == 0 {
		p.dropReadings(h)
		return
	}
	for j := h.from; j < len(p.readings); j++ {
		if r := &p.readings[j]; r.id == metric.AcceleratorDutyCycle {
			r.value /= 100
		}
	}
	p.storeReadings(p.addSample(p.child(parent, keyAccelerator, h.name), metric.Accelerator), h)
}
