package simulator

// reboot ends all runs of the node at c.from. The pods that the API server has begin
// again at c.until.
func (n *Node) reboot(c condition) {
	for _, p := range n.pods {
		if p.unbound <= c.from || p.bound == never {
			p.end(c.from)
			continue
		}
		for _, container := range p.Containers {
			again := container.last(c.from) != nil && container.role != Ephemeral && holds(container.faults, Finish, c.from) == nil
			for i := range container.runs {
				if r := &container.runs[i]; r.from > c.from {
					r.from, r.start = max(r.from, c.until), max(r.start, c.until)
					again = false
				}
			}
			container.end(c.from)
			if again {
				k := container.key.num(int64(len(container.runs)))
				container.runs = append(container.runs, newInstance(k, c.until+k.between("boot", second/2, 4*second), container.peak, container.limit))
			}
		}
		p.order(c.until)
	}
}

// end makes the containers and the sandbox of a pod end that the API server no longer has,
// if they still run.
func (p *Pod) end(at int64) {
	for _, c := range p.Containers {
		c.end(at)
	}
	p.gone, p.sandbox.until = min(p.gone, at), min(p.sandbox.until, at)
}

// booted returns when the present cgroup of the pod was made, and the CPU that the pod had
// used before that.
func (p *Pod) booted(now int64) (at, before int64) {
	at = p.begun
	for i := range p.Node.faults {
		if c := &p.Node.faults[i]; c.Kind == Reboot && p.begun < c.from && p.bound < never && c.until <= now {
			at, before = c.until, p.cpu(c.until)
		}
	}
	return at, before
}

// assign gives a container its role.
func (c *Container) assign(fault condition) {
	c.role = fault.Style
	switch fault.Style {
	case Ephemeral:
		c.runs = c.runs[:1]
		c.runs[0].start, c.runs[0].from, c.runs[0].until = fault.from, fault.from, fault.until
	case Init:
		c.faults = append(c.faults, fault)
		c.Pod.order(c.Pod.start)
	}
}

// order makes the pod's init containers end before the others begin, among the runs that
// began at or after since. An ephemeral container of a pod before is not in this one.
func (p *Pod) order(since int64) {
	ready := int64(0)
	for _, c := range p.Containers {
		r := &c.runs[len(c.runs)-1]
		switch {
		case c.role == Ephemeral && r.start >= since && p.bound == since:
			r.start, r.from, r.until = never, never, never
		case c.role == Init && r.start >= since && r.start < never:
			last := second
			for i := range c.faults {
				if f := &c.faults[i]; f.Kind == Assign && f.For > 0 {
					last = int64(f.For)
				}
			}
			r.until = r.start + last
			ready = max(ready, r.until)
		}
	}
	for _, c := range p.Containers {
		if r := &c.runs[len(c.runs)-1]; c.required() && c.role != Sidecar && r.start >= since && r.start < ready {
			r.start = ready + r.key.between("after init", second/10, second)
			r.from = r.start
		}
	}
}

// required reports whether the pod is ready only while the container runs.
func (c *Container) required() bool { return c.role != Init && c.role != Ephemeral }

// Required reports whether the container is a regular one or a sidecar.
func (c *Container) Required() bool { return c.required() }

// Role returns Init, Sidecar or Ephemeral; NoStyle for a regular container.
func (c *Container) Role() Style { return c.role }

// processStart returns when the process of a run started, as the API server reports it.
func (c *Container) processStart(r *instance) int64 {
	for i := range c.faults {
		if f := &c.faults[i]; f.Kind == SlowStart && f.from <= r.start && r.start < f.until && r.start < never {
			return r.start + int64(f.By)
		}
	}
	return r.start
}

// eachRole writes the three lists of containers of a pod: init containers and sidecars,
// regular ones, and ephemeral ones that exist. An empty first or last list is left out.
func (p *Pod) eachRole(now int64, initial, regular, ephemeral string, w *writer, write func(c *Container)) {
	list := func(name string, always bool, in func(c *Container) bool) {
		open := always
		if always {
			w.array(name)
		}
		for _, c := range p.Containers {
			if !in(c) {
				continue
			}
			if !open {
				w.array(name)
				open = true
			}
			w.item()
			write(c)
			w.end()
		}
		if open {
			w.endArray()
		}
	}
	list(initial, false, func(c *Container) bool { return c.role == Init || c.role == Sidecar })
	list(regular, true, func(c *Container) bool { return c.role == NoStyle })
	list(ephemeral, false, func(c *Container) bool { return c.role == Ephemeral && c.last(now) != nil })
}
