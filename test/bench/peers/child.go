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

// A child is a process that this one started. It ends with it, however that ends.
type child struct {
	name    string
	pid     int
	began   time.Time
	log     string
	process *os.Process
	ended   chan struct{} // closed when it has been waited for
	err     error         // then: how it ended
	latest  struct {
		sync.Mutex
		line []byte // that it last wrote
	}
}

// start starts a program whose complaints go to a log in dir. Nothing of the
// environment is handed on: neither proxies nor debugging switches nor GC settings.
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
	// In a group of its own: Ctrl-C comes to us, and we end it.
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

// said reads the line that the process last wrote into v.
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

// alive returns an error that says how the process ended, if it has.
func (c *child) alive() error {
	select {
	case <-c.ended:
		return fmt.Errorf("%s ended: %w\n%s", c.name, errors.Join(c.err), c.tail())
	default:
		return nil
	}
}

// tail returns the end of its log, to be put into an error.
func (c *child) tail() string {
	b, err := os.ReadFile(c.log)
	if err != nil || len(b) == 0 {
		return "  its log is empty"
	}
	lines := strings.Split(strings.TrimRight(string(b), "\n"), "\n")
	return "  " + strings.Join(lines[max(0, len(lines)-12):], "\n  ")
}

// stop ends the process, asking first, and waits until it is gone.
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

// wait lets time pass while the process lives.
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

// until asks again and again until done, or until the process or the patience ends.
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
