package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestFill checks that the file system counts what was filled.
func TestFill(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "volume")
	var f filler
	want := func(bytes int64, files int) {
		t.Helper()
		var stat syscall.Stat_t
		if err := syscall.Stat(filepath.Join(dir, "bytes"), &stat); err != nil {
			t.Fatal(err)
		}
		if got := stat.Blocks * 512; got != bytes {
			t.Errorf("%d bytes are allocated, want %d", got, bytes)
		}
		entries, err := os.ReadDir(filepath.Join(dir, "files"))
		if err != nil || len(entries) != files {
			t.Errorf("there are %d files (%v), want %d", len(entries), err, files)
		}
	}
	for _, c := range []struct {
		bytes size
		files int
	}{{1 << 20, 0}, {2 << 20, 30}, {2 << 20, 50}, {1 << 20, 10}, {0, 0}} {
		if err := f.fill(dir, c.bytes, c.files); err != nil {
			t.Fatal(err)
		}
		want(int64(c.bytes), c.files)
	}
}
