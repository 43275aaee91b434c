package simulator

import "time"

// current returns the run that the API server reports at t: the one whose process
// started last. It is nil before the first run.
func (c *Container) current(t int64) *instance {
	var found *instance
	for i := range c.runs {
		if r := &c.runs[i]; r.from <= t && c.processStart(r) <= t {
			found = r
		}
	}
	return found
}

// CPU returns the true counter of the container's current run at that moment,
// in nanoseconds of CPU time. It does not depend on what is reported. It is 0
// before the run starts and does not change after the run has ended.
func (c *Container) CPU(at time.Time) int64 {
	if r := c.current(at.UnixNano()); r != nil {
		return r.cpu(at.UnixNano())
	}
	return 0
}

// ID returns the ID of the container's current run, without a scheme. It is
// empty before the first run.
func (c *Container) ID(at time.Time) string {
	if r := c.current(at.UnixNano()); r != nil {
		return r.id()
	}
	return ""
}

// Started returns when the container's current run started, or the zero time if
// there was none.
func (c *Container) Started(at time.Time) time.Time {
	if r := c.current(at.UnixNano()); r != nil {
		return time.Unix(0, r.start)
	}
	return time.Time{}
}

// Memory returns the container's working set in bytes, or 0 if no run exists.
func (c *Container) Memory(at time.Time) int64 {
	t := at.UnixNano()
	if r := c.current(t); r != nil && r.alive(t) {
		return r.tide.at(t)
	}
	return 0
}

// CPU returns the counter of the pod's cgroup, in nanoseconds of CPU time: the
// sum of its sandbox and of all runs of its containers, also those that ended.
func (p *Pod) CPU(at time.Time) int64 { return p.cpu(at.UnixNano()) }

func (p *Pod) cpu(t int64) int64 {
	sum := p.sandbox.cpu(t)
	for _, c := range p.Containers {
		for i := range c.runs {
			sum += c.runs[i].cpu(t)
		}
	}
	return sum
}

// Memory returns the working set of the pod's cgroup in bytes.
func (p *Pod) Memory(at time.Time) int64 { return p.memory(at.UnixNano()) }

func (p *Pod) memory(t int64) (sum int64) {
	if p.sandbox.alive(t) {
		sum = p.sandbox.tide.at(t)
	}
	for _, c := range p.Containers {
		for i := range c.runs {
			if r := &c.runs[i]; r.alive(t) {
				sum += r.tide.at(t)
			}
		}
	}
	return sum
}

// Network returns the bytes that the pod's interface has received and sent. For
// a pod on the host's network, these are the node's.
func (p *Pod) Network(at time.Time) (received, sent int64) { return p.network(at.UnixNano()) }

func (p *Pod) network(t int64) (received, sent int64) {
	if p.HostNetwork {
		return p.Node.network(t)
	}
	life := min(t, p.gone) - p.sandbox.start
	return p.rx.at(life), p.tx.at(life)
}

// CPU returns what the node has used since it booted, in nanoseconds of CPU
// time: all pods it ever ran, its daemons and its kernel.
func (n *Node) CPU(at time.Time) int64 { return n.cpu(at.UnixNano()) }

func (n *Node) cpu(t int64) int64 {
	return n.podsCPU(t, "") + n.kubelet.cpu(t) + n.runtime.cpu(t) + n.kernel.cpu(t)
}

// podsCPU returns the sum of the pods of a QoS class; an empty class means all
// pods.
func (n *Node) podsCPU(t int64, qos string) (sum int64) {
	sum = n.churn.past.used(qos)
	for _, p := range n.pods {
		if qos == "" || p.QoS == qos {
			sum += p.cpu(t)
		}
	}
	return sum
}

// Memory returns the node's working set in bytes.
func (n *Node) Memory(at time.Time) int64 { return n.memory(at.UnixNano()) }

func (n *Node) memory(t int64) int64 {
	return n.podsMemory(t, "") + n.kubelet.tide.at(t) + n.runtime.tide.at(t) + n.kernel.tide.at(t)
}

func (n *Node) podsMemory(t int64, qos string) (sum int64) {
	for _, p := range n.pods {
		if qos == "" || p.QoS == qos {
			sum += p.memory(t)
		}
	}
	return sum
}

// network returns the bytes that the node's interface has received and sent:
// those of its pods, and a small amount of its own.
func (n *Node) network(t int64) (received, sent int64) {
	life := t - n.boot
	received, sent = n.churn.past.rx+(1<<29)+used(4000, life), n.churn.past.tx+(1<<28)+used(9000, life)
	for _, p := range n.pods {
		if !p.HostNetwork {
			r, s := p.network(t)
			received, sent = received+r, sent+s
		}
	}
	return received, sent
}

// countedCPU returns the node's counter as it is reported: cpu minus its value
// at the last reset.
func (n *Node) countedCPU(t int64) int64 {
	var lost int64
	for i := range n.faults {
		if c := &n.faults[i]; c.Kind == Reset && c.from <= t {
			lost = n.cpu(c.from)
		}
	}
	return n.cpu(t) - lost
}
