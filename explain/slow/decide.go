package slow

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/weir-metrics/weir/cluster"
)

// Facts are the readings about one pod and its node.
type Facts struct {
	Node     string
	Workload *cluster.Owner
	From, To time.Time
	// Pod is the pod itself, and Containers are its own.
	Pod        Use
	Containers []Use
	// Neighbours are the other pods of the node, also those that have left since From.
	Neighbours []Use
	// Whole is the whole node: its use is that of the pods and of all else. Its limits are its capacity,
	// and its requests what it reserves for processes outside pods.
	Whole Use
	// NoStalls is a sentence with the reason why the node does not report stalls of pods; empty if it does.
	NoStalls string
	// MayName reports whether the caller may see the pods of a namespace. Nil means all.
	MayName func(namespace string) bool
}

// Use is what a pod, a container or a node used, waited for and may use. CPU is in cores, throttled time
// in seconds a second over all CPUs, memory in bytes, disk I/O in bytes per second, stalls are shares of
// the time. A limit or a request of 0 means that there is none.
type Use struct {
	Namespace, Name string

	CPU, Throttled                                   Series
	Memory, WorkingSet                               Series // with the page cache, and without what can be dropped of it
	MajorFaults                                      Series // page faults a second that read from disk
	Read, Write                                      Series
	Some, Full                                       [numResources]Series
	CPURequest, CPULimit, MemoryRequest, MemoryLimit float64
	// LimitHits is how often the use of memory hit its limit since the cgroup was made.
	LimitHits float64
	// Disks are the disks that a pod uses, with their shares of its bytes; empty if they are not known.
	Disks map[string]float64
	// NoRequests means that what a pod requested is not known: it has left, and so has its object.
	NoRequests bool
}

// When the parts of a wait are named.
const (
	// least is the smallest share of the time that is worth a word.
	least = 0.01
	// leastOfStall is the smallest share of a stall for which a cause is named. What is less is within what
	// readings at different moments can show.
	leastOfStall = 0.1
	// leastOfPart is the smallest share of the neighbours' part for which one of them is named.
	leastOfPart = 0.2
	// clearlyMore is the factor from which on one time is longer than another one. What is less is within what readings at
	// different moments can show.
	clearlyMore = 1.1
)

// When a node is short of a resource, and a limit is reached.
const (
	busyCPU    = 0.85 // of the node's CPUs in use: threads find their CPU taken
	fullMemory = 0.85 // of the node's memory in the working set: the kernel looks for pages to drop
	atLimit    = 0.95 // of the limit on memory in use, the page cache included: each new page drops another
	leastDisk  = 1 << 20
	// sandbox is what a pod's cgroup has besides its containers: its sandbox, and memory of the kernel. The pod's
	// limit is that of its containers added up, so it is reached first. With containerd and runc it was 4.7 MiB.
	sandbox = 4 << 20
)

// decision is the work on one answer.
type decision struct {
	Facts
	tallies [numResources]tally
	slow    Slow
}

// tally is what is added up about one resource, in seconds.
type tally struct {
	known, fullKnown     bool
	measured, some, full float64
	parts                [numCauses]float64
	doubts               [numDoubts]float64 // the parts of unknown
	others               []other            // by Facts.Neighbours
	// unclear is the part of ownLimit that may be due to others.
	unclear float64
	// node and own are what the node and the pod used while the pod waited, times the time it waited.
	node, own float64
}

// other is what one neighbour used while the pod waited, times the time it waited, and its part.
type other struct{ seconds, used, above float64 }

// Decide returns what the pod waited for, and why.
func Decide(f Facts) Slow {
	d := &decision{Facts: f}
	d.slow = Slow{
		Namespace: f.Pod.Namespace, Pod: f.Pod.Name, Node: f.Node, Workload: f.Workload, From: f.From.UTC(), To: f.To.UTC(), Evidence: []string{},
	}
	split := [numResources]func(*tally, *reading){cpu: d.splitCPU, memory: d.splitMemory, io: d.splitIO}
	for r := range split {
		t := &d.tallies[r]
		t.others = make([]other, len(f.Neighbours))
		if f.NoStalls != "" {
			continue
		}
		for _, rd := range f.Pod.Some[r].readings(f.From) {
			rd.value = min(max(rd.value, 0), 1)
			t.known = true
			t.measured += rd.seconds()
			t.some += rd.value * rd.seconds()
			full, ok := f.Pod.Full[r].over(rd.from, rd.to)
			t.full += min(max(full, 0), rd.value) * rd.seconds()
			t.fullKnown = t.fullKnown || ok
			if rd.value > 0 {
				split[r](t, &rd)
			}
		}
	}
	d.conclude()
	return d.slow
}

