package notify

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/weir-metrics/weir/eviction"
)

// Watch is a notice to request from the kernel: a UsageThreshold, a StallTrigger or EventCounters.
type Watch interface {
	// String returns a description for people.
	String() string
	// key identifies the watch. Watches with equal keys are the same watch, possibly with different
	// figures.
	key() string
}

// UsageThreshold gives notice when the usage of a memory cgroup (version 1) crosses a figure, up or
// down. The kernel compares after about 128 pages were charged or freed on a processor, so a notice
// can be late by that many pages for each processor.
type UsageThreshold struct {
	// Name distinguishes thresholds on one cgroup.
	Name string
	// CgroupThreshold is the cgroup and the figure. If it has a WorkingSet, the figure is WorkingSet
	// plus the current inactive_file, and Bytes is only the first estimate.
	eviction.CgroupThreshold
}

// StallTrigger gives notice when tasks stall for Stall or longer within Window.
type StallTrigger struct {
	// Path is a pressure file: /proc/pressure/memory, or memory.pressure in a cgroup of version 2.
	Path string
	// Full is set if all tasks that are not idle must stall; otherwise one is enough.
	Full bool
	// Window is 500 ms to 10 s. Without CAP_SYS_RESOURCE it must be a multiple of 2 s, and the kernel
	// checks only every 2 s. Stall is at most Window. There is at most one notice in each Window.
	Stall, Window time.Duration
}

// EventCounters gives notice when a counter changes in a counter file of a cgroup of version 2:
// memory.events, memory.events.local, pids.events, cgroup.events.
type EventCounters struct{ Path string }

// stallWindow is the shortest window that needs no capability. The kernel also computes its
// averages at this interval.
const stallWindow = 2 * time.Second

// WatchFor returns what to watch for an eviction threshold: a UsageThreshold for memory, a
// StallTrigger of the whole node for a pressure signal. It returns an error for any other signal.
//
// The trigger has the signal's share of a window of 2 s. The kernel computes its averages from
// samples of 2 s, and an average rises past a figure only if a sample is above the figure. The
// trigger therefore gives notice whenever avg10 rises past the threshold. It also gives notice of
// stalls that are too short to raise the average so far.
func WatchFor(t *eviction.Threshold, s *stats.Summary, c eviction.Cgroups) (Watch, error) {
	if t.Signal.Pressure() {
		parts := strings.Split(string(t.Signal), ".")
		return StallTrigger{
			Path:   filepath.Join("/proc/pressure", parts[0]),
			Full:   parts[2] == "full",
			Stall:  time.Duration(t.Value.Stall / 100 * float64(stallWindow)),
			Window: stallWindow,
		}, nil
	}
	n, err := t.CgroupThreshold(s, c)
	if err != nil {
		return nil, err
	}
	return UsageThreshold{Name: t.String(), CgroupThreshold: n}, nil
}

// String returns the name and the file.
func (t UsageThreshold) String() string {
	return strings.TrimSpace(t.Name + " (" + filepath.Join(t.Path, t.Attribute) + ")")
}

// String returns the share, stall, window and file.
func (t StallTrigger) String() string {
	return fmt.Sprintf("%s stalled for %s in %s (%s)", t.share(), t.Stall, t.Window, t.Path)
}

// String returns the file.
func (e EventCounters) String() string { return e.Path }

// Poll is the caller's own poll of what the kernel gives no notice of: see Notifier.NotifyPoll.
type Poll struct{}

// String returns what is polled.
func (Poll) String() string { return "disks and process ids" }

func (Poll) key() string             { return "poll" }
func (t UsageThreshold) key() string { return "threshold " + t.String() }
func (t StallTrigger) key() string   { return "trigger " + t.String() }
func (e EventCounters) key() string  { return "events " + e.Path }

func (t StallTrigger) share() string {
	if t.Full {
		return "full"
	}
	return "some"
}

// ErrUnsupported is the error of a watch that this kernel or this mount can never support. Do not
// try again.
var ErrUnsupported = errors.New("not supported here")

// WatchError is the reason why a watch is not active, or is no longer updated.
type WatchError struct {
	Watch Watch
	Err   error
}

// Error returns what failed and why, and what is still active.
func (e *WatchError) Error() string {
	return "watch " + e.Watch.String() + ": " + e.Err.Error() + "; the other watches and the timer remain"
}

// Unwrap returns the cause; it may be ErrUnsupported.
func (e *WatchError) Unwrap() error { return e.Err }

// unsupported is an ErrUnsupported that says what is missing.
type unsupported string

func (u unsupported) Error() string        { return string(u) }
func (u unsupported) Is(target error) bool { return target == ErrUnsupported }
