//go:build linux

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A child is a process that this process started. It ends when this process
// ends, even after a crash.
type child struct {
	name    string
	pid     int
	began   time.Time
	log     string
	process *os.Process
	ended   chan struct{} // closed after the process has ended
	err     error         // set before ended is closed: how the process ended
	latest  struct {
		sync.Mutex
		line []byte // the last line that it wrote
	}
}

// start starts a program with a log in dir for its standard error. The program
// gets no environment variables of this process, so no proxies, debugging
// switches or GC settings.
func start(dir, name, path string, args ...string) (*child, error) {
	c := &child{name: name, log: filepath.Join(dir, name+".log"), ended: make(chan struct{})}
	log, err := os.OpenFile(c.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	defer log.Close()
	cmd := exec.Command(path, args...)
	cmd.Dir, cmd.Stderr = dir, log
	cmd.Env = []string{"HOME=" + dir, "PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
	// The child has its own process group: Ctrl-C reaches only this process, which
	// then ends the child.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	c.began = time.Now()
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	c.pid, c.process = cmd.Process.Pid, cmd.Process
	go func() {
		defer close(c.ended)
		c.read(out)
		c.err = cmd.Wait()
	}()
	return c, nil
}

func (c *child) read(out io.Reader) {
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		line := append([]byte(nil), lines.Bytes()...)
		c.latest.Lock()
		c.latest.line = line
		c.latest.Unlock()
	}
}

// said decodes the last line of the process's standard output into v.
func (c *child) said(v any) error {
	c.latest.Lock()
	defer c.latest.Unlock()
	if len(c.latest.line) == 0 {
		return fmt.Errorf("%s has said nothing", c.name)
	}
	if err := json.Unmarshal(c.latest.line, v); err != nil {
		return fmt.Errorf("read what %s says: %w", c.name, err)
	}
	return nil
}

// alive returns an error that says how the process ended, or nil if it runs.
func (c *child) alive() error {
	select {
	case <-c.ended:
		return fmt.Errorf("%s ended: %w\n%s", c.name, errors.Join(c.err), c.tail())
	default:
		return nil
	}
}

// tail returns the end of the process's log, for an error.
func (c *child) tail() string {
	b, err := os.ReadFile(c.log)
	if err != nil || len(b) == 0 {
		return "  its log is empty"
	}
	lines := strings.Split(strings.TrimRight(string(b), "\n"), "\n")
	return "  " + strings.Join(lines[max(0, len(lines)-12):], "\n  ")
}

// stop ends the process, first with SIGTERM, and waits until it has ended.
func (c *child) stop() {
	_ = c.process.Signal(syscall.SIGTERM)
	patience := time.NewTimer(15 * time.Second)
	defer patience.Stop()
	select {
	case <-c.ended:
	case <-patience.C:
		_ = c.process.Kill()
		<-c.ended
	}
}

// wait waits for d. It returns an error if the process ends before that.
func (c *child) wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-c.ended:
		return c.alive()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// until calls done repeatedly until it returns true. It returns an error if the
// process ends or the patience is over.
func (c *child) until(ctx context.Context, what string, every, patience time.Duration, done func() (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("%s: not within %v; see %s", what, patience, c.log))
	defer cancel()
	for {
		ok, err := done()
		if ok || err != nil {
			return err
		}
		if err := c.wait(ctx, every); err != nil {
			return fmt.Errorf("wait for %s: %w", what, err)
		}
	}
}
