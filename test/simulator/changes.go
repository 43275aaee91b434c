package simulator

import (
	"slices"
	"time"
)

// A ChangeKind says what happened to an API object.
type ChangeKind uint8

// The kinds of change.
const (
	Added ChangeKind = iota
	Modified
	Deleted
)

// String returns the type of a watch event.
func (k ChangeKind) String() string { return [...]string{"ADDED", "MODIFIED", "DELETED"}[k] }

// A PodChange is one change of a Node or Pod object at the API server.
type PodChange struct {
	At   int64 // nanoseconds since the Unix epoch
	Kind ChangeKind
	Node *Node
	Pod  *Pod // nil if the change is the node's own
}

// statusEvery is how often a kubelet writes its node's status if nothing
// changes.
const statusEvery = 300 * second

// Follower returns the changes in a fleet in order of time. It computes when
// the next change happens on each node and skips nodes without one. Only one
// goroutine may use it.
type Follower struct {
	fleet *Fleet
	at    int64
	next  []int64 // for each node, when something changes on it next
}

// Follow returns a Follower for the changes after since.
func (f *Fleet) Follow(since time.Time) *Follower {
	return &Follower{fleet: f, at: since.UnixNano(), next: make([]int64, len(f.nodes))}
}

// Changes appends to dst the changes up to now that it has not yet returned.
func (w *Follower) Changes(dst []PodChange, now time.Time) []PodChange {
	t := now.UnixNano()
	if t <= w.at {
		return dst
	}
	first := len(dst)
	for i, n := range w.fleet.nodes {
		if w.next[i] > t {
			continue
		}
		n.advance(t)
		n.mu.RLock()
		w.next[i] = never
		record := func(at int64, kind ChangeKind, p *Pod) {
			switch {
			case at > t:
				w.next[i] = min(w.next[i], at)
			case at > w.at:
				dst = append(dst, PodChange{At: at, Kind: kind, Node: n, Pod: p})
			}
		}
		record(n.churn.due, Modified, nil)
		n.moments(w.at, t, func(at int64, kind ChangeKind) { record(at, kind, nil) })
		for _, p := range n.pods {
			p.moments(func(at int64, kind ChangeKind) { record(at, kind, p) })
		}
		n.mu.RUnlock()
	}
	w.at = t
	slices.SortStableFunc(dst[first:], func(a, b PodChange) int { return int(min(max(a.At-b.At, -1), 1)) })
	return dst
}

// moments calls do for every moment in (after, upto] at which the Node object
// changes, and for the next one after it.
func (n *Node) moments(after, upto int64, do func(at int64, kind ChangeKind)) {
	phase := n.key.between("status", 0, statusEvery)
	for at := (after-phase)/statusEvery*statusEvery + phase; ; at += statusEvery {
		if do(at, Modified); at > upto {
			break
		}
	}
	for i := range n.faults {
		switch f := &n.faults[i]; f.Kind {
		case Unlisted:
			do(f.from, Deleted)
			do(f.until, Added)
		case NotReady, NoAddress:
			do(f.from, Modified)
			do(f.until, Modified)
		}
	}
}

// moments calls do for every moment at which the Pod object changes. The order
// is not defined.
func (p *Pod) moments(do func(at int64, kind ChangeKind)) {
	if p.bound >= p.unbound {
		return
	}
	do(p.bound, Added)
	do(p.unbound, Deleted)
	within := func(at int64) {
		if p.bound < at && at < p.unbound {
			do(at, Modified)
		}
	}
	for i := range p.faults {
		if p.faults[i].Kind == Terminate {
			within(p.faults[i].from)
		}
	}
	for i := range p.Node.faults {
		if p.Node.faults[i].Kind == Reboot {
			within(p.Node.faults[i].until)
		}
	}
	for _, c := range p.Containers {
		for i := range c.runs {
			within(c.processStart(&c.runs[i]))
			within(c.runs[i].until)
		}
		for i := range c.faults {
			if c.faults[i].Kind == Finish {
				within(c.faults[i].from)
			}
		}
	}
}

// Version returns the Pod object's resource version: the time of its last
// change up to now, but not before the fleet's start.
func (p *Pod) Version(now time.Time) int64 {
	p.Node.mu.RLock()
	defer p.Node.mu.RUnlock()
	version, t := p.Node.fleet.options.Start.UnixNano(), now.UnixNano()
	p.moments(func(at int64, _ ChangeKind) {
		if at <= t {
			version = max(version, at)
		}
	})
	return version
}

// Version is like Pod.Version, for the Node object.
func (n *Node) Version(now time.Time) int64 {
	version, t := n.fleet.options.Start.UnixNano(), now.UnixNano()
	n.moments(t, t, func(at int64, _ ChangeKind) {
		if at <= t {
			version = max(version, at)
		}
	})
	return version
}
