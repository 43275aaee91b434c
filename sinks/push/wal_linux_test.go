package push

import (
	"errors"
	"syscall"
	"testing"
)

// On a full disk requests wait in memory and are counted. They are written when there is room. No
// file is a part of a request.
func TestFullDisk(t *testing.T) {
	folder := t.TempDir()
	if err := syscall.Mount("tmpfs", folder, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("mount a small disk (as root): %v", err)
	}
	defer func() {
		if err := syscall.Unmount(folder, 0); err != nil {
			t.Error(err)
		}
	}()
	s, kill := killed(t, Options{WAL: folder})
	defer kill()
	var full error
	written := 0
	for full == nil {
		written++
		put(s, written, written)
		full = s.wal.sync(s.queue)
	}
	put(s, written+1, written+10) // these wait in memory, too
	if !errors.Is(full, syscall.ENOSPC) || written < 10 {
		t.Fatalf("after %d requests: %v", written, full)
	}
	if got := s.queue.unlogged(); got != 3*11 {
		t.Errorf("%d items are not in the log, want 33", got)
	}
	if waiting, damaged, err := (&wal{folder: folder, suffix: s.wal.suffix, limit: s.wal.limit}).read(); err != nil || damaged != 0 || len(waiting) != written-1 {
		t.Errorf("%d requests can be read, %d not, %v; want %d", len(waiting), damaged, err, written-1)
	}
	// The receiver gets four of them: there is room for four others.
	for range 4 {
		if _, ok := s.queue.first(); !ok {
			t.Fatal("nothing waits")
		}
		s.queue.done()
	}
	if err := s.wal.sync(s.queue); !errors.Is(err, syscall.ENOSPC) {
		t.Error(err)
	}
	if got := s.queue.unlogged(); got != 3*7 {
		t.Errorf("%d items are not in the log, want 21", got)
	}
	if err := syscall.Mount("tmpfs", folder, "tmpfs", syscall.MS_REMOUNT, "size=1m"); err != nil {
		t.Fatal(err)
	}
	if err := s.wal.sync(s.queue); err != nil || s.queue.unlogged() != 0 {
		t.Errorf("with room: %v, %d items are not in the log", err, s.queue.unlogged())
	}
}
