//go:build linux && e2e

package notify_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-metrics/weir/eviction/notify"
	"github.com/weir-metrics/weir/test/memoryload"
)

// TestEventsOnTheKernel uses cgroup.events, which exists with any controllers and gives notice like
// memory.events.
func TestEventsOnTheKernel(t *testing.T) {
	dir := memoryload.UnifiedCgroup(t)
	w := memoryload.Start(t)
	n, notices := listen(t, notify.Options{MaxInterval: time.Hour, MinInterval: time.Microsecond})
	watch := notify.EventCounters{Path: filepath.Join(dir, "cgroup.events")}
	if err := update(n, watch); err != nil {
		t.Fatal(err)
	}
	// The watch continues after a change, so there are two changes.
	for _, to := range []uint64{1, 0} {
		if to == 1 {
			memoryload.Join(t, dir, w.PID)
		} else {
			memoryload.Join(t, filepath.Dir(dir), w.PID)
		}
		s, _ := await(t, notices, "the change", func(notify.NoticeSource) bool { return true })
		want := notify.NoticeSource{Watch: watch, Changes: []notify.CounterChange{{Counter: "populated", From: 1 - to, To: to}}}
		if d := cmp.Diff(want, s); d != "" {
			t.Errorf("-want +got:\n%s", d)
		}
	}
	memoryload.Remove(t, dir)
	if err := update(n, watch); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("update without the cgroup: %v", err)
	}
}

func TestMemoryEvents(t *testing.T) {
	dir := memoryload.UnifiedCgroup(t)
	n, notices := listen(t, notify.Options{MaxInterval: time.Hour, MinInterval: time.Microsecond})
	watch := notify.EventCounters{Path: filepath.Join(dir, "memory.events")}
	err := update(n, watch)
	if _, missing := os.Stat(watch.Path); missing != nil {
		if !errors.Is(err, notify.ErrUnsupported) {
			t.Errorf("without the controller: got %v, want ErrUnsupported", err)
		}
		t.Skip("the memory controller is not in version 2 here: only the refusal was tested")
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "memory.high"), []byte("8388608"), 0o644); err != nil {
		t.Fatal(err)
	}
	memoryload.Start(t, dir).Command("grow %d", 9*mebi)
	s, _ := await(t, notices, "memory.high", func(s notify.NoticeSource) bool { return len(s.Changes) > 0 })
	if c := s.Changes[0]; c.Counter != "high" || c.To <= c.From {
		t.Errorf("told %v, want high to rise", s)
	}
}
