//go:build linux && e2e

package notify_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/weir-metrics/weir/eviction"
	"github.com/weir-metrics/weir/eviction/notify"
	"github.com/weir-metrics/weir/test/memoryload"

	"golang.org/x/sys/unix"
)

const mebi = 1 << 20

func usageOf(dir, name string, figure int64) notify.UsageThreshold {
	return notify.UsageThreshold{Name: name, CgroupThreshold: eviction.CgroupThreshold{Path: dir, Attribute: "memory.usage_in_bytes", Bytes: figure}}
}

// cross lets the worker cross the figure. It returns the times from the crossing to the call of
// Run's function, and to the wake.
func cross(t testing.TB, w *memoryload.Process, dir string, figure int64, notices <-chan recordedNotices) (call, wake time.Duration) {
	t.Helper()
	crossed := w.CrossFigure(dir, figure)
	_, n := await(t, notices, "the crossing", above)
	now, clock := time.Now(), memoryload.Clock()
	return clock - now.Sub(n.when) - crossed, clock - now.Sub(n.At) - crossed
}

func percentile(d []time.Duration, p int) time.Duration {
	slices.Sort(d)
	return d[len(d)*p/100]
}

// TestThresholdOnTheKernel checks that each of two hundred crossings gives a notice.
func TestThresholdOnTheKernel(t *testing.T) {
	const crossings, figure = 200, 16 * mebi
	dir := memoryload.MemoryCgroup(t)
	w := memoryload.Start(t, dir)
	n, notices := listen(t, notify.Options{MaxInterval: time.Hour, MinInterval: time.Microsecond})
	if err := update(n, usageOf(dir, "", figure)); err != nil {
		t.Fatal(err)
	}
	var calls, wakes []time.Duration
	for range crossings {
		call, wake := cross(t, w, dir, figure, notices)
		// The wake may be before the child noticed the crossing: the kernel counts pages in stock, and
		// they may have been returned before the child read the usage.
		if call < wake {
			t.Fatalf("woken %s, called %s after the crossing", wake, call)
		}
		calls, wakes = append(calls, call), append(wakes, wake)
		w.Command("free")
		await(t, notices, "the way down", below)
	}
	t.Logf("%d crossings: to the wake p50 %s p99 %s, to the call p50 %s p99 %s", crossings,
		percentile(wakes, 50), percentile(wakes, 99), percentile(calls, 50), percentile(calls, 99))
}

// TestThresholdCrossedBefore checks a threshold that is already crossed when it is registered, or
// when its figure changes: it gives exactly one notice, at once.
func TestThresholdCrossedBefore(t *testing.T) {
	dir := memoryload.MemoryCgroup(t)
	w := memoryload.Start(t, dir)
	w.Command("grow %d", 16*mebi)
	n, notices := listen(t, notify.Options{MaxInterval: time.Hour, MinInterval: time.Microsecond})
	for _, step := range []struct {
		figure int64
		want   func(notify.NoticeSource) bool
	}{{8 * mebi, above}, {8 * mebi, nil}, {32 * mebi, below}, {31*mebi + 5, nil}, {4 * mebi, above}} {
		if err := update(n, usageOf(dir, "soft", step.figure)); err != nil {
			t.Fatal(err)
		}
		if step.want == nil {
			continue // a notice here would be read as the next one
		}
		s := (<-notices).Sources[0]
		if !step.want(s) || !s.Crossing.Read || s.Crossing.Figure != step.figure {
			t.Errorf("figure %d: told %v", step.figure, s)
		}
	}
	// Now only the current figure is registered with the kernel.
	if err := update(n, usageOf(dir, "soft", 24*mebi)); err != nil {
		t.Fatal(err)
	}
	await(t, notices, "the figure going up", below)
	w.CrossFigure(dir, 24*mebi)
	// When the usage is read, it may be below the figure again, because the kernel charges pages in
	// advance.
	if s := (<-notices).Sources[0]; s.Crossing.Read || s.Crossing.Figure != 24*mebi {
		t.Errorf("after the last move: told %v", s)
	}
}

