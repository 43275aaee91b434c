package simulator

import "time"

// Usage is the true usage of one life of a container's counter in a window.
type Usage struct {
	Node      string `json:"node"`
	Namespace string `json:"namespace"`
	Pod       string `json:"pod"`
	// UID is the pod's UID at the API server. For a static pod, a kubelet reports
	// the hash of its manifest instead.
	UID       string `json:"uid"`
	Container string `json:"container"`
	ID        string `json:"id"`
	// Started is when the run started. From and To are the part of the window in
	// which the counter existed. All are nanoseconds since the Unix epoch.
	Started int64 `json:"started"`
	From    int64 `json:"from"`
	To      int64 `json:"to"`
	// CPUFrom and CPUTo are the counter at From and To, in nanoseconds of CPU time.
	CPUFrom int64 `json:"cpuFrom"`
	CPUTo   int64 `json:"cpuTo"`
	// Rate is (CPUTo - CPUFrom) / (To - From), in cores; 0 for an empty window.
	Rate float64 `json:"rate"`
	// Memory is the working set at To, in bytes.
	Memory int64 `json:"memory"`
	// Received and Sent are the pod's network counters at To, in bytes.
	Received int64 `json:"received"`
	Sent     int64 `json:"sent"`
	// Current says that this is the run that the API server reports at the end of
	// the window. A reader that serves another run is wrong.
	Current bool `json:"current"`
}

// Truth returns the true usage between two moments: one Usage for every counter
// that existed in [from, to]. A counter that was reset counts as two. Faults
// that only change what a node reports (Zero, Stale, Missing, ...) change
// nothing here.
func (f *Fleet) Truth(from, to time.Time) []Usage {
	var all []Usage
	for _, n := range f.nodes {
		all = n.appendTruth(all, from.UnixNano(), to.UnixNano())
	}
	return all
}

// Truth is like Fleet.Truth, for one node.
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