// splitCPU divides a wait for CPU. The kernel counts threads that a CPU limit holds back as waiting, too:
// that part is taken off first.
func (d *decision) splitCPU(t *tally, rd *reading) {
	throttled, several, known := d.throttled(rd)
	wait := rd.value - throttled
	t.add(ownLimit, throttled, rd)
	used, ok := d.Whole.CPU.over(rd.from, rd.to)
	switch {
	case !known, !ok, d.Whole.CPULimit == 0:
		t.doubt(cpuNotRead, wait, rd)
	case used < busyCPU*d.Whole.CPULimit:
		t.observe(d, rd, cpuUse)
		if d.sharedCPUsAreBusy(rd, used) {
			t.doubt(cpusOfTheirOwn, wait, rd)
		} else {
			t.add(nobody, wait, rd)
		}
	default:
		if several {
			t.unclear += throttled * rd.seconds()
		}
		d.divide(t, rd, wait, wait, cpuUse)
	}
}

// throttled returns the share of the time in which CPU limits held the pod back, at most the time in which
// it waited. The kernel adds up throttled time over the CPUs. While the quota is used up no thread of the
// cgroup runs, so the time in which all of them wait bounds it, too, if the kernel reports that. several is
// set if the share may be too large, because several threads were held back at once: on several CPUs, or in
// several containers. known is false if a limit has no reading.
func (d *decision) throttled(rd *reading) (share float64, several, known bool) {
	known = true
	add := func(u *Use) {
		time, ok := u.Throttled.over(rd.from, rd.to)
		if !ok {
			known = known && u.CPULimit == 0
			return
		}
		full, ok := u.Full[cpu].over(rd.from, rd.to)
		if !ok {
			full = rd.value
		}
		share += max(0, min(time, full))
		several = several || time > clearlyMore*full || !ok && time > 0
	}
	longest := 0.0
	for i := range d.Containers {
		before := share
		add(&d.Containers[i])
		longest = max(longest, share-before)
	}
	several = several || share > clearlyMore*longest
	// The limit of a pod whose containers have one is theirs added up.
	if len(d.Pod.Throttled) > 0 || !slices.ContainsFunc(d.Containers, func(u Use) bool { return u.CPULimit > 0 }) {
		add(&d.Pod)
	}
	return min(share, rd.value), several, known
}

// sharedCPUsAreBusy reports whether the CPUs of a node are short for the pods that share them, if those with
// whole CPUs have theirs for themselves.
func (d *decision) sharedCPUsAreBusy(rd *reading, used float64) bool {
	shared := d.Whole.CPULimit
	for i := range d.Neighbours {
		n := &d.Neighbours[i]
		if n.CPURequest < 1 || n.CPURequest != n.CPULimit || n.CPURequest != math.Trunc(n.CPURequest) {
			continue
		}
		shared -= n.CPURequest
		used -= min(n.CPURequest, cpuUse.used(n, rd.from, rd.to))
	}
	return shared < d.Whole.CPULimit && used >= busyCPU*shared
}

// splitMemory divides a wait for memory.
func (d *decision) splitMemory(t *tally, rd *reading) {
	excess, ok := d.excessMemory(rd)
	reached, unsure := d.atMemoryLimit(rd, ok && excess >= 0)
	switch {
	case unsure:
		t.doubt(cacheAtLimit, rd.value, rd)
	case reached:
		t.add(ownLimit, rd.value, rd)
	case !ok:
		t.doubt(memoryNotRead, rd.value, rd)
	case excess < 0:
		t.observe(d, rd, memoryUse)
		t.add(nobody, rd.value, rd)
	default:
		d.divide(t, rd, rd.value, excess, memoryUse)
	}
}

