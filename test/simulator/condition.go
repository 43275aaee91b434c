package simulator

import (
	"fmt"
	"slices"
	"time"
)

// condition is a fault that holds for a while, attached to what it is about.
// Times are nanoseconds since the Unix epoch.
type condition struct {
	Fault
	from, until int64
}

// holds returns the first condition of that kind that holds at now, or nil.
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

// seen returns the moment at which the node saw last what it reports at now:
// now itself, or when its reports began to stand still.
func (n *Node) seen(now int64) int64 {
	if c := holds(n.faults, Stale, now); c != nil {
		return c.from
	}
	return now
}

// seen is as Node.seen, for what the node says of the pod.
func (p *Pod) seen(now int64) int64 {
	now = p.Node.seen(now)
	if c := holds(p.faults, Stale, now); c != nil {
		return c.from
	}
	return now
}

// apply makes the faults part of the fleet, in the order of their times. It is
// an error if one concerns nothing: it is misspelt.
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

// applyOne returns how many nodes, pods or containers it concerns.
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
			continue
		}
		for _, p := range slices.Clone(n.pods) {
			// An earlier generation of a pod is history: faults are about the
			// one that has the name now.
			if c.hits(p.Namespace, p.Name) && p.unbound == never && p.bound < never {
				hits += p.apply(c)
			}
		}
	}
	return hits
}

// apply returns how many pods or containers it concerns.
func (p *Pod) apply(c condition) (hits int) {
	switch {
	case c.Kind == Replace, c.Kind == Pending, c.Kind == Duplicate && c.Style == OldInstance:
		return p.replace(c)
	case c.Kind == Finish:
		return p.finish(c)
	case c.Kind == Terminate:
		return p.terminate(c)
	case c.Container == "" && (c.Kind == Missing || c.Kind == Stale || c.Kind == Jitter || c.Kind == Zero),
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
		default: // Jitter, Missing, Zero, Leap, Duplicate under two paths
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

// restart ends the current run at end and starts another after a while. If end
// is later than that, two runs live side by side.
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

// reset makes the counter begin again from 0 in the same run.
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

// twoNodes lets other nodes report the pod: an older one of its name, which
// the API server has forgotten, that lives on there.
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
				// Until then, the node does not speak of it.
				hidden := condition{Fault: Fault{Kind: Missing, Pod: p.Name}, until: c.from}
				old.faults = append(old.faults, hidden)
			}
			n.pods = append(n.pods, old)
			hits++
		}
	}
	return hits
}
