package simulator

// A reading is the kubelet's last reading of one cgroup at the time of a
// request. Times are nanoseconds since the Unix epoch.
type reading struct {
	pod       *Pod
	container *Container // nil for a pod or sandbox
	run       *instance  // nil for a pod
	second    bool       // seen under the container's second path
	at        int64      // when the cgroup was read
	stamp     int64      // what the node's clock showed then
	start     int64      // as the node reports it
	cpu       int64      // nanoseconds
	memory    int64      // bytes, the working set
	zero      bool       // the kubelet could not read it
	cpuZero   bool       // the kubelet could not read its CPU
	other     bool       // of a second path with a counter of its own
}

// secondPathAge is the time between the creation of a container's first and
// second path, in nanoseconds.
const secondPathAge = 20_500_000_000

// scratch has the buffers that are needed to write one payload.
type scratch struct {
	containers, pods []reading
	lines            []cgroupLine
}

// moment returns when the cgroup of that key was last read. first is the time
// of its first reading.
func (n *Node) moment(k key, first, now int64) int64 {
	if n.fleet.options.Fresh {
		return now
	}
	return max(housekeeping(k, now), first)
}

// readable returns when an instance is first read.
func (n *Node) readable(i *instance) int64 {
	if n.fleet.options.Fresh || i.start == never {
		return i.start
	}
	return i.start + firstReading(i.key)
}

// hidden reports whether the node does not report the pod at now.
func (p *Pod) hidden(now int64) bool { return holds(p.faults, Missing, now) != nil }

// readPod returns the node's reading of the pod's own cgroup at now. It returns
// false if there is none.
func (p *Pod) readPod(now int64) (reading, bool) {
	if p.hidden(now) {
		return reading{}, false
	}
	zero := holds(p.faults, Zero, now)
	seen := p.seen(now)
	first := p.begun
	if !p.Node.fleet.options.Fresh && first < never {
		first += firstReading(p.cgroup)
	}
	if seen < first || seen >= p.gone {
		return reading{}, false
	}
	begun, before := p.booted(seen)
	if begun > p.begun {
		first = begun
	}
	r := reading{pod: p, at: p.Node.moment(p.cgroup, first, seen), start: p.Node.clock(begun) + p.jitter(p.faults, now)}
	r.stamp = p.Node.clock(r.at)
	r.cpu, r.memory = p.cpu(r.at)-before, p.memory(r.at)
	if zero != nil {
		r.unread(zero, p.Node.clock(now))
	}
	return r, true
}

// unread sets the reading to what a kubelet writes for a cgroup that it could
// not read: 0, at the time of the request.
func (r *reading) unread(c *condition, now int64) {
	if c.Style == CPUOnly {
		r.cpu, r.cpuZero = 0, true
		return
	}
	r.cpu, r.memory, r.stamp, r.at, r.zero = 0, 0, now, now, true
}

// jitter returns the error of start times at now, in nanoseconds.
func (p *Pod) jitter(faults []condition, now int64) int64 {
	c := holds(faults, Jitter, now)
	if c == nil {
		return 0
	}
	if c.Style == Steady {
		now = 0
	}
	return p.key.num(now/second).between("start", -int64(c.Spread), int64(c.Spread)+1)
}

// readSandbox is like readPod, for the pod's sandbox.
func (p *Pod) readSandbox(now int64) (reading, bool) {
	if p.hidden(now) {
		return reading{}, false
	}
	seen := p.seen(now)
	first := p.Node.readable(&p.sandbox)
	if seen < first || seen >= p.sandbox.until {
		return reading{}, false
	}
	r := reading{pod: p, run: &p.sandbox, at: p.Node.moment(p.sandbox.key, first, seen), start: p.Node.clock(p.sandbox.start)}
	r.stamp = p.Node.clock(r.at)
	r.cpu, r.memory = p.sandbox.cpu(r.at), p.sandbox.tide.at(r.at)
	return r, true
}