// excessMemory returns how much more memory is in use than the kernel can give without a search for pages to
// drop, on the node or below the limit of all pods together: a kubelet limits them to what the node does not
// reserve. ok is false if that was not read.
func (d *decision) excessMemory(rd *reading) (excess float64, ok bool) {
	used, ok := d.Whole.WorkingSet.over(rd.from, rd.to)
	if !ok || d.Whole.MemoryLimit == 0 {
		return 0, false
	}
	pods := memoryUse.used(&d.Pod, rd.from, rd.to)
	for i := range d.Neighbours {
		pods += memoryUse.used(&d.Neighbours[i], rd.from, rd.to)
	}
	return max(used-fullMemory*d.Whole.MemoryLimit, pods-atLimit*d.memoryForPods()), true
}

// memoryForPods returns what the node does not reserve for processes outside pods.
func (d *decision) memoryForPods() float64 { return d.Whole.MemoryLimit - d.Whole.MemoryRequest }

// atMemoryLimit reports whether the pod or one of its containers had reached its limit on memory. short means that the
// node was short of memory. It is unsure which of them the pod waited for if only the page cache reached the limit:
// any pod that reads large files fills its limit with it.
func (d *decision) atMemoryLimit(rd *reading, short bool) (reached, unsure bool) {
	unsure = short
	for _, u := range d.withLimits() {
		if _, at := u.memoryAtLimit(rd.from, rd.to); at {
			reached = true
			unsure = unsure && !u.isAtLimit(u.WorkingSet.get(rd.from, rd.to))
		}
	}
	return reached, reached && unsure
}

// memoryAtLimit returns the memory in use, the page cache included, and whether that reaches the limit.
func (u *Use) memoryAtLimit(from, to time.Time) (used float64, reached bool) {
	used = max(u.Memory.get(from, to), u.WorkingSet.get(from, to))
	return used, u.isAtLimit(used)
}

func (u *Use) isAtLimit(used float64) bool {
	return u.MemoryLimit > 0 && used+sandbox >= atLimit*u.MemoryLimit
}

// splitIO divides a wait for disk I/O. What is dropped at a limit on memory is read again: that wait is
// one for memory as well. The rest is divided by the bytes of the pods on the disks that the pod uses: disks
// have no requests.
func (d *decision) splitIO(t *tally, rd *reading) {
	wait := rd.value
	excess, ok := d.excessMemory(rd)
	if reached, unsure := d.atMemoryLimit(rd, ok && excess >= 0); reached {
		again := min(wait, max(0, d.Pod.Some[memory].get(rd.from, rd.to)))
		if unsure {
			t.doubt(cacheAtLimit, again, rd)
		} else {
			t.add(ownLimit, again, rd)
		}
		wait -= again
	}
	used := t.observe(d, rd, diskUse)
	parts := d.contention(&used)
	waited, known := d.othersWait(rd)
	switch {
	case !d.readsDisks(), !known && parts.others > 0 && parts.bytes >= leastDisk:
		t.doubt(disksNotRead, wait, rd)
	case parts.bytes < leastDisk && used.own < leastDisk:
		t.add(nobody, wait, rd)
	case parts.bytes < leastDisk:
		t.add(ownUse, wait, rd)
	default:
		// While a disk makes the pod wait for others, they wait for it, too.
		byOthers := min(wait*parts.others, waited)
		t.share(byOthers, parts.each, parts.others, rd)
		t.doubt(disksHardlyShort, wait*parts.others-byOthers, rd)
		t.doubt(disksUnplaced, wait*parts.unplaced, rd)
		t.add(ownUse, wait*(1-parts.others-parts.unplaced), rd)
	}
}

// readsDisks reports whether the bytes of disks were read of the node or of any pod.
func (d *decision) readsDisks() bool {
	reads := func(u Use) bool { return len(u.Read)+len(u.Write) > 0 }
	return reads(d.Whole) || reads(d.Pod) || slices.ContainsFunc(d.Neighbours, reads)
}

// diskParts are the parts of neighbours in a wait for the disks that the pod uses, by bytes.
type diskParts struct {
	bytes    float64   // of neighbours on these disks
	each     []float64 // the part of each, by Facts.Neighbours
	others   float64   // the sum of each
	unplaced float64   // the part of those whose disks are not known, or of all if the pod's own are not
}

