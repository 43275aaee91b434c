package main

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is a program that was started, with its output.
type process struct {
	cmd   *exec.Cmd
	said  bytes.Buffer
	ended chan error
}

// start runs a program until stop is called or ctx ends. env is added to the
// environment.
func start(ctx context.Context, env []string, file string, args ...string) (*process, error) {
	p := &process{cmd: exec.CommandContext(ctx, file, args...), ended: make(chan error, 1)}
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stdout, p.cmd.Stderr = &p.said, &p.said
	p.cmd.Cancel = func() error { return p.cmd.Process.Signal(syscall.SIGTERM) }
	p.cmd.WaitDelay = 15 * time.Second
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", file, err)
	}
	go func() { p.ended <- p.cmd.Wait() }()
	return p, nil
}

// stop ends the program and waits for it.
func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // the program may have ended already
	<-p.ended
}

// died returns an error if the program has ended.
func (p *process) died() error {
	select {
	case err := <-p.ended:
		p.ended <- err
		text := p.said.String()
		return fmt.Errorf("%s has ended: %v: %s", p.cmd.Path, err, text[max(0, len(text)-2000):])
	default:
		return nil
	}
}

// ticksPerSecond is the unit of /proc/PID/stat: USER_HZ, which is 100 on every
// Linux that Go supports.
const ticksPerSecond = 100

// cpu returns the CPU time that the process has used.
func (p *process) cpu() (time.Duration, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0, fmt.Errorf("read CPU time: %w", err)
	}
	// The second field is the name in parentheses, which may contain any character.
	fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	var sum int64
	for _, i := range []int{11, 12} { // utime and stime, counted from the third field
		n, err := strconv.ParseInt(fields[i], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read CPU time: %w", err)
		}
		sum += n
	}
	return time.Duration(sum) * time.Second / ticksPerSecond, nil
}

// memory returns the resident bytes, now and at the maximum.
func (p *process) memory() (now, peak int64, err error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0, 0, fmt.Errorf("read memory: %w", err)
	}
	for text := range strings.SplitSeq(string(b), "\n") {
		name, value, _ := strings.Cut(text, ":")
		kib, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		switch name {
		case "VmRSS":
			now = kib << 10
		case "VmHWM":
			peak = kib << 10
		}
	}
	return now, peak, nil
}

// files returns how many files the process has open.
func (p *process) files() (int, error) {
	all, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.cmd.Process.Pid))
	if err != nil {
		return 0, fmt.Errorf("count open files: %w", err)
	}
	return len(all), nil
}

// connections returns how many connections fit into the open-file limit of a
// process, beside a few other files.
func connections() int {
	const others = 200
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return math.MaxInt
	}
	return int(min(limit.Max, 1<<30)) - others
}

// freePort returns a port of 127.0.0.1 on which nothing listens.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
