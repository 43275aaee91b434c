//go:build linux

package process

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestUsage compares the usage of this process with the kernel's other count.
func TestUsage(t *testing.T) {
	for end := time.Now().Add(100 * time.Millisecond); time.Now().Before(end); {
	}
	own := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			t.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	const step = 20 * time.Millisecond // of two counters in steps of 10 ms
	before := own()
	got, err := usage(os.Getpid())
	after := own()
	if err != nil || got.CPU < before-step || got.CPU > after+step {
		t.Errorf("CPU time: got %v, %v, want %v to %v", got.CPU, err, before, after)
	}
	if got.Resident < 1<<20 || got.Peak < got.Resident || got.Files < 3 {
		t.Errorf("got %+v, want at least 1 MiB, no smaller peak, and 3 files", got)
	}
	if _, err := usage(-1); err == nil || !strings.Contains(err.Error(), "process -1") {
		t.Errorf("no process: got %v, want an error with its ID", err)
	}
}
