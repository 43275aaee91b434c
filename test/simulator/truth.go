package simulator

import "time"

// Usage is what one life of a container's counter really used in a window.
type Usage struct {
	Node      string `json:"node"`
	Namespace string `json:"namespace"`
	Pod       string `json:"pod"`
	// UID is the pod's as the API server knows it; a kubelet reports the hash
	// of a static pod's manifest instead.
	UID       string `json:"uid"`
	Container string `json:"container"`
	ID        string `json:"id"`
	// Started is when the run started. From and To are the window, cut to the
	// life of the counter. All are nanoseconds since the Unix epoch.
	Started int64 `json:"started"`
	From    int64 `json:"from"`
	To      int64 `json:"to"`
	// CPUFrom and CPUTo are the counter there, in nanoseconds of CPU time.
	CPUFrom int64 `json:"cpuFrom"`
	CPUTo   int64 `json:"cpuTo"`
	// Rate is (CPUTo - CPUFrom) / (To - From) in cores; 0 for an empty window.
	Rate float64 `json:"rate"`
	// Memory is the working set at To, in bytes.
	Memory int64 `json:"memory"`
	// Received and Sent are the pod's network counters at To, in bytes.
	Received int64 `json:"received"`
	Sent     int64 `json:"sent"`
	// Current says that it is the run that the API server names at the end of
	// the window: a reader that serves any other is wrong.
	Current bool `json:"current"`
}

// Truth returns what was really used between two moments: one Usage for every
// counter that lived in [from, to], a counter that was reset being two. Faults
// that only make a node lie (Zero, Stale, Missing, ...) change nothing here.
func (f *Fleet) Truth(from, to time.Time) []Usage {
	var all []Usage
	for _, n := range f.nodes {
		all = n.appendTruth(all, from.UnixNano(), to.UnixNano())
	}
	return all
}

// Truth is Fleet.Truth of one node.
func (n *Node) Truth(from, to time.Time) []Usage {
	return n.appendTruth(nil, from.UnixNano(), to.UnixNano())
}

func (n *Node) appendTruth(dst []Usage, from, to int64) []Usage {
	n.advance(to)
	n.mu.RLock()
	defer n.mu.RUnlock()
	for _, p := range n.pods {
		bound := p.bound <= to && to < p.unbound
		rx, tx := p.network(to)
		for _, c := range p.Containers {
			current := c.current(to)
			for i := range c.runs {
				r := &c.runs[i]
				if r.from > to || r.until <= from {
					continue
				}
				u := Usage{
					Node: n.Name, Namespace: p.Namespace, Pod: p.Name, UID: p.UID(), Container: c.Name, ID: r.id(),
					Started: r.start, From: max(from, r.from), To: min(to, r.until),
					Received: rx, Sent: tx,
					Current: bound && r == current && r.alive(to),
				}
				u.CPUFrom, u.CPUTo = r.cpu(u.From), r.cpu(u.To)
				if u.To > u.From {
					u.Rate = float64(u.CPUTo-u.CPUFrom) / float64(u.To-u.From)
				}
				u.Memory = r.tide.at(u.To)
				dst = append(dst, u)
			}
		}
	}
	return dst
}
