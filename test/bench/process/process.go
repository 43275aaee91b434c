//go:build linux

// Package process runs the programs that the benchmarks measure.
package process

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A Process is one that this process started. It ends when this process ends,
// even after a crash.
type Process struct {
	Name    string
	PID     int
	Began   time.Time
	log     string
	process *os.Process
	ended   chan struct{} // closed after the process has ended
	err     error         // set before ended is closed: how the process ended
	latest  struct {
		sync.Mutex
		line []byte // the last line that it wrote
	}
}

// Start starts a program with a log in dir for its standard error. The program
// gets the environment variables env and none of this process, so no proxies,
// debugging switches or GC settings.
func Start(dir, name string, env []string, path string, args ...string) (*Process, error) {
	p := &Process{Name: name, log: filepath.Join(dir, name+".log"), ended: make(chan struct{})}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	defer log.Close()
	if path, err = filepath.Abs(path); err != nil { // the process has another working directory
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	cmd := exec.Command(path, args...)
	cmd.Dir, cmd.Stderr = dir, log
	cmd.Env = append([]string{"HOME=" + dir, "PATH=/usr/sbin:/usr/bin:/sbin:/bin"}, env...)
	// The child has its own process group: Ctrl-C reaches only this process, which
	// then ends the child.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p.Began = time.Now()
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p.PID, p.process = cmd.Process.Pid, cmd.Process
	go func() {
		defer close(p.ended)
		p.read(out)
		p.err = cmd.Wait()
	}()
	return p, nil
}

func (p *Process) read(out io.Reader) {
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		line := append([]byte(nil), lines.Bytes()...)
		p.latest.Lock()
		p.latest.line = line
		p.latest.Unlock()
	}
}

// Said decodes the last line of the process's standard output into v.
func (p *Process) Said(v any) error {
	p.latest.Lock()
	defer p.latest.Unlock()
	if len(p.latest.line) == 0 {
		return fmt.Errorf("%s has said nothing", p.Name)
	}
	if err := json.Unmarshal(p.latest.line, v); err != nil {
		return fmt.Errorf("read what %s says: %w", p.Name, err)
	}
	return nil
}

// Alive returns an error that says how the process ended, or nil if it runs.
func (p *Process) Alive() error {
	select {
	case <-p.ended:
		return fmt.Errorf("%s ended: %w\n%s", p.Name, errors.Join(p.err), p.tail())
	default:
		return nil
	}
}

// tail returns the end of the process's log, for an error.
func (p *Process) tail() string {
	b, err := os.ReadFile(p.log)
	if err != nil || len(b) == 0 {
		return "  its log is empty"
	}
	lines := strings.Split(strings.TrimRight(string(b), "\n"), "\n")
	return "  " + strings.Join(lines[max(0, len(lines)-12):], "\n  ")
}

// Stop ends the process, first with SIGTERM, and waits until it has ended.
func (p *Process) Stop() {
	_ = p.process.Signal(syscall.SIGTERM)
	patience := time.NewTimer(15 * time.Second)
	defer patience.Stop()
	select {
	case <-p.ended:
	case <-patience.C:
		_ = p.process.Kill()
		<-p.ended
	}
}

// Wait waits for d. It returns an error if the process ends before that.
func (p *Process) Wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-p.ended:
		return p.Alive()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Until calls done repeatedly until it returns true. It returns an error if the
// process ends or the patience is over.
func (p *Process) Until(ctx context.Context, what string, every, patience time.Duration, done func() (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("%s: not within %v; see %s", what, patience, p.log))
	defer cancel()
	for {
		ok, err := done()
		if ok || err != nil {
			return err
		}
		if err := p.Wait(ctx, every); err != nil {
			return fmt.Errorf("wait for %s: %w", what, err)
		}
	}
}

// FreePort returns a port of 127.0.0.1 on which nothing listens.
func FreePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
