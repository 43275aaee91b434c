//go:build unix

package kubelet

import (
	"syscall"
	"testing"
)

// TestConnections checks that a quarter of the files is left for other uses than idle connections.
func TestConnections(t *testing.T) {
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	fewer := before
	fewer.Cur = min(before.Max, 512)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &fewer); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
			t.Error(err)
		}
	})
	if got, want := MaxConnections(), int(fewer.Cur)*3/4; got != want {
		t.Errorf("with %d files: got %d connections, want %d", fewer.Cur, got, want)
	}
}
