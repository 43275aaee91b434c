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

// counted is what the kernel had counted of a cgroup at a moment.
type counted struct {
	at time.Time
	harness.Use
}

// kernel is what the kernel counts of one container's own cgroup, read several
// times a second: the truth, whoever else goes by the container's name.
type kernel struct {
	mu       sync.Mutex
	readings []counted
}

// count reads a cgroup until the test ends. The container started at born, or
// up to a second later: the API server tells whole seconds.
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
	// Once the container has ended, what is asked for later is not there.
	background(t, 200*time.Millisecond, func() bool { return read() == nil })
	return k
}

// early is how long before its start, as the API server tells it, a container may
// have been made: its window may begin then, when it had used nothing.
const early = 10 * time.Second

// cpuAt returns the CPU time counted by then, between the readings around it. A
// window that begins with the container holds all that was ever counted: what it
// took to start the container is the container's own.
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

// memoryBetween returns the least and the most memory in use in a span of time.
func (k *kernel) memoryBetween(from, to time.Time) (least, most float64) {
	least = math.Inf(1)
	for _, c := range k.readings[1:] { // the first is the birth
		if v := float64(c.WorkingSet); !c.at.Before(from) && !c.at.After(to) {
			least, most = min(least, v), max(most, v)
		}
	}
	return least, most
}

// claim is what a server says a container uses.
type claim struct {
	at     time.Time // the end of the window, cut to a whole second by the API
	window time.Duration
	use
}

var errEarlierLife = errors.New("the window begins before the container started")

// judge returns what the container truly used over the claim's window, and by
// which share the claim is off. The window ends somewhere in the second that the
// claim tells: the claim has the benefit of that doubt, in steps of a twentieth.
func (k *kernel) judge(c claim) (truth use, off use, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	off.millicores = math.Inf(1)
	for shift := time.Duration(0); shift <= time.Second; shift += 50 * time.Millisecond {
		end := c.at.Add(shift)
		from, okFrom := k.cpuAt(end.Add(-c.window))
		to, okTo := k.cpuAt(end)
		if !okFrom || !okTo {
			continue
		}
		is := 1000 * float64(to-from) / float64(c.window)
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

// percent says a share.
func percent(share float64) string { return fmt.Sprintf("%.1f%%", 100*share) }
