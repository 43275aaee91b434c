package simulator

import (
	"slices"
	"time"
)

// Churn replaces pods without end: each place for a pod on a node gets another
// pod once in 1/Options.Churn minutes, at a time that depends on the place's
// key. With churn, the pods of a fleet are not all made at the start: a node
// makes the pods that exist at the requested moment, and forgets those that
// ended longer ago than memory. The answers still do not depend on the order of
// the requests, as long as they are not older than that.

// memory is how long a node remembers pods that churn has ended. After that,
// Truth no longer has them.
const memory = 5 * 60 * second

// churn is the state that a node needs to replace its pods.
type churn struct {
	period int64
	places []*Pod // the present pod of each place
	due    int64  // when the next pod is replaced; never without churn
	past   past   // of the pods that are forgotten: the node's counters include it
}

// past is the usage of the pods that a node has forgotten.
type past struct {
	cpu    map[string]int64 // by QoS class
	rx, tx int64
}

// startChurn prepares n, which still has the pods that New made.
func (n *Node) startChurn(perMinute float64) {
	n.churn.due = never
	if perMinute <= 0 {
		return
	}
	n.churn.period = int64(60 * float64(second) / perMinute)
	n.churn.past.cpu = map[string]int64{}
	n.churn.places = slices.Clone(n.pods[:n.fleet.options.Pods])
	n.churn.due = n.nextDue(n.fleet.options.Start.UnixNano())
}

// dueAfter returns when the pod in a place is replaced next after t. For a
// static pod it returns never.
func (n *Node) dueAfter(position int, t int64) int64 {
	if n.churn.places[position].owner.kind == "Node" {
		return never
	}
	first := n.fleet.options.Start.UnixNano() + n.key.with("churn").num(int64(position)).between("first", 0, n.churn.period)
	if t < first {
		return first
	}
	return first + ((t-first)/n.churn.period+1)*n.churn.period
}

func (n *Node) nextDue(t int64) int64 {
	due := int64(never)
	for position := range n.churn.places {
		due = min(due, n.dueAfter(position, t))
	}
	return due
}

// Advance replaces pods on every node up to now. Requests to one node do this
// for that node; Advance is for callers that only use Pods.
func (f *Fleet) Advance(now time.Time) {
	if f.options.Churn > 0 {
		for _, n := range f.nodes {
			n.advance(now.UnixNano())
		}
	}
}

func (n *Node) advance(now int64) {
	if n.fleet.options.Churn == 0 {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.churn.due > now {
		return
	}
	n.pods = slices.Clone(n.pods) // another goroutine may be reading it
	for n.churn.due <= now {
		at := n.churn.due
		for position, p := range n.churn.places {
			if n.dueAfter(position, at-1) == at && p.replace(condition{Fault: Fault{Kind: Replace}, from: at, until: never}) > 0 {
				next := n.pods[len(n.pods)-1]
				if next.owner.kind != "StatefulSet" {
					next.Name = next.owner.name + "-" + next.key.suffix(8)
				}
				n.churn.places[position] = next
			}
		}
		n.churn.due = n.nextDue(at)
	}
	n.pods = slices.DeleteFunc(n.pods, func(p *Pod) bool {
		if p.gone >= now-memory || p.unbound >= now-memory {
			return false
		}
		n.churn.past.cpu[p.QoS] += p.cpu(now)
		if !p.HostNetwork {
			rx, tx := p.network(now)
			n.churn.past.rx, n.churn.past.tx = n.churn.past.rx+rx, n.churn.past.tx+tx
		}
		return true
	})
	n.order()
}

// used returns the CPU of the forgotten pods of a QoS class; an empty class
// means all.
func (p *past) used(qos string) (sum int64) {
	for class, cpu := range p.cpu {
		if qos == "" || qos == class {
			sum += cpu
		}
	}
	return sum
}
