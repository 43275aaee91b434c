package metric

import (
	"sync/atomic"
	"time"
)

// Group is a set of metrics that are read at one moment and share its
// timestamp and its verdict.
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
	Spec          // what was asked for or given: requests, limits, capacity; and uptime
	NumGroups int = iota
)

// Sample.Received and Sample.LastKnown have a bit for each group: this does not compile
// if there are more groups than bits.
const _ = uint(16 - NumGroups)

var groupNames = [NumGroups]string{"cpu", "memory", "network", "filesystem", "io", "process", "accelerator", "spec"}

// String returns the lower-case name of g.
func (g Group) String() string {
	if int(g) < NumGroups {
		return groupNames[g]
	}
	return "unknown"
}

// Window is the time a rate was measured over: the served rate is
// (C(End)-C(End-Length))/Length. The zero Window means there is no rate.
type Window struct {
	End    int64         // nanoseconds since the Unix epoch, by the node's clock
	Length time.Duration // 0 with a non-zero End: the node gave a rate without saying over what
}

// Sample is what one read says of one instance of one entity. A source fills
// Entity, Instance, Values and Times; the processors add the rest.
type Sample struct {
	Entity   Entity
	Instance Instance
	Values   Values
	// Times is when each group was read by the node, in nanoseconds since the
	// Unix epoch; 0 where no metric of the group was read.
	Times [NumGroups]int64
	// Reasons is the verdict on each group: Measured, or why its numbers are
	// not to be served. Unjudged until a processor has spoken. The evidence
	// lies in Batch.Verdicts.
	Reasons [NumGroups]Reason
	// Received marks groups whose time is not the node's: the node gave none,
	// and Times holds the middle of our request. Such a time is never paired
	// with a node's. Bit g is group g.
	Received uint16
	// LastKnown marks groups that were not in this read: their last values are repeated until
	// it is too old. Bit g is group g.
	LastKnown uint16

	rejected bool

	// Slot is the entity's number in Batch.Slots; 0 before it has one.
	Slot uint32

	// Rates is over which window the rate metrics of each group were measured.
	Rates [NumGroups]Window
}

// Servable reports whether group g of s holds numbers that may be served.
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

// Reject gives every group the reason r, so that none of the sample's numbers
// is served. A reason of identity rejects the sample: it is a number of
// something else, kept only for its verdict.
func (s *Sample) Reject(r Reason) {
	for g := range s.Reasons {
		s.Reasons[g] = r
	}
	s.rejected = r.Layer() == LayerIdentity
}

// Rejected reports whether identity turned the sample away whole. A sample
// that was chosen among rivals nothing tells apart is Ambiguous and not
// rejected; those it was preferred to are.
func (s *Sample) Rejected() bool { return s.rejected }

// CopyFrom makes s hold what o holds, in memory of its own.
func (s *Sample) CopyFrom(o *Sample) {
	values := s.Values
	*s = *o
	s.Values = values
	s.Values.CopyFrom(&o.Values)
}

