//go:build linux && e2e

package notify_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/weir-metrics/weir/eviction/notify"
	"github.com/weir-metrics/weir/sources/host/cgroupfs"
	"github.com/weir-metrics/weir/test/memoryload"

	"golang.org/x/sys/unix"
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
	if s.Watch != notify.Watch(watch) || s.Stalled < watch.Stall {
		t.Errorf("woken by %v, want %v stalled for %s at least", s, watch, watch.Stall)
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
	if s.Stalled < watch.Stall {
		t.Errorf("woken by %v, want %s at least", s, watch.Stall)
	}
}

func TestTriggerOfACgroupRemoved(t *testing.T) {
	dir := pressured(t)
	n, notices := listen(t, notify.Options{MaxInterval: time.Hour, MinInterval: time.Microsecond})
	watch := notify.StallTrigger{Path: filepath.Join(dir, "io.pressure"), Stall: time.Second, Window: 2 * time.Second}
	if err := update(n, watch); err != nil {
		t.Fatal(err)
	}
	memoryload.Remove(t, dir)
	await(t, notices, "the removal", gone)
}

// TestTriggerWithoutTheCapability checks that the kernel accepts only multiples of 2 s as window
// without the capability, and returns EINVAL for others.
func TestTriggerWithoutTheCapability(t *testing.T) {
	var data [2]unix.CapUserData
	if err := unix.Capget(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &data[0]); err != nil {
		t.Fatal(err)
	}
	if data[0].Effective&(1<<unix.CAP_SYS_RESOURCE) != 0 {
		t.Skip("has CAP_SYS_RESOURCE")
	}
	dir := pressured(t)
	n, _ := listen(t, notify.Options{})
	watch := notify.StallTrigger{Path: filepath.Join(dir, "cpu.pressure"), Stall: 100 * time.Millisecond, Window: time.Second}
	err := update(n, watch)
	want := "watch some stalled for 100ms in 1s (" + watch.Path + "): a window of 1s needs the capability CAP_SYS_RESOURCE, which this process lacks: without it the window must be a multiple of 2s; the other watches and the timer remain"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	// The kernel also refuses the windows that weir refuses.
	f, err := os.OpenFile(watch.Path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString("some 100000 1000000"); !errors.Is(err, unix.EINVAL) {
		t.Errorf("the kernel says %v, want EINVAL", err)
	}
}

func TestTriggerWhereThereIsNone(t *testing.T) {
	n, _ := listen(t, notify.Options{})
	err := update(n, notify.StallTrigger{Path: "/proc/pressure/luck", Stall: time.Second, Window: 2 * time.Second})
	if !errors.Is(err, notify.ErrUnsupported) {
		t.Errorf("got %v, want ErrUnsupported", err)
	}
}
