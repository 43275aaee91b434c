package simulator

import (
	"fmt"
	"slices"
	"time"
)

// condition is a fault with its beginning and end, attached to the node, pod or
// container that it concerns. Times are nanoseconds since the Unix epoch.
type condition struct {
	Fault
	from, until int64
}

// holds returns the first condition of that kind that is in effect at now, or
// nil.
func holds(cs []condition, k Kind, now int64) *condition {
	for i := range cs {
		if c := &cs[i]; c.Kind == k && c.from <= now && now < c.until {
			return c
		}
	}
	return nil
}

// clock returns what the node's clock shows at t.
func (n *Node) clock(t int64) int64 {
	shown := t
	for i := range n.faults {
		if c := &n.faults[i]; c.Kind == ClockStep && c.from <= t {
			shown += int64(c.By)
		}
	}
	return shown
}

// seen returns the moment of the state that the node reports at now: now
// itself, or the beginning of a Stale fault.
func (n *Node) seen(now int64) int64 {
	if c := holds(n.faults, Stale, now); c != nil {
		return c.from
	}
	return now
}

// seen is like Node.seen, for the pod's state.
func (p *Pod) seen(now int64) int64 {
	now = p.Node.seen(now)
	if c := holds(p.faults, Stale, now); c != nil {
		return c.from
	}
	return now
}

// apply makes the faults part of the fleet, in the order of their times. A
// fault that matches nothing is an error, because it is probably misspelt.
func (f *Fleet) apply(faults []Fault) error {
	faults = slices.Clone(faults)
	slices.SortStableFunc(faults, func(a, b Fault) int { return int(min(max(a.At-b.At, -1), 1)) })
	for i := range faults {
		c := condition{Fault: faults[i], from: f.options.Start.Add(faults[i].At).UnixNano(), until: never}
		if c.For > 0 {
			c.until = c.from + int64(c.For)
		}
		if f.applyOne(c) == 0 {
			return fmt.Errorf("apply %q: it concerns no node, pod or container of the fleet", c.Fault)
		}
	}
	return nil
}

// applyOne applies one fault. It returns how many nodes, pods or containers the
// fault concerns.
func (f *Fleet) applyOne(c condition) (hits int) {
	if c.Kind == TwoNodes {
		return f.twoNodes(c)
	}
	for _, n := range f.nodes {
		if !match(c.Node, n.Name) {
			continue
		}
		if c.Kind == Impostor && n.impostor(c.As) == nil {
			continue // there is no such other node
		}
		if c.Node != "" && c.Pod == "" {
			hits++
			n.faults = append(n.faults, c)
			if c.Kind == Reboot {
				n.reboot(c)
			}
			continue
		}
		for _, p := range slices.Clone(n.pods) {
			// A fault concerns only the pod that has the name now, not an earlier
			// generation of it.
			if c.hits(p.Namespace, p.Name) && (p.unbound == never || c.Style == Older) && p.bound < never {
				hits += p.apply(c)
			}
		}
	}
	return hits
}

// apply applies the condition to the pod. It returns how many pods or
// containers it concerns.
func (p *Pod) apply(c condition) (hits int) {
	switch {
	case c.Kind == Replace, c.Kind == Pending, c.Kind == Duplicate && c.Style == OldInstance:
		return p.replace(c)
	case c.Kind == Finish:
		return p.finish(c)
	case c.Kind == Terminate:
		return p.terminate(c)
	case c.Container == "" && (c.Kind == Missing && c.Style != Older || c.Kind == Stale || c.Kind == Jitter || c.Kind == Zero),
		c.Kind == Duplicate && c.Style == TwoQoS:
		p.faults = append(p.faults, c)
		return 1
	}
	for _, container := range p.Containers {
		if !match(c.Container, container.Name) {
			continue
		}
		switch {
		case c.Kind == Restart:
			container.restart(c.from, c.from, c.For)
		case c.Kind == Duplicate && c.Style == TwoLines:
			container.restart(c.from, c.until, 0)
		case c.Kind == Reset:
			container.reset(c.from)
		case c.Kind == Assign:
			container.assign(c)
		default: // Jitter, Missing, Zero, Leap, SlowStart, Duplicate with two paths
			container.faults = append(container.faults, c)
		}
		hits++
	}
	return hits
}

// last returns the run that began last before t, or nil.
func (c *Container) last(t int64) *instance {
	var found *instance
	for i := range c.runs {
		if r := &c.runs[i]; r.from <= t {
			found = r
		}
	}
	return found
}

// restart ends the current run at end and starts another after at, by default
// about a second later. If end is later than that, two runs exist side by side.
func (c *Container) restart(at, end int64, pause time.Duration) {
	old := c.last(at)
	if old == nil || old.until <= at {
		return
	}
	k := c.key.num(int64(len(c.runs)))
	gap := int64(pause)
	if gap == 0 {
		gap = k.between("gap", second/3, 2*second)
	}
	old.until = end
	c.runs = append(c.runs, newInstance(k, at+gap, c.peak, c.limit))
}

// reset makes the counter begin at 0 again in the same run.
func (c *Container) reset(at int64) {
	old := c.last(at)
	if old == nil || old.until <= at {
		return
	}
	next := *old
	next.from, next.follows = at, true
	next.wave = newWave(old.key.with("reset").num(at), c.peak)
	old.until = at
	c.runs = append(c.runs, next)
}

// twoNodes makes other nodes report an older pod of the same name, which still
// runs there and which the API server no longer has.
func (f *Fleet) twoNodes(c condition) (hits int) {
	var pods []*Pod
	for _, n := range f.nodes {
		for _, p := range n.pods {
			if c.hits(p.Namespace, p.Name) && p.bound < p.unbound && p.unbound == never {
				pods = append(pods, p)
			}
		}
	}
	for _, n := range f.nodes {
		if !match(c.Node, n.Name) {
			continue
		}
		for _, p := range pods {
			if p.Node == n {
				continue
			}
			old := p.again(max(p.start-3600*second, n.boot+60*second) + int64(n.Index))
			old.Node = n
			old.bound, old.unbound, old.gone = never, never, c.until
			for _, container := range old.Containers {
				container.runs[0].until = c.until
			}
			old.sandbox.until = c.until
			if c.At > 0 {
				// Until then, the node does not report it.
				hidden := condition{Fault: Fault{Kind: Missing, Pod: p.Name}, until: c.from}
				old.faults = append(old.faults, hidden)
			}
			n.pods = append(n.pods, old)
			hits++
		}
	}
	return hits
}
