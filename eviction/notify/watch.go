package notify

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/weir-metrics/weir/eviction"
)

// Watch is what gives notice: a StallTrigger of the kernel, or the caller's own MemoryPoll or Poll.
type Watch interface {
	// String returns a description for people.
	String() string
}

// MemoryPoll is the caller's own poll of a working set, or of the other uses that Used names: see
// Notifier.Notify. The kernel gives no such notice: version 2 of cgroups has none, and that of
// version 1 is of the usage, which includes the page cache that the kernel can drop.
type MemoryPoll struct {
	// Signal is the signal of the threshold.
	Signal eviction.Signal
	// Name is the threshold.
	Name string
	// Path is the file, or the cgroup, that has the working set.
	Path string
	// Figure is the largest working set, in bytes, with which the threshold is not met.
	Figure int64
}

// StallTrigger gives notice when tasks stall for Stall or longer within Window.
type StallTrigger struct {
	// Path is a pressure file, such as /proc/pressure/memory.
	Path string
	// Full is set if all tasks that are not idle must stall; otherwise one is enough.
	Full bool
	// Window is 500 ms to 10 s. Without CAP_SYS_RESOURCE it must be a multiple of 2 s, and the kernel
	// checks only every 2 s. Stall is at most Window. There is at most one notice in each Window.
	Stall, Window time.Duration
}

// stallWindow is the shortest window that needs no capability. The kernel also computes its
// averages at this interval.
const stallWindow = 2 * time.Second

// NewMemoryPoll returns the poll of a threshold of memory or swap that has a figure. podsCgroup is the
// directory of the memory cgroup of all pods.
func NewMemoryPoll(t *eviction.ThresholdState, podsCgroup string) MemoryPoll {
	path := "/proc/meminfo"
	if t.Threshold.Signal == eviction.AllocatableMemoryAvailable {
		path = podsCgroup
	}
	return MemoryPoll{Signal: t.Threshold.Signal, Name: t.Threshold.String(), Path: path, Figure: t.Observation.Capacity - t.Limit.Value()}
}

// NewStallTrigger returns the trigger of the whole node for a threshold of a pressure signal.
//
// The trigger has the signal's share of a window of 2 s. The kernel computes its averages from
// samples of 2 s, and an average rises past a figure only if a sample is above the figure. The
// trigger therefore gives notice whenever avg10 rises past the threshold. It also gives notice of
// stalls that are too short to raise the average so far.
func NewStallTrigger(t *eviction.Threshold) StallTrigger {
	parts := strings.Split(string(t.Signal), ".")
	return StallTrigger{
		Path:   filepath.Join("/proc/pressure", parts[0]),
		Full:   parts[2] == "full",
		Stall:  time.Duration(t.Value.Stall / 100 * float64(stallWindow)),
		Window: stallWindow,
	}
}

// Used returns what the poll reads, for people.
func (m MemoryPoll) Used() string {
	switch m.Signal {
	case eviction.MemAvailable:
		return "the memory that is not available"
	case eviction.SwapAvailable:
		return "the swap in use"
	default:
		return "the working set"
	}
}

// String returns the name and the file.
func (m MemoryPoll) String() string { return m.Name + " (" + m.Path + ")" }

// String returns the share, stall, window and file.
func (t StallTrigger) String() string {
	return fmt.Sprintf("%s stalled for %s in %s (%s)", t.share(), t.Stall, t.Window, t.Path)
}

// Poll is the caller's own poll of disks and process ids: see Notifier.Notify.
type Poll struct{}

// String returns what is polled.
func (Poll) String() string { return "disks and process ids" }

func (t StallTrigger) share() string {
	if t.Full {
		return "full"
	}
	return "some"
}

// WatchError is the reason why a watch is not active, or is no longer updated.
type WatchError struct {
	Watch Watch
	Err   error
}

// Error returns what failed and why, and what is still active.
func (e *WatchError) Error() string {
	return "watch " + e.Watch.String() + ": " + e.Err.Error() + "; the other watches and the timer remain"
}

// Unwrap returns the cause.
func (e *WatchError) Unwrap() error { return e.Err }