// contention returns the parts of a wait for disks.
func (d *decision) contention(u *usage) diskParts {
	parts, disks := diskParts{each: make([]float64, len(u.above))}, d.Pod.Disks
	if len(disks) == 0 {
		disks = map[string]float64{"": 1}
	}
	for _, disk := range slices.Sorted(maps.Keys(disks)) {
		share := disks[disk]
		here := func(i int) (bytes float64, placed bool) {
			if n := &d.Neighbours[i]; len(d.Pod.Disks) > 0 && len(n.Disks) > 0 {
				return u.above[i] * n.Disks[disk], true
			}
			return u.above[i] * share, false
		}
		all := u.own * share
		for i := range u.above {
			b, _ := here(i)
			all, parts.bytes = all+b, parts.bytes+b
		}
		for i := range u.above {
			switch b, placed := here(i); {
			case b == 0:
			case placed:
				parts.each[i] += share * b / all
				parts.others += share * b / all
			default:
				parts.unplaced += share * b / all
			}
		}
	}
	return parts
}

// othersWait returns the share of the time in which others waited for disk I/O: the longest wait of a
// neighbour, or what the node waited besides the pod, if their waits are independent. The node's has the
// kernel's writes. ok is false if neither was read.
func (d *decision) othersWait(rd *reading) (share float64, ok bool) {
	if node, read := d.Whole.Some[io].over(rd.from, rd.to); read && rd.value < 1 {
		share, ok = (node-rd.value)/(1-rd.value), true
	}
	for i := range d.Neighbours {
		if wait, read := d.Neighbours[i].Some[io].over(rd.from, rd.to); read {
			share, ok = max(share, wait), true
		}
	}
	return min(1, max(0, share)), ok
}

// meter is how the use of a resource is read.
type meter struct {
	used    func(u *Use, from, to time.Time) float64
	request func(*Use) float64
}

var (
	cpuUse    = &meter{func(u *Use, from, to time.Time) float64 { return u.CPU.get(from, to) }, func(u *Use) float64 { return u.CPURequest }}
	memoryUse = &meter{func(u *Use, from, to time.Time) float64 { return u.WorkingSet.get(from, to) }, func(u *Use) float64 { return u.MemoryRequest }}
	diskUse   = &meter{func(u *Use, from, to time.Time) float64 { return u.Read.get(from, to) + u.Write.get(from, to) }, func(*Use) float64 { return 0 }}
)

// usage is what everybody used of a resource during one reading.
type usage struct {
	node, own, ownAbove float64
	above               []float64 // by Facts.Neighbours
	others, outside     float64   // above requests: all neighbours, and what runs outside pods
}

// observe reads what everybody used, and adds it to the means.
func (t *tally) observe(d *decision, rd *reading, m *meter) usage {
	weight := rd.value * rd.seconds()
	u := usage{node: m.used(&d.Whole, rd.from, rd.to), own: max(0, m.used(&d.Pod, rd.from, rd.to)), above: make([]float64, len(d.Neighbours))}
	u.ownAbove = max(0, u.own-m.request(&d.Pod))
	pods := u.own
	for i := range d.Neighbours {
		n := &d.Neighbours[i]
		used := max(0, m.used(n, rd.from, rd.to))
		u.above[i] = max(0, used-m.request(n))
		u.others += u.above[i]
		pods += used
		t.others[i].used += used * weight
		t.others[i].above += u.above[i] * weight
	}
	u.outside = max(0, u.node-pods-m.request(&d.Whole))
	t.node += u.node * weight
	t.own += u.own * weight
	return u
}

// pods returns what all pods used while the pod waited, times the time it waited.
func (t *tally) pods() float64 {
	all := t.own
	for i := range t.others {
		all += t.others[i].used
	}
	return all
}