// Batch is what one read of one source gave: samples in the order they were
// reported, duplicates included. A read that gave nothing is a Batch too, with
// Err set: an absence needs its reason.
//
// # Life of a batch
//
// A Batch is filled by a source, changed in place by the processors, and then
// handed to the sinks, all within its one goroutine until that last step. From
// then on it is not changed. Each sink calls Release when it has taken what it
// needs; after the last Release the Batch goes back to be filled again, so no
// one may keep a pointer into it.
type Batch struct {
	// Source is the configured source: "kubelet:resource", "host".
	Source string
	// Node is the node the batch claims to be from; empty for a source of many.
	Node NodeName
	// Began and Ended bracket the read, by this machine's monotonic clock.
	Began, Ended time.Time
	// NodeTime is what the node's clock showed when it answered, cut to a whole
	// second, in nanoseconds since the Unix epoch; 0 if it did not say.
	NodeTime int64
	// Interval is the steady time between two reads of the source.
	Interval time.Duration
	// Resolution is the resolution of the timestamps in Samples: 1ns on the host,
	// 1ms in /metrics/resource, 1s in /stats/summary.
	Resolution time.Duration
	// Exhaustive says the source sees everything there is: what it does not
	// report is gone, rather than missed.
	Exhaustive bool
	// Cores is how many CPUs the source says the node has; 0 if it does not.
	Cores float64
	// Bytes is the size of the payload, uncompressed.
	Bytes int
	// Err is why the read failed, wholly or in part. errors.As finds a *ReadError
	// in it, whose Reason is the verdict for what is missing.
	Err error
	// Samples in the order reported.
	Samples []Sample
	// Verdicts are the reasons with their evidence; what was Measured has none.
	Verdicts []Verdict
	// CrossCheck is a second view of the same node read for identity's sake, from an
	// endpoint that names UIDs and container IDs; nil nearly always.
	CrossCheck *Batch

	// Slots is the table that the samples' slots are of; nil before they have any. It is
	// not for sinks, which have SlotGeneration.
	Slots *SlotTable
	// SlotGeneration is the generation of Slots when the batch was shared; 0 before. Two
	// batches of one SlotGeneration have the same entity at the same slot.
	SlotGeneration uint64
	// PodCache is the *cluster.PodCache that answers for this batch's pods; nil if
	// there is none. It is not for sinks.
	PodCache any

	refs     atomic.Int32
	recycle  func(*Batch)
	allocate func(*Batch) // see SetAllocator; nil once it was called
}

// SourceKey identifies the source of a batch.
type SourceKey struct {
	Source string
	Node   NodeName
}

// Key returns the key of b's source.
func (b *Batch) Key() SourceKey { return SourceKey{b.Source, b.Node} }

// Add appends an empty sample for e, in the memory of an earlier round's where
// there is some, and returns it. The pointer is valid until the next Add.
func (b *Batch) Add(e Entity) *Sample {
	n := len(b.Samples)
	if n < cap(b.Samples) {
		b.Samples = b.Samples[:n+1]
		s := &b.Samples[n]
		s.Values.Reset()
		// Field by field: a whole Sample would be made elsewhere and copied here.
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

// AssignSlots gives b's samples slots of t, unless they have slots already: the first
// step of a pipeline does it for all.
func (b *Batch) AssignSlots(t *SlotTable) {
	if b.Slots == nil {
		t.Assign(b)
	}
}

// AddAt appends an empty sample for the entity of a slot, as Add does.
func (b *Batch) AddAt(slot uint32) *Sample {
	s := b.Add(*b.Slots.Entity(slot))
	s.Slot = slot
	return s
}

// SetAllocator has lend give b, which is empty, its memory when that is first needed. A
// batch that waits for its source to answer needs none, and a few that do not wait can
// share what is warm in the processor's caches.
func (b *Batch) SetAllocator(allocate func(*Batch)) { b.allocate = allocate }

// EnsureBuffers gives b the memory it has yet to be lent, if it has.
func (b *Batch) EnsureBuffers() {
	if allocate := b.allocate; allocate != nil {
		b.allocate = nil
		allocate(b)
	}
}

// Reset empties b for the next read and keeps its memory. Source, Node,
// Interval, Clock and Exhaustive stay.
func (b *Batch) Reset() {
	b.Began, b.Ended = time.Time{}, time.Time{}
	b.NodeTime, b.Bytes, b.Err, b.CrossCheck, b.PodCache, b.Slots, b.SlotGeneration = 0, 0, nil, nil, nil, nil, 0
	b.Samples = b.Samples[:0]
	b.Verdicts = b.Verdicts[:0]
}

// CopyFrom makes b hold what o holds, in memory of its own, but for the
// Witness, of which b has none.
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

// Failed reports whether the read gave nothing at all.
func (b *Batch) Failed() bool { return b.Err != nil && len(b.Samples) == 0 }

// Share readies b for n readers. When each has called Release, recycle is
// called with b (nil for nothing to be done).
func (b *Batch) Share(n int, recycle func(*Batch)) {
	b.recycle = recycle
	if b.Slots != nil {
		b.SlotGeneration = b.Slots.Generation()
	}
	b.PodCache, b.Slots = nil, nil // their owners go on to the next batch
	b.refs.Store(int32(n))
}

// Release says that one reader is done with b.
func (b *Batch) Release() {
	if b.refs.Add(-1) == 0 && b.recycle != nil {
		b.recycle(b)
	}
}
