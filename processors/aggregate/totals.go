package aggregate

import "github.com/weir-metrics/weir/metric"

// summedMetrics are the metrics that are summed over a pod's containers. Cumulative metrics are
// not: the sum would fall when a container restarts. Network, file systems and processes come
// from the pod itself.
var summedMetrics = [...]metric.ID{
	metric.CPUUsageRate,
	metric.MemoryUsage,
	metric.MemoryWorkingSet,
	metric.MemoryRSS,
	metric.MemoryCache,
	metric.MemorySwap,
}

// total is a sum of samples while it is computed.
type total struct {
	count  int
	counts [len(summedMetrics)]int
	times  [metric.NumGroups]int64
	rates  [metric.NumGroups]metric.Window
	// Those of the samples that were added.
	received, lastKnown uint16
	ambiguous           string // the first, by name, of the samples that are Ambiguous
}

// add adds a sample to t.
func (a *Aggregator) add(t *total, s *metric.Sample) {
	for i, id := range summedMetrics {
		if v, ok := s.Values.Get(id); ok {
			a.sums[i].add(v)
			t.counts[i]++
		}
	}
	for _, g := range wholeGroups {
		bit := uint16(1) << g
		t.lastKnown |= s.LastKnown & bit
		at := s.Times[g]
		if end := s.Rates[g].End; g == metric.CPU && end != 0 {
			at = end // the time of the counter is not summed
		}
		if t.count == 0 || older(at, s.Rates[g], t.times[g], t.rates[g]) {
			t.times[g], t.rates[g] = at, s.Rates[g]
			t.received = t.received&^bit | s.Received&bit
		}
		if s.Reasons[g] == metric.Ambiguous {
			if name := s.Entity.Name; t.ambiguous == "" || name < t.ambiguous {
				t.ambiguous = name
			}
		}
	}
	t.count++
}

// older reports whether the first of two samples was taken before the second. Of two taken at
// once, the one with the longer window is the older.
func older(at int64, w metric.Window, otherAt int64, other metric.Window) bool {
	if at != otherAt {
		return at < otherAt
	}
	if w.End != other.End {
		return w.End < other.End
	}
	return w.Length > other.Length
}

// start resets the sums for a new total.
func (a *Aggregator) start() {
	for i := range a.sums {
		a.sums[i].reset()
	}
}

// readsCgroups reports whether the source reads the cgroups of p itself, as the host does and a
// kubelet's client does not. p's memory is then that of its own cgroup, which the kernel limits and
// by which a kubelet ranks pods: it includes the sandbox, memory-backed volumes and what ended
// containers left behind.
func (p *pod) readsCgroups(b *metric.Batch) bool {
	if p.own != none {
		return b.Samples[p.own].Instance.Inode != 0
	}
	return len(p.members) > 0 && b.Samples[p.members[0]].Instance.Inode != 0
}

// finish writes a total to the sample of a slot at index i, or to a new one if i is none, and
// returns its index. If a part lacks a metric, the entity's own value stays, if it has one. With
// ownMemory the group Memory stays as it was read.
func (a *Aggregator) finish(t *total, b *metric.Batch, slot uint32, i int32, ownMemory bool) int32 {
	if i == none {
		i = int32(len(b.Samples))
		b.AddAt(slot)
	}
	s := &b.Samples[i]
	for j, id := range summedMetrics {
		if t.counts[j] == t.count && !(ownMemory && id.Describe().Group == metric.Memory) {
			s.Values.Set(id, a.sums[j].value())
		}
	}
	for _, g := range wholeGroups {
		if a.wanted(g) && !(g == metric.Memory && ownMemory) {
			a.finishGroup(t, s, g)
		}
	}
	return i
}

// finishGroup gives a group of s the time and the reason of a total.
func (a *Aggregator) finishGroup(t *total, s *metric.Sample, g metric.Group) {
	bit := uint16(1) << g
	if g == metric.CPU { // rates of the group Memory are not summed
		s.Rates[g] = t.rates[g]
	}
	// A counter of the entity's own keeps its time. That of the rate is the end of its window.
	if g != metric.CPU || !s.Values.Has(metric.CPUUsage) || s.Times[g] == 0 || s.Rates[g].End == 0 {
		s.Times[g] = t.times[g]
		s.Received = s.Received&^bit | t.received&bit
	}
	s.LastKnown = s.LastKnown&^bit | t.lastKnown&bit
	s.Reasons[g] = metric.Measured
	if t.ambiguous != "" {
		s.Reasons[g] = metric.Ambiguous
		a.verdicts.replace(s.Slot, g, metric.Ambiguous, metric.Evidence{Name: t.ambiguous, Cause: metric.Ambiguous})
	} else {
		a.verdicts.withdraw(s.Slot, g)
	}
}

// serve sets p to the sum of its containers, apart from the memory of a cgroup that the source read,
// and reports whether any of them is measured.
func (a *Aggregator) serve(p *pod, b *metric.Batch) bool {
	var t total
	a.start()
	uid := metric.PodUID("")
	for _, m := range p.members {
		s := &b.Samples[m]
		if a.wanted(metric.CPU) && !serves(s, metric.CPU) || a.wanted(metric.Memory) && !serves(s, metric.Memory) {
			continue // it is not required, or the pod would have been rejected
		}
		a.add(&t, s)
		uid = max(uid, s.Instance.UID)
	}
	if t.count == 0 {
		return false
	}
	p.own = a.finish(&t, b, p.slot, p.own, p.readsCgroups(b))
	if own := &b.Samples[p.own].Instance; own.UID == "" {
		own.UID = uid
		if p.facts != nil {
			own.UID = p.facts.ReportedUID()
		}
	}
	p.reason = metric.Measured
	return true
}
