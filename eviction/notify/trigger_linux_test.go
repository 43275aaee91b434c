//go:build linux && e2e

package notify_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/weir-metrics/weir/eviction/notify"
	"github.com/weir-metrics/weir/sources/host/cgroupfs"
	"github.com/weir-metrics/weir/test/memoryload"
)

const mebi = 1 << 20

// pressured creates a cgroup of version 2 that has pressure files.
func pressured(t testing.TB) string {
	t.Helper()
	dir := memoryload.UnifiedCgroup(t)
	if _, err := os.ReadFile(filepath.Join(dir, "cpu.pressure")); err != nil {
		t.Skipf("the kernel keeps no pressure of cgroups: %v", err)
	}
	return dir
}

// TestTriggerOnTheKernel lets two threads on one processor stall each other, and checks that the
// kernel reports it.
func TestTriggerOnTheKernel(t *testing.T) {
	dir := pressured(t)
	w := memoryload.Start(t, dir)
	n, notices := listen(t, notify.Options{MaxInterval: time.Hour, MinInterval: time.Microsecond})
	watch := notify.StallTrigger{Path: filepath.Join(dir, "cpu.pressure"), Stall: 100 * time.Millisecond, Window: 2 * time.Second}
	if err := update(n, watch, notify.StallTrigger{Path: filepath.Join(dir, "memory.pressure"), Full: true, Stall: time.Second, Window: 2 * time.Second}); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	w.Command("burn")
	s, _ := await(t, notices, "the stall", func(s notify.NoticeSource) bool { return s.Watch != nil })
	t.Logf("after %s: %v", time.Since(start).Round(time.Millisecond), s)
	if s.Watch != notify.Watch(watch) {
		t.Errorf("woken by %v, want %v", s, watch)
	}
}

// TestTriggerOfMemory lets a process lose and read its page cache repeatedly. The kernel counts
// that time as a stall of memory.
func TestTriggerOfMemory(t *testing.T) {
	dir, mem := pressured(t), memoryload.MemoryCgroup(t)
	if err := os.WriteFile(filepath.Join(mem, memoryload.Version().MemoryLimit), []byte("12582912"), 0o644); err != nil {
		t.Fatal(err)
	}
	if memoryload.Version() == cgroupfs.V2 {
		dir = mem // a process is in one cgroup
	}
	w := memoryload.Start(t, mem, dir)
	n, notices := listen(t, notify.Options{MaxInterval: time.Hour, MinInterval: time.Microsecond})
	watch := notify.StallTrigger{Path: filepath.Join(dir, "memory.pressure"), Stall: time.Millisecond, Window: 2 * time.Second}
	if err := update(n, watch); err != nil {
		t.Fatal(err)
	}
	w.Command("cache %s %d", filepath.Join(t.TempDir(), "file"), 64*mebi)
	s, _ := await(t, notices, "the stall", func(s notify.NoticeSource) bool { return s.Watch != nil })
	t.Log(s)
}

// TestTriggerOfAFileThatIsGone checks that a trigger ends with its file: the other one still gives notice,
// and the next Update returns an error for it.
func TestTriggerOfAFileThatIsGone(t *testing.T) {
	dir, other := pressured(t), pressured(t)
	n, notices := listen(t, notify.Options{MaxInterval: time.Hour, MinInterval: time.Microsecond})
	removed := notify.StallTrigger{Path: filepath.Join(dir, "io.pressure"), Stall: time.Second, Window: 2 * time.Second}
	watch := notify.StallTrigger{Path: filepath.Join(other, "cpu.pressure"), Stall: 100 * time.Millisecond, Window: 2 * time.Second}
	if err := update(n, removed, watch); err != nil {
		t.Fatal(err)
	}
	memoryload.Remove(t, dir)
	memoryload.Start(t, other).Command("burn")
	await(t, notices, "the stall", func(s notify.NoticeSource) bool { return s.Watch == notify.Watch(watch) })
	if err := update(n, removed, watch); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after the removal of the cgroup: got %v, want %v", err, fs.ErrNotExist)
	}
}

func TestTriggerWhereThereIsNone(t *testing.T) {
	n, _ := listen(t, notify.Options{})
	err := update(n, notify.StallTrigger{Path: "/proc/pressure/luck", Stall: time.Second, Window: 2 * time.Second})
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want %v", err, fs.ErrNotExist)
	}
}
