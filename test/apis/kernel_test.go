//go:build e2e

package apis

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/weir-metrics/weir/test/cluster/harness"
)

// counted is a reading of a cgroup's counters at a moment.
type counted struct {
	at time.Time
	harness.Use
}

// kernel has the kernel's counters of one container's own cgroup, read several
// times a second. This is the truth, even if the container has duplicates.
type kernel struct {
	mu       sync.Mutex
	readings []counted
}

// count reads a cgroup until the end of the test. The container started at born
// or up to a second later, because the API server reports whole seconds.
func count(t *testing.T, g harness.PodCgroup, born time.Time) *kernel {
	t.Helper()
	k := &kernel{readings: []counted{{at: born}}}
	read := func() error {
		before := time.Now()
		use, err := g.Use()
		if err != nil {
			return err
		}
		at := before.Add(time.Since(before) / 2)
		k.mu.Lock()
		defer k.mu.Unlock()
		k.readings = append(k.readings, counted{at, use})
		return nil
	}
	if err := read(); err != nil {
		t.Fatal(err)
	}
	// A request for a time after the end of the container finds no reading.
	background(t, 200*time.Millisecond, func() bool { return read() == nil })
	return k
}

// early is how long before its start at the API server a container may have
// been created. Its window may begin then, with no usage yet.
const early = 10 * time.Second

// cpuAt returns the CPU time up to a moment, interpolated between the readings
// around it. At the start of the container it is 0: the CPU time that the start
// needs belongs to the container.
func (k *kernel) cpuAt(at time.Time) (time.Duration, bool) {
	if born := k.readings[0].at; at.Before(k.readings[1].at) && !at.After(born.Add(time.Second)) {
		return 0, at.After(born.Add(-early))
	}
	i, exact := slices.BinarySearchFunc(k.readings, at, func(c counted, at time.Time) int { return c.at.Compare(at) })
	if exact {
		return k.readings[i].CPU, true
	}
	if i == len(k.readings) {
		return 0, false
	}
	before, after := k.readings[i-1], k.readings[i]
	share := float64(at.Sub(before.at)) / float64(after.at.Sub(before.at))
	return before.CPU + time.Duration(share*float64(after.CPU-before.CPU)), true
}

// memoryBetween returns the smallest and the largest working set in an
// interval.
func (k *kernel) memoryBetween(from, to time.Time) (least, most float64) {
	least = math.Inf(1)
	for _, c := range k.readings[1:] { // the first is the start
		if v := float64(c.WorkingSet); !c.at.Before(from) && !c.at.After(to) {
			least, most = min(least, v), max(most, v)
		}
	}
	return least, most
}

// claim is what a server reports as a container's usage.
type claim struct {
	at     time.Time // the end of the window, rounded down to a second by the API
	window time.Duration
	use
}

var errEarlierLife = errors.New("the window begins before the container started")

// judge returns the true usage over the claim's window, and the relative error
// of the claim. The window ends somewhere in the second that the claim names.
// judge tries steps of a twentieth of a second and takes the one with the
// smallest error. The kubelet may have read a counter up to lag after the time
// that it gives it: on a machine without CPU to spare a container that catches
// up in bursts uses much in that time. Of the usages that are possible so, the
// truth is the one nearest to the claim.
func (k *kernel) judge(c claim, lag time.Duration) (truth use, off use, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	off.millicores = math.Inf(1)
	for shift := time.Duration(0); shift <= time.Second; shift += 50 * time.Millisecond {
		end := c.at.Add(shift)
		from, okFrom := k.cpuAt(end.Add(-c.window))
		fromLate, okFromLate := k.cpuAt(end.Add(lag - c.window))
		to, okTo := k.cpuAt(end)
		toLate, okToLate := k.cpuAt(end.Add(lag))
		if !okFrom || !okFromLate || !okTo || !okToLate {
			continue
		}
		millicores := func(used time.Duration) float64 { return 1000 * float64(used) / float64(c.window) }
		is := min(max(c.millicores, millicores(to-fromLate)), millicores(toLate-from))
		if o := math.Abs(c.millicores-is) / is; o < off.millicores {
			truth.millicores, off.millicores = is, o
		}
	}
	if math.IsInf(off.millicores, 1) {
		return truth, off, errEarlierLife
	}
	// A kubelet may have read memory some seconds before or after CPU.
	least, most := k.memoryBetween(c.at.Add(-c.window), c.at.Add(c.window))
	truth.bytes = min(max(c.bytes, least), most)
	off.bytes = math.Abs(c.bytes-truth.bytes) / truth.bytes
	return truth, off, nil
}

// percent returns a share as text.
func percent(share float64) string { return fmt.Sprintf("%.1f%%", 100*share) }
