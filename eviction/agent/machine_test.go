package agent

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weir-metrics/weir/eviction/execute/cri"
	"github.com/weir-metrics/weir/metric"
)

// sleeper starts a process that sleeps until the end of the test, or until it is killed.
func sleeper(t *testing.T) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd
}

// killedBy returns the signal that ended a process.
func killedBy(t *testing.T, cmd *exec.Cmd) syscall.Signal {
	t.Helper()
	var ended *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &ended) {
		t.Fatalf("process %d: %v, want it killed", cmd.Process.Pid, err)
	}
	return ended.Sys().(syscall.WaitStatus).Signal()
}

// TestKill kills real processes. One is started while others are killed. Another one is in the pod's
// cgroup only when it is opened: its ID could belong to another pod's process by then, so it is spared.
func TestKill(t *testing.T) {
	first, later, gone := sleeper(t), sleeper(t), sleeper(t)
	lists := [][]int{{first.Process.Pid, gone.Process.Pid}, {first.Process.Pid, later.Process.Pid}, {later.Process.Pid}, nil}
	n := 0
	m := &Machine{Processes: func(uid metric.PodUID) ([]int, error) {
		if uid != "uid-app" {
			t.Errorf("asked for the processes of %q, want uid-app", uid)
		}
		n++
		return lists[min(n, len(lists))-1], nil
	}}
	if killed, err := m.kill("uid-app"); !killed || err != nil {
		t.Errorf("killed %v, %v; want true, and no error", killed, err)
	}
	for _, cmd := range []*exec.Cmd{first, later} {
		if got := killedBy(t, cmd); got != syscall.SIGKILL {
			t.Errorf("process %d ended by %v, want %v", cmd.Process.Pid, got, syscall.SIGKILL)
		}
	}
	if err := gone.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the process that was no longer in the pod: %v, want that it runs", err)
	}
	if err := gone.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = gone.Wait()
}

// TestKillByTheRuntime lets the processes be unknown: then the runtime is asked, if there is one.
func TestKillByTheRuntime(t *testing.T) {
	hidden := errors.New("they are hidden")
	e := &evictor{machine: &Machine{Processes: func(metric.PodUID) ([]int, error) { return []int{os.Getpid()}, hidden }}}
	if killed, err := e.kill(t.Context(), "uid-app"); killed || !errors.Is(err, hidden) {
		t.Errorf("without a runtime: killed %v, %v; want false, %v", killed, err, hidden)
	}
	var err error
	if e.reclaimer, err = cri.New(cri.Options{Socket: filepath.Join(t.TempDir(), "none.sock"), RequestTimeout: time.Second}); err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if _, err := e.kill(t.Context(), "uid-app"); err == nil || !strings.Contains(err.Error(), "list containers") {
		t.Errorf("with a runtime that does not answer: %v, want that it was asked", err)
	}
}