// TestThresholdFollowsTheCache lets a process grow in a cgroup that is full of page cache. The
// usage always stays at the limit, so only a figure that follows the cache is crossed.
func TestThresholdFollowsTheCache(t *testing.T) {
	const limit, workingSet = 24 * mebi, 10 * mebi
	dir := memoryload.MemoryCgroup(t)
	var fs unix.Statfs_t
	if err := unix.Statfs(t.TempDir(), &fs); err != nil || fs.Type == unix.TMPFS_MAGIC {
		t.Skip("files of a tmpfs are no cache that could be dropped: set TMPDIR to a disk")
	}
	if err := os.WriteFile(filepath.Join(dir, "memory.limit_in_bytes"), []byte(strconv.Itoa(limit)), 0o644); err != nil {
		t.Fatal(err)
	}
	w := memoryload.Start(t, dir)
	n, notices := listen(t, notify.Options{MaxInterval: time.Hour, MinInterval: time.Microsecond, FollowInterval: 20 * time.Millisecond})
	watch := usageOf(dir, "hard", workingSet)
	watch.WorkingSet = workingSet
	if err := update(n, watch); err != nil {
		t.Fatal(err)
	}
	w.Command("cache %s %d", filepath.Join(t.TempDir(), "file"), 2*limit)
	s, _ := await(t, notices, "the figure being above the limit", func(s notify.NoticeSource) bool {
		return below(s) && s.Crossing.Figure > limit
	})
	t.Log("full of cache:", s)
	w.Command("grow %d", workingSet+2*mebi)
	s, _ = await(t, notices, "the working set", func(s notify.NoticeSource) bool {
		return above(s) && s.Crossing.Figure <= limit
	})
	t.Log("grown:", s)
	if s.Crossing.Usage < limit-4*mebi {
		t.Errorf("usage fell to %d: the cache was not displaced, so this shows nothing", s.Crossing.Usage)
	}
}

func TestThresholdOfACgroupRemoved(t *testing.T) {
	dir := memoryload.MemoryCgroup(t)
	n, notices := listen(t, notify.Options{MaxInterval: time.Hour, MinInterval: time.Microsecond})
	watch := usageOf(dir, "soft", mebi)
	if err := update(n, watch); err != nil {
		t.Fatal(err)
	}
	memoryload.Remove(t, dir)
	if s, _ := await(t, notices, "the removal", gone); s.Watch != notify.Watch(watch) {
		t.Errorf("gone: %v, want %v", s.Watch, watch)
	}
	var e *notify.WatchError
	if err := update(n, watch); !errors.As(err, &e) || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("update without the cgroup: %v", err)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := update(n, watch); err != nil {
		t.Errorf("update with the cgroup back: %v", err)
	}
}

func TestThresholdOnVersion2(t *testing.T) {
	dir := memoryload.UnifiedCgroup(t)
	n, _ := listen(t, notify.Options{})
	err := update(n, usageOf(dir, "soft", mebi))
	want := "watch soft (" + dir + "/memory.usage_in_bytes): a cgroup of version 2 gives no notice of its usage; the other watches and the timer remain"
	if !errors.Is(err, notify.ErrUnsupported) || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// TestThresholdThatCannotMoveStays checks that the old figure stays registered if there is no
// descriptor for a new one.
func TestThresholdThatCannotMoveStays(t *testing.T) {
	dir := memoryload.MemoryCgroup(t)
	w := memoryload.Start(t, dir)
	n, notices := listen(t, notify.Options{MaxInterval: time.Hour, MinInterval: time.Microsecond})
	if err := update(n, usageOf(dir, "soft", 16*mebi)); err != nil {
		t.Fatal(err)
	}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 3, Max: limit.Max}); err != nil {
		t.Fatal(err)
	}
	err := update(n, usageOf(dir, "soft", 32*mebi))
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(err, unix.EMFILE) {
		t.Fatalf("got %v, want no room", err)
	}
	w.CrossFigure(dir, 16*mebi)
	if s, _ := await(t, notices, "the crossing of the old figure", above); s.Crossing.Figure != 16*mebi {
		t.Errorf("got %+v, want the old figure", s.Crossing)
	}
}
