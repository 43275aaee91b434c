package metric

import (
	"sync/atomic"
	"time"
)

// Group is a set of metrics that are read at one moment and share one timestamp and one
// verdict.
type Group uint8

// The groups.
const (
	CPU Group = iota
	Memory
	Network
	Filesystem
	IO
	Process
	Accelerator
	Spec          // requests, limits, capacity and uptime
	NumGroups int = iota
)

// Sample.Received and Sample.LastKnown have a bit for each group. This does not compile if
// there are more groups than bits.
const _ = uint(16 - NumGroups)

var groupNames = [NumGroups]string{"cpu", "memory", "network", "filesystem", "io", "process", "accelerator", "spec"}

// String returns the lower-case name of g.
func (g Group) String() string {
	if int(g) < NumGroups {
		return groupNames[g]
	}
	return "unknown"
}

// DefaultHistory is how far back weir remembers, unless the memory has another option.
const DefaultHistory = 15 * time.Minute

// LastKnownFor is how long a number whose node sends no new reading is still served: three intervals,
// and a minute at least, the time in which a kubelet that restarts answers again.
func LastKnownFor(interval time.Duration) time.Duration { return max(3*interval, time.Minute) }

// Window is the time over which a rate was measured: the rate is (C(End)-C(End-Length))/Length.
// The zero Window means that there is no rate.
type Window struct {
	End    int64         // nanoseconds since the Unix epoch, by the node's clock
	Length time.Duration // 0 with a non-zero End: the node reported a rate without its window
}

// Sample is what one read reports of one instance of one entity. A source fills Entity, Instance,
// Values and Times; the processors add the rest.
type Sample struct {
	Entity   Entity
	Instance Instance
	Values   Values
	// Times is when the node read each group, in nanoseconds since the Unix epoch; 0 if no
	// metric of the group was read.
	Times [NumGroups]int64
	// Reasons is the verdict on each group: Measured, or why its numbers are not served. It is
	// Unjudged until a processor has decided. The evidence is in Batch.Verdicts.
	Reasons [NumGroups]Reason
	// Received marks groups without a time of the node: Times has the middle of our request
	// instead. Such a time is never paired with a node's time. Bit g is group g.
	Received uint16
	// LastKnown marks groups that were not in this read: their last known values are repeated
	// for the time of the hold. Bit g is group g.
	LastKnown uint16

	rejected bool

	// Slot is the entity's number in Batch.Slots; 0 before it is assigned.
	Slot uint32

	// Rates is the window of the rates of each group.
	Rates [NumGroups]Window
}

// Servable reports whether the numbers of group g may be served.
func (s *Sample) Servable(g Group) bool {
	return !s.rejected && (s.Reasons[g] == Measured || s.Reasons[g] == Ambiguous)
}

// Time returns when group g was read; zero if it was not.
func (s *Sample) Time(g Group) time.Time {
	if s.Times[g] == 0 {
		return time.Time{}
	}
	return time.Unix(0, s.Times[g])
}

// StartTime returns when the instance began; zero if unknown.
func (i *Instance) StartTime() time.Time {
	if i.Start == 0 {
		return time.Time{}
	}
	return time.Unix(0, i.Start)
}

// Reject gives every group the reason r, so that none of the sample's numbers is served. A
// reason of LayerIdentity rejects the sample as a whole: its numbers belong to another
// instance, and it is kept only for its verdict.
func (s *Sample) Reject(r Reason) {
	for g := range s.Reasons {
		s.Reasons[g] = r
	}
	s.rejected = r.Layer() == LayerIdentity
}

// Rejected reports whether identity rejected the whole sample. If nothing distinguishes several
// samples, the chosen one is Ambiguous and not rejected; the others are rejected.
func (s *Sample) Rejected() bool { return s.rejected }

// CopyFrom makes s a copy of o that shares no memory with it.
func (s *Sample) CopyFrom(o *Sample) {
	values := s.Values
	*s = *o
	s.Values = values
	s.Values.CopyFrom(&o.Values)
}

// Batch is the result of one read of one source: samples in the order they were reported,
// duplicates included. A failed read is a Batch too, with Err set: each absence needs its
// reason.
//
// # Life of a batch
//
// A source fills a Batch, the processors change it in place, and the sinks get it. Until that
// last step it belongs to one goroutine. From then on it is not changed. Each sink calls
// Release when it no longer needs the Batch. After the last Release it is filled again, so no
// sink may keep a pointer into it.
type Batch struct {
	// Source is the configured source, such as "kubelet:resource" or "host".
	Source string
	// Node is the node that the batch claims to be from; empty for a source of many nodes.
	Node NodeName
	// Began and Ended are when the read began and ended, by this machine's monotonic clock.
	Began, Ended time.Time
	// NodeTime is what the node's clock showed when it answered, cut to a whole second, in
	// nanoseconds since the Unix epoch; 0 if the node does not report it.
	NodeTime int64
	// Interval is the time between two reads of the source.
	Interval time.Duration
	// Resolution is the resolution of the timestamps in Samples: 1ns on the host, 1ms in
	// /metrics/resource, 1s in /stats/summary.
	Resolution time.Duration
	// Exhaustive means that the source sees every entity: one that it does not report is gone.
	Exhaustive bool
	// Cores is how many CPUs the node has, as the source reports it; 0 if it does not.
	Cores float64
	// Bytes is the uncompressed size of the payload.
	Bytes int
	// Err is why the read failed, as a whole or in part. errors.As finds a *ReadError in it;
	// its Reason is the verdict for missing numbers.
	Err error
	// Samples are in the order of the report.
	Samples []Sample
	// Verdicts are the reasons with their evidence. Measured groups have none.
	Verdicts []Verdict
	// Baselines are earlier readings of samples that identity chooses now and did not choose in
	// the previous answer. Rate can pair them with the present ones at once.
	Baselines []Baseline
	// CrossCheck is a second read of the same node for identity, from an endpoint that names
	// UIDs and container IDs. It is nearly always nil.
	CrossCheck *Batch

	// Slots is the table that assigned the samples' slots; nil before. Sinks do not have it;
	// they use SlotGeneration.
	Slots *SlotTable
	// SlotGeneration is the generation of Slots when the batch was shared; 0 before. Two
	// batches with the same SlotGeneration have the same entity at the same slot.
	SlotGeneration uint64
	// PodCache is the *cluster.PodCache for this batch's pods; nil if there is none. Sinks do
	// not have it.
	PodCache any

	refs     atomic.Int32
	recycle  func(*Batch)
	allocate func(*Batch) // see SetAllocator; nil after the call
}

