//go:build linux && e2e

package notify_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/weir-metrics/weir/eviction/notify"
	"github.com/weir-metrics/weir/test/memoryload"
)

func descriptors(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// TestStopIsClean checks that Close closes every descriptor, after watches were added, moved and
// removed.
func TestStopIsClean(t *testing.T) {
	mem, dir := memoryload.MemoryCgroup(t), pressured(t)
	before := descriptors(t)
	n, err := notify.New(notify.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- n.Run(ctx, func(context.Context, notify.Notice) {}) }()

	following := usageOf(mem, "following", mebi)
	following.WorkingSet = mebi
	trigger := notify.StallTrigger{Path: filepath.Join(dir, "cpu.pressure"), Stall: time.Second, Window: 2 * time.Second}
	var watches []int
	for i := range int64(3) {
		err := update(n, usageOf(mem, "hard", (i+1)*mebi), usageOf(mem, "soft", mebi), following,
			trigger, notify.EventCounters{Path: filepath.Join(dir, "cgroup.events")},
			notify.EventCounters{Path: filepath.Join(dir, "no.such")}, usageOf(dir, "", mebi))
		if err == nil {
			t.Error("no error for what cannot be watched")
		}
		watches = append(watches, descriptors(t)-before)
	}
	// There are two for epoll and its eventfd, two for each threshold, three for a threshold that
	// follows the cache, and one each for the trigger and the events.
	if watches[0] != 2+2+2+3+1+1 || watches[2] != watches[0] {
		t.Errorf("descriptors after each update: %v, want 11 each", watches)
	}
	if err := update(n, trigger); err != nil {
		t.Error(err)
	}
	if got := descriptors(t) - before; got != 3 {
		t.Errorf("with one watch left: %d descriptors, want 3", got)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("Run returned %v at the end of its context", err)
	}
	for range 2 {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	}
	if after := descriptors(t); after != before {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
	if err := update(n, trigger); err == nil {
		t.Error("update after close: no error")
	}
}
