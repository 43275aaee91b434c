//go:build linux && e2e

package notify_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/weir-metrics/weir/eviction/notify"
	"github.com/weir-metrics/weir/test/background"
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
	dir := pressured(t)
	before := descriptors(t)
	n, err := notify.New(notify.Options{})
	if err != nil {
		t.Fatal(err)
	}
	stop := background.Run(t, func(ctx context.Context) error { return n.Run(ctx, func(context.Context, notify.Notice) {}) })

	trigger := notify.StallTrigger{Path: filepath.Join(dir, "cpu.pressure"), Stall: time.Second, Window: 2 * time.Second}
	other := notify.StallTrigger{Path: filepath.Join(dir, "memory.pressure"), Stall: time.Second, Window: 2 * time.Second}
	var watches []int
	for range 3 {
		err := update(n, trigger, other, notify.StallTrigger{Path: filepath.Join(dir, "no.such"), Stall: time.Second, Window: 2 * time.Second}, notify.Poll{})
		if err == nil {
			t.Error("no error for what cannot be watched")
		}
		watches = append(watches, descriptors(t)-before)
	}
	// There are the eventfd and one for each trigger.
	if watches[0] != 1+2 || watches[2] != watches[0] {
		t.Errorf("descriptors after each update: %v, want 3 each", watches)
	}
	if err := update(n, trigger); err != nil {
		t.Error(err)
	}
	if got := descriptors(t) - before; got != 2 {
		t.Errorf("with one watch left: %d descriptors, want 2", got)
	}
	stop()
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
