// Package commands runs the commands that make build has built, for tests that
// use them as a user does.
package commands

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Path returns the path of a built command, for a test two folders below the
// root. The absolute path of another program is returned unchanged.
func Path(t *testing.T, name string) string {
	t.Helper()
	if filepath.IsAbs(name) {
		return name
	}
	path, err := filepath.Abs(filepath.Join("../../bin", name))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%v: run make build", err)
	}
	return path
}

// Process is a running command.
type Process struct {
	cmd   *exec.Cmd
	ended bool // Wait was called
	mu    sync.Mutex
	out   bytes.Buffer
}

// Write appends to the output of the command.
func (p *Process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.Write(b)
}

// Output returns what the command has written so far.
func (p *Process) Output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

// Start runs a built command until the end of the test. The command must then
// end when it gets a signal.
func Start(t *testing.T, name string, args ...string) *Process {
	t.Helper()
	return StartWith(t, nil, name, args...)
}

// StartWith is like Start, with additional environment variables, each as
// NAME=value.
func StartWith(t *testing.T, env []string, name string, args ...string) *Process {
	t.Helper()
	return start(t, env, name, Path(t, name), args...)
}

// StartInCgroup is like Start, in the cgroup of version 1 or 2 that has this folder.
func StartInCgroup(t *testing.T, folder, name string, args ...string) *Process {
	t.Helper()
	const join = `echo $$ >"$0/cgroup.procs" && exec "$@"`
	return start(t, nil, name, "/bin/sh", append([]string{"-c", join, folder, Path(t, name)}, args...)...)
}

// start runs the program at a path. name is what messages call it.
func start(t *testing.T, env []string, name, path string, args ...string) *Process {
	t.Helper()
	// The test's context ends before the clean-up, which sends SIGTERM first.
	p := &Process{cmd: exec.CommandContext(context.WithoutCancel(t.Context()), path, args...)}
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stdout, p.cmd.Stderr = p, p
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if p.ended {
			return
		}
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
		ended := make(chan error, 1)
		go func() { ended <- p.cmd.Wait() }()
		select {
		case err := <-ended:
			if err != nil && !t.Failed() {
				t.Errorf("%s ended with %v after SIGTERM:\n%s", name, err, p.Output())
			}
		case <-time.After(20 * time.Second):
			_ = p.cmd.Process.Kill()
			t.Errorf("%s did not end within 20 s of SIGTERM:\n%s", name, p.Output())
		}
		if t.Failed() {
			t.Logf("%s wrote:\n%s", name, tail(p.Output(), 60))
		}
	})
	return p
}

// Kill ends p with SIGKILL, as in a crash, and waits until it has ended.
func (p *Process) Kill(t *testing.T) {
	t.Helper()
	p.Signal(t, syscall.SIGKILL)
	_ = p.Wait() // it ends because of the signal
}

// Signal sends a signal to p.
func (p *Process) Signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// Wait waits until p has ended by itself or because of a signal of the test. The error is that of
// exec.Cmd.Wait.
func (p *Process) Wait() error {
	p.ended = true
	return p.cmd.Wait()
}

func tail(s string, n int) string {
	lines := strings.Split(s, "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// serving matches the line with weir's address.
var serving = regexp.MustCompile(`weir serves on (http://\S+)`)

// Address waits until p prints its address, and returns it.
func (p *Process) Address(t *testing.T) (url string) {
	t.Helper()
	Eventually(t, 30*time.Second, func() error {
		m := serving.FindStringSubmatch(p.Output())
		if m == nil {
			return fmt.Errorf("no address yet in:\n%s", p.Output())
		}
		url = m[1]
		return nil
	})
	return url
}

// Eventually waits until ok returns nil. If it does not within the time, the
// test fails with its last error.
func Eventually(t *testing.T, within time.Duration, ok func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ok()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("not within %v: %v", within, err)
		case <-tick.C:
		}
	}
}
