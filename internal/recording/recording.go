// Package recording reads and writes recordings of a run: the batches of sources and the
// cluster facts, before any processor changed them. A replay through the same pipeline gives
// the same numbers.
//
// # Format
//
// A file is a header and blocks. A block has a length and a checksum, and contains
// records, compressed: a read of a source (a round) with the time and the facts that the processors
// got, a change of facts, a source that is gone, a scale target. Records are messages of Protocol
// Buffers. They refer to names, and rounds to facts, of earlier records; a Begin record, at the
// beginning of a file and once an hour, ends all references. docs/recording.md describes every byte.
//
// # Promises
//
// A round is read back bit for bit, except its error: only its text, its reason and whether a
// deadline has passed are kept. A file that ends early is read up to its last complete block. A
// reader skips fields, records and blocks that it does not know, and metrics with unknown
// names. The bytes of files can be joined.
//
// # Left to others
//
// Files, their rotation and their limits (sinks/recorder); pace (sources/player); the
// pipeline (the manager). Facts contain no secrets, so recordings contain none.
//
//	recording.go  frames, options and errors
//	writer.go     Writer; reader.go Reader
//	block.go      blocks and their checksums
//	codec.go      fields of Protocol Buffers: one description of a message encodes and decodes it
//	batch.go      messages of a round; facts.go of facts and targets
package recording

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// FrameKind is the kind of a Frame.
type FrameKind uint8

// The kinds of frame. The number + 1 is the field of Record.
const (
	// Begin: later records refer to no record before it.
	Begin FrameKind = iota + 1
	// Facts: the cluster facts have changed.
	Facts
	// Round: a source was read.
	Round
	// Gone: a source is no longer read.
	Gone
	// Scale: a scale target is new, has changed or is gone.
	Scale
	numKinds
)

var kindNames = [...]string{Begin: "begin", Facts: "facts", Round: "round", Gone: "gone", Scale: "scale"}

// String returns the lower-case name of k.
func (k FrameKind) String() string {
	if int(k) < len(kindNames) && kindNames[k] != "" {
		return kindNames[k]
	}
	return "unknown"
}

// Frame is one event of a recording.
type Frame struct {
	Kind FrameKind
	// Now is the time of the event by the clock of the weir that recorded it: for a Round the
	// time that the processors got, for Facts when they arrived, for a Scale when it was seen.
	// A Gone has the time of the frame before.
	Now time.Time
	// Facts are the facts of that time; for a Round those that the processors got. Nil without
	// a cluster. They are immutable and may be kept.
	Facts *cluster.Facts
	// Batch is the batch of a Round, as the source filled it. It is valid until the next frame
	// is read.
	Batch *metric.Batch
	// Source and Node are the source of a Round or Gone.
	Source string
	Node   metric.NodeName
	// Scale is the target of a Scale frame. It may be kept.
	Scale *ScaleTarget
	// Fresh reports that a Begin begins a new run: a pipeline starts without any state. Otherwise
	// the run continues.
	Fresh bool
	// By is the program that wrote the records after a Begin: "weir v1.2.3".
	By string
	// Missing reports that a Begin follows a gap: records from this time to Now were not written.
	// It is zero without a gap.
	Missing time.Time
}

// ScaleTarget is a resource with a scale subresource.
type ScaleTarget struct {
	// Group and Resource are as in a URL: "apps", "deployments".
	Group, Resource string
	Namespace       metric.Namespace
	Name            string
	// Replicas is spec.replicas of its scale, Current status.replicas.
	Replicas, Current int32
	// Selector is status.selector of its scale.
	Selector string
	// HPA is the name of the HorizontalPodAutoscaler that owns it, and Spec its spec as
	// JSON (autoscaling/v2); both empty without one.
	HPA  string
	Spec json.RawMessage
	// Gone reports that the target no longer exists, or is no longer followed.
	Gone bool
}

// Options describe how a recording is written. The zero Options means the defaults.
type Options struct {
	// Begin is when the run began. If it has a monotonic clock reading, clock steps are
	// recorded. Default: now.
	Begin time.Time
	// Continues reports that the run began in an earlier file.
	Continues bool
	// By is the program that writes: "weir v1.2.3".
	By string
	// Missing, if not zero, is the time since which records of the run were not written. The next
	// Begin reports that.
	Missing time.Time
	// Block is the number of bytes in a block before it is compressed. Default 256 KiB.
	Block int
	// Flush is the longest time that a record waits for its block to be written, by the
	// times of records: what a crash may lose. Default 10 s; negative writes each record at
	// once.
	Flush time.Duration
	// Restart is the time between two Begin records. It bounds how many names a reader
	// keeps. Default 1 hour.
	Restart time.Duration
}

func (o Options) withDefaults() Options {
	if o.Begin.IsZero() {
		o.Begin = time.Now()
	}
	o.Block = cmp.Or(max(o.Block, 0), 256<<10)
	o.Block = min(o.Block, maxRecord)
	o.Flush = cmp.Or(o.Flush, 10*time.Second)
	o.Restart = cmp.Or(max(o.Restart, 0), time.Hour)
	return o
}

// NoRecordingError means that a file is not a recording that this weir can read.
type NoRecordingError struct{ Why string }

// Error returns the cause.
func (e *NoRecordingError) Error() string { return "this is not a recording: " + e.Why }

// TruncatedError means that a file ends within a block, because its writer was killed. All
// frames before that block are complete.
type TruncatedError struct {
	At int64 // bytes up to the end of the last complete block
}

// Error returns where the file ends.
func (e *TruncatedError) Error() string {
	return fmt.Sprintf("the recording ends within a block after byte %d: its writer was killed; everything before that byte is whole", e.At)
}

// DamagedError means that the bytes of a file have changed. All frames before the damage are
// complete.
type DamagedError struct {
	At  int64 // where the damaged block begins
	Err error
}

// Error returns where the damage is, and the cause.
func (e *DamagedError) Error() string {
	return fmt.Sprintf("the recording is damaged at byte %d: %v; everything before that byte is whole", e.At, e.Err)
}

// Unwrap returns the cause.
func (e *DamagedError) Unwrap() error { return e.Err }
