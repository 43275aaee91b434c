package simulator

import "slices"

// replace ends the pod at c.from in the API server and starts another with its
// name. With OldInstance, the matching containers keep running. With Pending,
// the new pod is bound at once, and its containers start when the fault ends.
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
			container.runs = container.runs[:n-1] // it would restart after its end
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
		next.Containers[i].role = container.role
	}
	next.order(next.start)
	p.Node.pods = append(p.Node.pods, next)
	return hits
}

// lasting returns the faults that also apply to the next pod of the name.
// Finish and Terminate do not.
func lasting(cs []condition) []condition {
	return slices.DeleteFunc(slices.Clone(cs), func(c condition) bool { return c.Kind == Finish || c.Kind == Terminate })
}

// delay makes a bound pod start at begun, which may be never.
func (p *Pod) delay(begun int64) {
	p.begun = begun
	p.sandbox.shift(begun)
	for _, c := range p.Containers {
		c.runs[0].shift(begun)
	}
}

// shift moves the start of an instance to between 0.1 and 1 s after begun. If
// begun is never, the instance never starts.
func (i *instance) shift(begun int64) {
	if begun == never {
		i.start, i.from = never, never
		return
	}
	i.start = begun + i.key.between("shift", second/10, second)
	i.from = i.start
}

// finish ends the matching containers for good at c.from. The pod ends when all
// its containers have ended.
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

// phase returns the pod's phase as the API server reports it at now.
func (p *Pod) phase(now int64) string {
	begun, ended, failed := false, true, false
	for _, c := range p.Containers {
		if !c.required() {
			continue
		}
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

// terminate ends the matching containers at c.from. The API server has the pod
// as being deleted and still reports them as running until the object is
// deleted.
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

// end makes all runs end at the given time at the latest.
func (c *Container) end(at int64) {
	for i := range c.runs {
		c.runs[i].until = min(c.runs[i].until, at)
	}
}
