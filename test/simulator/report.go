package simulator

import "time"

// Clock returns what the node's clock shows at now.
func (n *Node) Clock(now time.Time) time.Time { return time.Unix(0, n.clock(now.UnixNano())) }

// A Life is one life of a container's counter: a run, or the part of a run
// until or since its counter was reset. Times are nanoseconds since the Unix
// epoch, true whatever the node's clock shows.
type Life struct {
	Container *Container
	ID        string // of the run, without a scheme
	Started   int64  // when the run started
	From      int64  // when the counter was 0: the start, or the last reset
	Until     int64  // when the counter ends; math.MaxInt64 for never
	run       *instance
}

// Lives returns every life of every container of the node, whatever the time:
// of pods the API server does not know, too.
func (n *Node) Lives() []*Life {
	var all []*Life
	for _, p := range n.pods {
		for _, c := range p.Containers {
			for i := range c.runs {
				r := &c.runs[i]
				all = append(all, &Life{Container: c, ID: r.id(), Started: r.start, From: r.from, Until: r.until, run: r})
			}
		}
	}
	return all
}

// CPU returns the counter at a moment, in nanoseconds of CPU time: 0 before the
// life began, its last value after it has ended.
func (l *Life) CPU(at int64) int64 { return l.run.cpu(at) }

// Present reports whether l is the life that the API server's word, were it
// immediate, is about at that moment: of the pod that has the name, on its node,
// the run that began last.
func (l *Life) Present(at int64) bool {
	p := l.Container.Pod
	return p.bound <= at && at < p.unbound && l.Container.current(at) == l.run && l.run.alive(at)
}

// A Report is a line about a container as a node gives it at a moment. Times
// are nanoseconds since the Unix epoch.
type Report struct {
	Life   *Life
	At     int64 // when the node really took the reading
	Stamp  int64 // what its clock showed then
	Start  int64 // as it reports it
	CPU    int64 // nanoseconds of CPU time
	Unread bool  // it wrote 0 for what it could not read
	Second bool  // under the container's second path
}

// Reports appends to dst what the node says of its containers at now, with the
// life each line is truly of: one of lives, which Node.Lives gave. The
// endpoint's cut of times is not in it.
func (n *Node) Reports(dst []Report, lives []*Life, e Endpoint, now int64) []Report {
	var readings []reading
	for _, p := range n.pods {
		for _, c := range p.Containers {
			readings = c.read(readings, now, e == CAdvisor)
		}
	}
	for i := range readings {
		r := &readings[i]
		for _, l := range lives {
			if l.ID == r.run.id() && (l.From <= r.at || !l.run.follows) && r.at < l.Until {
				dst = append(dst, Report{Life: l, At: r.at, Stamp: r.stamp, Start: r.start, CPU: r.cpu, Unread: r.zero, Second: r.second})
				break
			}
		}
	}
	return dst
}
