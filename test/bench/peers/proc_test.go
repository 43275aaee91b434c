//go:build linux

package main

import (
	"os"
	"strings"
	"testing"
	"time"
)

func TestParseCPUTime(t *testing.T) {
	got, err := parseCPUTime([]byte("12 (a) b (c)) S 1 2 3 4 5 6 7 8 9 10 1234 66 13 14 20 0 9 0 4242 20 21\n"))
	if want := 13 * time.Second; got != want || err != nil {
		t.Errorf("got %v, %v, want %v: 1234 and 66 ticks of 10 ms", got, err, want)
	}
	for _, bad := range []string{"", "12 sh S 1", "12 (sh) S 1 2 3 4 5 6 7 8 9 10 11", "12 (sh) S 1 2 3 4 5 6 7 8 9 10 x 12", "12 (sh) S 1 2 3 4 5 6 7 8 9 10 11 -1"} {
		if got, err := parseCPUTime([]byte(bad)); err == nil {
			t.Errorf("%q: got %v, want an error", bad, got)
		}
	}
}

func TestParseMemory(t *testing.T) {
	got, err := parseMemory([]byte("Name:\tVmRSS: 1 kB\nVmPeak:\t 999 kB\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\nThreads:\t7\n"))
	if want := (resident{now: 1 << 20, most: 2 << 20}); got != want || err != nil {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	for _, bad := range []string{"", "\nVmRSS:\t1 kB\n", "\nVmHWM:\t1 kB\nVmRSS:\t1 MB\n", "\nVmHWM:\tx kB\nVmRSS:\t1 kB\n", "\nVmHWM:\nVmRSS:\t1 kB\n"} {
		if got, err := parseMemory([]byte(bad)); err == nil {
			t.Errorf("%q: got %+v, want an error", bad, got)
		}
	}
}

// TestOwnProcess reads the kernel's real files.
func TestOwnProcess(t *testing.T) {
	m, err := memory(os.Getpid())
	if err != nil || m.now < 1<<20 || m.most < m.now {
		t.Errorf("memory of this process: got %+v, %v", m, err)
	}
	if _, err := cpuTime(os.Getpid()); err != nil {
		t.Error(err)
	}
	if _, err := cpuTime(-1); err == nil || !strings.Contains(err.Error(), "read CPU time") {
		t.Errorf("CPU time of no process: got %v, want an error that says what was done", err)
	}
}

func FuzzParseCPUTime(f *testing.F) {
	f.Add([]byte("12 (a) b (c)) S 1 2 3 4 5 6 7 8 9 10 1234 66 13"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if d, err := parseCPUTime(b); d < 0 || err != nil && d != 0 {
			t.Errorf("%q: got %v, %v", b, d, err)
		}
	})
}
