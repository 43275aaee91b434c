package simulator

import "slices"

// replace ends the pod at c.from, as far as the API server knows, and starts
// another under its name. Of an OldInstance, the chosen containers live on. One
// that is Pending is bound at once, and its containers start when the fault ends.
func (p *Pod) replace(c condition) (hits int) {
	if p.bound > c.from {
		return 0
	}
	gap := p.key.between("gap", second, 3*second)
	end := c.from
	switch {
	case c.Kind == Duplicate:
		end = c.until
	case c.Kind == Pending:
		gap = 0
	case c.For > 0:
		gap = int64(c.For)
	}
	for _, container := range p.Containers {
		until := c.from
		if match(c.Container, container.Name) {
			until = end
			hits++
		}
		if n := len(container.runs); n > 1 && container.runs[n-1].from > c.from {
			container.runs = container.runs[:n-1] // it was to restart, and never will
		}
		container.end(until)
	}
	if hits == 0 {
		return 0
	}
	p.unbound, p.gone = c.from, end
	p.sandbox.until = end
	next := p.again(c.from + gap)
	if c.Kind == Pending {
		next.delay(c.until)
	}
	next.faults = lasting(p.faults)
	for i, container := range p.Containers {
		next.Containers[i].faults = lasting(container.faults)
	}
	p.Node.pods = append(p.Node.pods, next)
	return hits
}

// lasting returns the faults that the next pod of a name has too: not how this
// one ended.
func lasting(cs []condition) []condition {
	return slices.DeleteFunc(slices.Clone(cs), func(c condition) bool { return c.Kind == Finish || c.Kind == Terminate })
}

// delay lets a pod that is bound come to life only at begun, perhaps never.
func (p *Pod) delay(begun int64) {
	p.begun = begun
	p.sandbox.shift(begun)
	for _, c := range p.Containers {
		c.runs[0].shift(begun)
	}
}

// shift moves the beginning of an instance to begun, or a little later than
// that as it was later than its pod.
func (i *instance) shift(begun int64) {
	if begun == never {
		i.start, i.from = never, never
		return
	}
	i.start = begun + i.key.between("shift", second/10, second)
	i.from = i.start
}

// finish ends the chosen containers for good at c.from; the pod, once all of
// its containers have.
func (p *Pod) finish(c condition) (hits int) {
	ended := true
	for _, container := range p.Containers {
		if match(c.Container, container.Name) {
			hits++
			container.end(c.from)
			container.faults = append(container.faults, c)
		}
		ended = ended && holds(container.faults, Finish, never-1) != nil
	}
	if hits > 0 && ended {
		p.gone, p.sandbox.until = c.from, min(p.sandbox.until, c.from)
	}
	return hits
}

// phase returns what the API server calls the pod's phase at now.
func (p *Pod) phase(now int64) string {
	begun, ended, failed := false, true, false
	for _, c := range p.Containers {
		begun = begun || c.current(now) != nil
		f := holds(c.faults, Finish, now)
		ended = ended && f != nil
		failed = failed || f != nil && f.Style == HasFailed
	}
	switch {
	case !begun:
		return "Pending"
	case ended && failed:
		return "Failed"
	case ended:
		return "Succeeded"
	}
	return "Running"
}

// terminate ends the chosen containers at c.from. The API server, which knows
// that the pod is being deleted, takes them for running until the object goes.
func (p *Pod) terminate(c condition) (hits int) {
	ended := true
	for _, container := range p.Containers {
		if match(c.Container, container.Name) {
			hits++
			container.end(c.from)
		}
		r := container.last(never)
		ended = ended && (r == nil || r.until <= c.from)
	}
	if hits == 0 {
		return 0
	}
	if ended {
		p.gone, p.sandbox.until = c.from, min(p.sandbox.until, c.from)
	}
	p.unbound = c.until
	p.faults = append(p.faults, c)
	return hits
}

// end lets no run live beyond at.
func (c *Container) end(at int64) {
	for i := range c.runs {
		c.runs[i].until = min(c.runs[i].until, at)
	}
}