// divide divides a wait on a node that is short of a resource. enough is how much the others would have
// to use less so that the pod waits no more: if they use less than that above their requests, they explain
// only a part. What the pod uses above its request beyond what they do is its own part.
func (d *decision) divide(t *tally, rd *reading, wait, enough float64, m *meter) {
	u := t.observe(d, rd, m)
	all := u.others + u.outside
	lead := max(0, u.ownAbove-all)
	byOthers := 0.0
	if all > 0 {
		byOthers = wait * min(1, all/max(enough, math.SmallestNonzeroFloat64)) * all / (all + lead)
	}
	if lead > 0 || u.own >= u.node/2 {
		t.add(ownUse, wait-byOthers, rd)
	} else {
		t.add(nodeFull, wait-byOthers, rd)
	}
	if all > 0 {
		t.add(system, byOthers*u.outside/all, rd)
		t.share(byOthers*u.others/all, u.above, u.others, rd)
	}
}

// share adds a wait that is due to neighbours. each has the weight of each of them, and all their sum.
func (t *tally) share(wait float64, each []float64, all float64, rd *reading) {
	t.add(neighbours, wait, rd)
	for i := range each {
		if all > 0 {
			t.others[i].seconds += wait * each[i] / all * rd.seconds()
		}
	}
}

// add adds a share of a reading to a cause.
func (t *tally) add(cause int, share float64, rd *reading) {
	t.parts[cause] += max(0, share) * rd.seconds()
}

// doubt adds a share of a reading whose cause is not known.
func (t *tally) doubt(reason int, share float64, rd *reading) {
	t.add(unknown, share, rd)
	t.doubts[reason] += max(0, share) * rd.seconds()
}

// isNamed reports whether a cause is large enough to be named.
func (t *tally) isNamed(cause int) bool {
	part := t.parts[cause]
	return part > 0 && part >= least*t.measured && part >= leastOfStall*t.some
}

// stall returns the answer about one resource.
func (d *decision) stall(r int) Stall {
	t, s := &d.tallies[r], Stall{Resource: resources[r]}
	if !t.known {
		return s
	}
	some, full := t.some/t.measured, t.full/t.measured
	s.Some = &some
	if t.fullKnown {
		s.Full = &full
	}
	for c := range t.parts {
		if t.parts[c] > 0 {
			s.Parts = append(s.Parts, Part{causes[c], t.parts[c] / t.measured})
		}
	}
	slices.SortStableFunc(s.Parts, func(a, b Part) int { return cmp.Compare(b.Share, a.Share) })
	if t.isNamed(neighbours) {
		s.Neighbours = d.named(t)
	}
	return s
}

// isWorthAName reports whether a neighbour has enough of the neighbours' part.
func (t *tally) isWorthAName(o *other) bool {
	return o.seconds > 0 && o.seconds >= leastOfPart*t.parts[neighbours]
}

// named returns the neighbours with the largest parts.
func (d *decision) named(t *tally) (all []Neighbour) {
	for i := range t.others {
		o, u := &t.others[i], &d.Neighbours[i]
		if !t.isWorthAName(o) {
			continue
		}
		n := d.nameable(u)
		n.Used, n.Above, n.Share = o.used/t.some, o.above/t.some, o.seconds/t.measured
		all = append(all, n)
	}
	slices.SortStableFunc(all, func(a, b Neighbour) int { return cmp.Compare(b.Share, a.Share) })
	return all
}

// nameable returns a neighbour with its name, if the caller may see that.
func (d *decision) nameable(u *Use) (n Neighbour) {
	if d.MayName == nil || d.MayName(u.Namespace) {
		n.Namespace, n.Pod = u.Namespace, u.Name
	}
	return n
}

// throttledMean returns the mean of the throttled time in seconds a second, over the pod and its containers,
// the share of the time in which limits held one of them back, and whether that was measured.
func (d *decision) throttledMean() (sum, still float64, ok bool) {
	for _, u := range d.withLimits() {
		if held, measured := u.Throttled.mean(d.From); measured {
			used, _ := u.CPU.mean(d.From)
			sum, still, ok = sum+held, max(still, standstill(held, used)), true
		}
	}
	return sum, still, ok
}

// standstill estimates the share of the time in which a limit on CPU held a cgroup back. Both are in
// seconds a second: together they are the CPUs that its threads could have used, if all are always busy.
func standstill(throttled, used float64) float64 {
	return max(0, throttled) / max(1, max(0, throttled)+max(0, used))
}