// SourceKey identifies the source of a batch.
type SourceKey struct {
	Source string
	Node   NodeName
}

// Key returns the key of b's source.
func (b *Batch) Key() SourceKey { return SourceKey{b.Source, b.Node} }

// Add appends an empty sample for e and returns it. It reuses the memory of earlier rounds. The
// pointer is valid until the next Add.
func (b *Batch) Add(e Entity) *Sample {
	n := len(b.Samples)
	if n < cap(b.Samples) {
		b.Samples = b.Samples[:n+1]
		s := &b.Samples[n]
		s.Values.Reset()
		// Field by field: the compiler would build a whole Sample elsewhere and copy it.
		s.Entity, s.Instance = e, Instance{Processes: -1}
		s.Times, s.Rates, s.Reasons = [NumGroups]int64{}, [NumGroups]Window{}, [NumGroups]Reason{}
		s.Received, s.LastKnown, s.rejected, s.Slot = 0, 0, false, 0
		return s
	}
	if b.allocate != nil {
		b.EnsureBuffers()
		return b.Add(e)
	}
	b.Samples = append(b.Samples, Sample{Entity: e, Instance: Instance{Processes: -1}})
	return &b.Samples[n]
}

// AssignSlots gives b's samples slots of t, unless they have slots already. The first step of a
// pipeline does it for all steps.
func (b *Batch) AssignSlots(t *SlotTable) {
	if b.Slots == nil {
		t.Assign(b)
	}
}

// AddAt is Add for the entity of a slot.
func (b *Batch) AddAt(slot uint32) *Sample {
	s := b.Add(*b.Slots.Entity(slot))
	s.Slot = slot
	return s
}

// SetAllocator sets the function that gives b, which is empty, its memory when that is first
// needed. A batch that waits for its source to answer needs none. The few that do not wait can
// share memory that is in the processor's caches.
func (b *Batch) SetAllocator(allocate func(*Batch)) { b.allocate = allocate }

// EnsureBuffers calls the function of SetAllocator, if it was not called yet.
func (b *Batch) EnsureBuffers() {
	if allocate := b.allocate; allocate != nil {
		b.allocate = nil
		allocate(b)
	}
}

// Reset empties b for the next read and keeps its memory. Source, Node, Interval, Resolution,
// Exhaustive and Cores do not change.
func (b *Batch) Reset() {
	b.Began, b.Ended = time.Time{}, time.Time{}
	b.NodeTime, b.Bytes, b.Err, b.CrossCheck, b.PodCache, b.Slots, b.SlotGeneration = 0, 0, nil, nil, nil, nil, 0
	b.Samples = b.Samples[:0]
	b.Verdicts = b.Verdicts[:0]
	b.Baselines = b.Baselines[:0]
}

// CopyFrom makes b a copy of o that shares no memory with it. The copy has no CrossCheck and no
// slots.
func (b *Batch) CopyFrom(o *Batch) {
	b.Reset()
	b.Source, b.Node, b.Began, b.Ended, b.NodeTime = o.Source, o.Node, o.Began, o.Ended, o.NodeTime
	b.Interval, b.Resolution, b.Exhaustive, b.Cores = o.Interval, o.Resolution, o.Exhaustive, o.Cores
	b.Bytes, b.Err = o.Bytes, o.Err
	for i := range o.Samples {
		b.Add(o.Samples[i].Entity).CopyFrom(&o.Samples[i])
	}
	b.Verdicts = append(b.Verdicts, o.Verdicts...)
}

// Baseline is an earlier reading of the CPU counter of a sample's instance.
type Baseline struct {
	Sample int32   // index in Batch.Samples
	Time   int64   // by the node's clock, in nanoseconds since the Unix epoch
	CPU    float64 // CPU time used, in nanoseconds
}

// Failed reports whether the read failed and has no samples.
func (b *Batch) Failed() bool { return b.Err != nil && len(b.Samples) == 0 }

// Share prepares b for n readers. After n calls of Release it calls recycle with b, unless
// recycle is nil. Share takes the slot table and the pod cache away from b.
func (b *Batch) Share(n int, recycle func(*Batch)) {
	b.recycle = recycle
	if b.Slots != nil {
		b.SlotGeneration = b.Slots.Generation()
	}
	b.PodCache, b.Slots = nil, nil // their owners use them for the next batch
	b.refs.Store(int32(n))
}

// Release ends the use of b by one reader.
func (b *Batch) Release() {
	if b.refs.Add(-1) == 0 && b.recycle != nil {
		b.recycle(b)
	}
}
