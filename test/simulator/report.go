package simulator

import "time"

// Clock returns the time that the node's clock shows at now.
func (n *Node) Clock(now time.Time) time.Time { return time.Unix(0, n.clock(now.UnixNano())) }

// A Life is one life of a container's counter: a run, or the part of a run
// before or after a reset of its counter. Times are nanoseconds since the Unix
// epoch, and do not depend on the node's clock.
type Life struct {
	Container *Container
	ID        string // of the run, without a scheme
	Started   int64  // when the run started
	Process   int64  // when its process started, which is Started or later
	From      int64  // when the counter was 0: the start, or the last reset
	Until     int64  // when the counter ends; math.MaxInt64 if it does not
	run       *instance
}

// Lives returns every life of every container that the node ever runs, also of
// pods that the API server does not have.
func (n *Node) Lives() []*Life {
	var all []*Life
	for _, p := range n.pods {
		for _, c := range p.Containers {
			for i := range c.runs {
				r := &c.runs[i]
				all = append(all, &Life{Container: c, ID: r.id(), Started: r.start, Process: c.processStart(r), From: r.from, Until: r.until, run: r})
			}
		}
	}
	return all
}

// CPU returns the counter at a moment, in nanoseconds of CPU time: 0 before the
// life begins, and its last value after the life has ended.
func (l *Life) CPU(at int64) int64 { return l.run.cpu(at) }

// Memory returns the working set at a moment, in bytes.
func (l *Life) Memory(at int64) int64 { return l.run.tide.at(at) }

// Present reports whether l is the life that an API server without delay would
// report at that moment: the API server has the pod, and l is the run of its
// container that began last and still runs.
func (l *Life) Present(at int64) bool {
	p := l.Container.Pod
	return p.bound <= at && at < p.unbound && l.Container.current(at) == l.run && l.run.alive(at)
}

// A ReportedSample is a line about a container as a node reports it at a moment. Times
// are nanoseconds since the Unix epoch.
type ReportedSample struct {
	Life   *Life
	At     int64 // when the node took the reading
	Stamp  int64 // the time that its clock showed then
	Start  int64 // as the node reports it
	CPU    int64 // nanoseconds of CPU time
	Unread bool  // the node wrote 0 because it could not read the cgroup
	Second bool  // under the container's second path
	Other  bool  // CPU is the counter of another cgroup than the container's
}

// Reports appends to dst the lines that the node reports about its containers
// at now, each with the life that it really belongs to. lives is the result of
// Node.Lives. Times are not yet rounded as the endpoint rounds them.
func (n *Node) Reports(dst []ReportedSample, lives []*Life, e Endpoint, now int64) []ReportedSample {
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
				dst = append(dst, ReportedSample{Life: l, At: r.at, Stamp: r.stamp, Start: r.start, CPU: r.cpu, Unread: r.zero || r.cpuZero, Second: r.second, Other: r.other})
				break
			}
		}
	}
	return dst
}
