package cadvisor

import (
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/kubelet/payload"
)

// takeLine stores the value of one line.
func (p *Parser) takeLine(l *line, f *family, n payload.Number, t int64) {
	c := l.cgroup
	c.begin(p.round)
	v, ok := valueOf(f, n)
	if !ok {
		return
	}
	if p.takeProperty(c, f, v) || c.role == roleSandbox && f.use != network {
		return
	}
	// Lines with the same labels in one family belong to different samples.
	if l.family != f || l.round != p.round {
		l.family, l.round, l.count = f, p.round, 0
	}
	k := int(l.count)
	l.count++
	switch f.use {
	case faults:
		p.takeFaults(l, k, f.id, v, t)
	case sum:
		p.add(&c.subject, k, f.id, v, t)
	case limit:
		if v > 0 && c.entity.Kind != metric.Node {
			p.set(&c.subject, k, f.id, v, t)
		}
	case network:
		p.takeNetwork(l, k, f.id, v, t)
	case disk, volume, gpu:
		p.takePart(l, k, f, v, t)
	default:
		p.set(&c.subject, k, f.id, v, t)
	}
}

// takeProperty stores a value of a family that describes the cgroup. It returns false if v is also a value
// of a metric, or only that.
func (p *Parser) takeProperty(c *cgroup, f *family, v float64) bool {
	switch f.use {
	case startTime:
		c.start = int64(v)
	case quota:
		c.quota = v
	case period:
		c.period = v
	case processes:
		p.takeProcesses(c, v)
		return false
	default:
		return false
	}
	return true
}

func (p *Parser) takeProcesses(c *cgroup, v float64) {
	if !c.hasProcesses {
		p.withProcesses = append(p.withProcesses, c.pathNode)
	}
	c.hasProcesses, c.own = true, int32(min(v, 1<<20))
}

// takeFaults stores a counter of page faults, unless it is without the cgroups below.
func (p *Parser) takeFaults(l *line, k int, id metric.ID, v float64, t int64) {
	switch l.labels {
	case nothing:
		p.set(&l.cgroup.subject, k, id, v, t)
	case majorFaults:
		p.set(&l.cgroup.subject, k, metric.MemoryMajorPageFaults, v, t)
	}
}

// takePart stores a value of a device, volume or accelerator. What all devices have read and written,
// and what a container's volumes use, is also added to the cgroup's value.
func (p *Parser) takePart(l *line, k int, f *family, v float64, t int64) {
	if l.part == nil {
		return
	}
	p.set(l.part, k, f.id, v, t)
	if f.use == disk || f.use == volume && f.id == metric.FilesystemUsage && l.cgroup.role == roleContainer {
		p.add(&l.cgroup.subject, k, f.id, v, t)
	}
}

// valueOf returns n in the unit of the family's metric.
func valueOf(f *family, n payload.Number) (float64, bool) {
	if f.scale == 9 {
		ns, ok := n.Scaled(9)
		return float64(ns), ok
	}
	v, ok := n.Value()
	switch f.scale {
	case -2:
		v /= 100
	case -3:
		v /= 1000
	}
	return v, ok
}

// sample returns the k-th sample of s; nil if the bound on samples is reached. It appends the
// sample if it does not exist.
func (p *Parser) sample(s *subject, k int, g metric.Group) *metric.Sample {
	if !s.seen {
		s.seen = true
		s.samples = s.samples[:0]
		s.entity.Node = p.req.Node
		p.touched = append(p.touched, s)
	}
	for len(s.samples) <= k {
		s.samples = append(s.samples, p.req.Add(p.batch, s.entity, g))
	}
	if i := s.samples[k]; i >= 0 {
		return &p.batch.Samples[i]
	}
	return nil
}

// set stores a value in the k-th sample of s, if such entities have the metric.
func (p *Parser) set(s *subject, k int, id metric.ID, v float64, t int64) {
	if !id.Describe().Kinds.Has(s.entity.Kind) {
		return
	}
	if sample := p.sample(s, k, id.Describe().Group); sample != nil {
		p.req.Set(sample, id, v, t)
	}
}

// add adds to a value in the k-th sample of s, if such entities have the metric.
func (p *Parser) add(s *subject, k int, id metric.ID, v float64, t int64) {
	if !id.Describe().Kinds.Has(s.entity.Kind) {
		return
	}
	if sample := p.sample(s, k, id.Describe().Group); sample != nil {
		before, _ := sample.Values.Get(id)
		p.req.Set(sample, id, before+v, t)
	}
}

// takeNetwork stores a counter of an interface. The counters of eth0 are also those of the
// pod or node, as in the kubelet.
func (p *Parser) takeNetwork(l *line, k int, id metric.ID, v float64, t int64) {
	if l.part == nil {
		return
	}
	c := l.cgroup
	if !l.part.seen && l.labels != loopback {
		c.interfaces++
		c.onlyInterface = l.part
	}
	p.set(l.part, k, id, v, t)
	if l.labels == eth0 {
		c.eth0 = true
		p.set(&c.subject, k, id, v, t)
	}
}

// takeMachine stores a value of the machine.
func (p *Parser) takeMachine(f *family, n payload.Number, t int64) {
	v, ok := valueOf(f, n)
	if !ok || v == 0 {
		return
	}
	if f.id == metric.CPUNodeCapacity {
		p.batch.Cores = v * metric.Nanocores.Prometheus()
	}
	p.set(&p.node.subject, 0, f.id, v, t)
}

// completeSamples sets the values that are known only at the end of the payload.
func (p *Parser) completeSamples() {
	for _, s := range p.touched {
		if c := s.cgroup; s == &c.subject {
			p.setCPULimit(c)
		}
	}
	p.setPodNetworks()
	p.countProcesses()
	for _, s := range p.touched {
		c := s.cgroup
		in := c.instance
		if c.start > 0 {
			in.Start, in.Origin = c.start, metric.StartReported
			if c.role == roleOther || c.role == rolePod { // children of the cgroup move it; other endpoints have other starts
				in.Origin = metric.StartCgroup
			}
		}
		if c.hasProcesses {
			in.Processes = c.own + c.below
		}
		for _, i := range s.samples {
			if i >= 0 {
				p.batch.Samples[i].Instance = in
			}
		}
		s.seen = false
	}
}

// setCPULimit computes the CPU limit from the quota and the period.
func (p *Parser) setCPULimit(c *cgroup) {
	if c.quota > 0 && c.period > 0 && c.entity.Kind != metric.Node {
		for k := range c.samples {
			p.set(&c.subject, k, metric.CPULimit, c.quota/c.period*1e9, 0)
		}
	}
}

// setPodNetworks copies the counters of a pod's only interface to the pod, if it is not
// eth0. A pod with several interfaces and no eth0 gets none.
func (p *Parser) setPodNetworks() {
	parts := len(p.touched) // the loop may add to touched
	for _, s := range p.touched[:parts] {
		c := s.cgroup
		if c.onlyInterface != s || c.interfaces != 1 || c.eth0 {
			continue
		}
		for k, i := range s.samples {
			if i < 0 {
				continue
			}
			whole := p.sample(&c.subject, k, metric.Network)
			if whole == nil {
				continue
			}
			part := &p.batch.Samples[i]
			for _, id := range [...]metric.ID{metric.NetworkRx, metric.NetworkRxErrors, metric.NetworkTx, metric.NetworkTxErrors} {
				if v, ok := part.Values.Get(id); ok {
					whole.Values.Set(id, v)
				}
			}
			whole.Times[metric.Network] = part.Times[metric.Network]
			whole.Received |= part.Received & (1 << metric.Network)
		}
	}
}