// read appends the node's readings of the container at now: one for each run
// that it sees. With paths set, a container with two paths gives two readings;
// otherwise one, sometimes from the one path and sometimes from the other.
func (c *Container) read(dst []reading, now int64, paths bool) []reading {
	p := c.Pod
	missing := holds(c.faults, Missing, now)
	if p.hidden(now) || missing != nil && missing.Style != Older {
		return dst
	}
	seen := p.seen(now)
	for i := range c.runs {
		run := &c.runs[i]
		first := p.Node.readable(run)
		if !run.alive(seen) || seen < first {
			continue
		}
		if missing != nil && (i < len(c.runs)-1 && c.runs[i+1].from <= seen || p.unbound <= seen) {
			continue
		}
		if two := ownCounters(c.faults, seen); two != nil && i == len(c.runs)-1 {
			dst = c.readPaths(dst, i, first, seen, now, two, paths)
			continue
		}
		twice := i == len(c.runs)-1 && twoPaths(c.faults, seen)
		if !twice {
			dst = append(dst, c.readRun(i, run.key, first, seen, now))
			continue
		}
		other := p.key.num(seen/second).between("path", 0, 2) == 1
		if paths || !other {
			dst = append(dst, c.readRun(i, run.key, first, seen, now))
		}
		if paths || other {
			r := c.readRun(i, run.key.with("second path"), first, seen, now)
			r.second = true
			r.start += secondPathAge
			dst = append(dst, r)
		}
	}
	return dst
}

// readPaths reads the ith run, beside which the cgroup of another path has a
// counter of its own.
func (c *Container) readPaths(dst []reading, i int, first, seen, now int64, two *condition, paths bool) []reading {
	p, run := c.Pod, &c.runs[i]
	k := run.key.with("own counter").num(two.from)
	r := c.readRun(i, k, first, seen, now)
	isReported := r.at >= two.from && !r.zero
	alone := k.num(seen/(40*second)).between("alone", 0, 4) == 0
	if !paths {
		alone = p.key.num(seen/second).between("path", 0, 2) == 1
	}
	if !alone || !isReported {
		dst = append(dst, c.readRun(i, run.key, first, seen, now))
	}
	if isReported && (alone || paths) {
		other := newInstance(k, two.from, c.peak, c.limit)
		r.second, r.other = true, true
		r.start, r.cpu, r.memory = p.Node.clock(two.from), other.cpu(r.at), other.tide.at(r.at)
		dst = append(dst, r)
	}
	return dst
}

// ownCounters returns the fault of style OwnCounters that is in effect at now,
// or nil.
func ownCounters(cs []condition, now int64) *condition {
	for i := range cs {
		if c := &cs[i]; c.Kind == Duplicate && c.Style == OwnCounters && c.from <= now && now < c.until {
			return c
		}
	}
	return nil
}

func twoPaths(cs []condition, now int64) bool {
	c := holds(cs, Duplicate, now)
	return c != nil && c.Style == TwoPaths
}

// readRun reads the ith run. k is the key of its cgroup.
func (c *Container) readRun(i int, k key, first, seen, now int64) reading {
	p := c.Pod
	run := &c.runs[i]
	r := reading{pod: p, container: c, run: run, at: p.Node.moment(k, first, seen)}
	// The last reading may be older than a reset of the counter.
	for run.follows && r.at < run.from {
		i--
		run = &c.runs[i]
	}
	r.stamp = p.Node.clock(r.at)
	r.start = p.Node.clock(run.start) + p.jitter(p.faults, now) + p.jitter(c.faults, now)
	r.cpu, r.memory = run.cpu(r.at)+c.leapt(run, r.at), run.tide.at(r.at)
	for _, zero := range [...]*condition{holds(p.faults, Zero, now), holds(c.faults, Zero, now)} {
		if zero != nil {
			r.unread(zero, p.Node.clock(now))
		}
	}
	return r
}

// leapt returns by how much a run's counter is too high at a moment.
func (c *Container) leapt(run *instance, at int64) (by int64) {
	for i := range c.faults {
		if f := &c.faults[i]; f.Kind == Leap && run.from <= f.from && f.from <= at {
			by += int64(f.By)
		}
	}
	return by
}

// rate returns the mean rate in nanocores between a reading and the
// housekeeping before it. counter returns the counter at a time.
func (n *Node) rate(k key, at, since int64, counter func(int64) int64) int64 {
	before := at - 10*second
	if !n.fleet.options.Fresh {
		before = housekeeping(k, at-1)
	}
	before = max(before, since)
	if before >= at {
		return 0
	}
	hi := counter(at) - counter(before)
	return int64(float64(hi) / float64(at-before) * 1e9)
}
