//go:build e2e

package faults

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/weir-metrics/weir/test/commands"
)

// TestKilled kills weir and starts it again.
func TestKilled(t *testing.T) {
	t.Parallel()
	s := raise(t, options{})
	api := s.serveAPI("127.0.0.1:0")
	beside := s.startPeer(api, "")
	s.watchPeer(beside, nobody, 0).complete(time.Minute)
	first := commands.Start(t, "weir", s.server(api)...)
	w := s.watch(first.Address(t), nobody, 0)
	w.complete(30 * time.Second)
	w.end()
	if beside != nil {
		beside.Kill(t)
	}
	first.Kill(t)
	began := time.Now()
	besideAgain := s.watchPeer(s.startPeer(api, ""), nobody, 0)
	again := s.watch(commands.Start(t, "weir", s.server(api)...).Address(t), nobody, 0)
	back := again.complete(30 * time.Second)
	again.end()
	after := again.between(began, time.Now())
	after.failed = 0 // it answers 503 before it has read a node
	if wrong := after.healthy.wrong; len(wrong) > 0 {
		t.Errorf("%d wrong numbers: %v", len(wrong), wrong)
	}
	// Each node is read at once and again after an interval.
	if took := back.Sub(began); took > 6*interval {
		t.Errorf("all numbers were there after %v, want at most %v", took, 6*interval)
	}
	record(t, "Killed", Result{
		Served: "Nothing until it runs again, then absent until two reads of a node",
		Lost:   "the fifteen minutes in memory, and, without the option `wal`, what waited for the receiver of remote write",
		Ended:  fmt.Sprintf("all numbers %s after the start", seconds(back.Sub(began))),
		Peer:   besideAgain.peerResult(began, began),
	})
}

// TestTerminated sends SIGTERM while thirty callers ask again and again.
func TestTerminated(t *testing.T) {
	s := raise(t, options{})
	url, arguments := secure(t)
	arguments = append(arguments, "--shutdown-delay-duration=5s") // the default
	api := s.serveAPI("127.0.0.1:0")
	weir := commands.Start(t, "weir", s.server(api, arguments...)...)
	w := s.watch(weir.Address(t), nobody, 0)
	w.complete(30 * time.Second)
	w.end()
	var l lists
	took, err := terminate(t, weir, url, &l)
	if err != nil {
		t.Errorf("weir ended with %v:\n%s", err, weir.Output())
	}
	l.check(t, allPods)
	if took > 10*time.Second {
		t.Errorf("weir ended after %v, want at most 10 s", took)
	}
	record(t, "Terminated", Result{
		Served: fmt.Sprintf("All of %d LISTs, until the callers stopped a second after the signal. None failed.", l.made),
		Lost:   "the fifteen minutes in memory",
		Ended:  fmt.Sprintf("exit status 0 after %s, 5 s of them by --shutdown-delay-duration", seconds(took)),
		Peer:   s.terminatePeer(api),
	})
}

// terminate sends SIGTERM to a program while thirty callers ask again and again. As a Service does, they
// send nothing more once /readyz fails, at the latest a second after the signal. It returns how long the
// program ran after the signal, and how it ended.
func terminate(t *testing.T, program *commands.Process, url string, l *lists) (time.Duration, error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var callers sync.WaitGroup
	for i := range 30 {
		callers.Go(func() { l.ask(ctx, url, fmt.Sprintf("caller-%d", i), i%2 == 0, 50*time.Millisecond) })
	}
	time.Sleep(3 * time.Second)
	program.Signal(t, syscall.SIGTERM)
	began := time.Now()
	time.AfterFunc(time.Second, cancel)
	callers.Wait()
	err := program.Wait()
	return time.Since(began), err
}

// terminatePeer does the same to metrics-server.
func (s *stage) terminatePeer(api *endpoint) string {
	p := s.startPeer(api, "")
	if p == nil {
		return ""
	}
	w := s.watchPeer(p, nobody, 0)
	w.complete(time.Minute)
	w.end()
	var l lists
	took, err := terminate(s.t, p.Process, p.url, &l)
	if err != nil {
		return fmt.Sprintf("%s; it ended with %v.", l.result(), err)
	}
	return fmt.Sprintf("%s; exit status 0 after %s.", l.result(), seconds(took))
}

// TestFullDisk records to a disk that becomes full, and later has room again.
func TestFullDisk(t *testing.T) {
	nightly(t) // weir tries to write again after a minute
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can mount a disk")
	}
	s := raise(t, options{})
	disk := t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=256k"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(disk, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	file := filepath.Join(disk, "run.weirrec")
	weir := commands.Start(t, "weir", s.server(s.serveAPI("127.0.0.1:0"), "--sink=recording:"+file+"?flush=1s")...)
	w := s.watch(weir.Address(t), nobody, 0)
	w.complete(30 * time.Second)
	began := time.Now()
	commands.Eventually(t, 3*time.Minute, func() error {
		if !strings.Contains(weir.Output(), "no space left on device") {
			return fmt.Errorf("the disk is not full yet")
		}
		return nil
	})
	full := time.Now()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", syscall.MS_REMOUNT, "size=64m"); err != nil {
		t.Fatal(err)
	}
	size := func() int64 {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	stopped := size()
	var again time.Time
	commands.Eventually(t, 2*time.Minute, func() error {
		if size() <= stopped+10_000 {
			return fmt.Errorf("nothing is written yet")
		}
		again = time.Now()
		return nil
	})
	time.Sleep(2 * interval)
	w.end()
	all := w.between(began, time.Now())
	all.check(t, allContainers)
	copied := filepath.Join(t.TempDir(), "run.weirrec")
	content, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(copied, content, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	info, err := exec.CommandContext(t.Context(), commands.Path(t, "weir"), "recording", "info", copied).CombinedOutput()
	if err != nil || !strings.Contains(string(info), "1 gap without records") {
		t.Errorf("weir recording info: %v; want one gap in:\n%s", err, info)
	}
	record(t, "FullDisk", Result{
		Served: fmt.Sprintf("Right, at most %s old.", seconds(all.healthy.oldest)),
		Lost:   "in the recording, the minute of the gap, which `weir recording info` names",
		Ended:  fmt.Sprintf("weir writes again %s after the disk was full", seconds(again.Sub(full))),
	})
}

// TestMemoryLimit kills weir by the limit of its memory cgroup, and starts it again under one that is
// large enough.
func TestMemoryLimit(t *testing.T) {
	t.Parallel()
	const root = "/sys/fs/cgroup/memory"
	if _, err := os.Stat(root + "/memory.limit_in_bytes"); err != nil || os.Geteuid() != 0 {
		t.Skip("it needs root and memory cgroups of version 1")
	}
	group := func() string {
		folder, err := os.MkdirTemp(root, "weir-faults-")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			commands.Eventually(t, 10*time.Second, func() error { return os.Remove(folder) })
		})
		return folder
	}
	limit := func(folder string, mebibytes int) {
		if err := os.WriteFile(filepath.Join(folder, "memory.limit_in_bytes"), []byte(strconv.Itoa(mebibytes<<20)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	peak := func(folder string) int64 {
		text, err := os.ReadFile(filepath.Join(folder, "memory.max_usage_in_bytes"))
		if err != nil {
			t.Fatal(err)
		}
		most, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return most
	}
	folder := group()
	s := raise(t, options{nodes: 200, pods: 30, containers: 2})
	api := s.serveAPI("127.0.0.1:0")
	const little, enough = 48, 128
	limit(folder, little)
	first := commands.StartInCgroup(t, folder, "weir", s.server(api)...)
	began := time.Now()
	ended := make(chan error, 1)
	go func() { ended <- first.Wait() }()
	select {
	case err := <-ended:
		if err == nil || !strings.Contains(err.Error(), "killed") {
			t.Fatalf("with %d MiB weir ended with %v, want it to be killed:\n%s", little, err, first.Output())
		}
	case <-time.After(2 * time.Minute):
		first.Kill(t)
		t.Fatalf("with %d MiB weir was not killed in two minutes", little)
	}
	died := time.Since(began)
	limit(folder, enough)
	began = time.Now()
	w := s.watch(commands.StartInCgroup(t, folder, "weir", s.server(api)...).Address(t), nobody, 0)
	back := w.complete(time.Minute)
	time.Sleep(4 * interval)
	w.end()
	after := w.between(back, time.Now())
	after.check(t, 200*30*2)
	beside := func() string {
		if !*long {
			return ""
		}
		folder := group()
		limit(folder, enough)
		began := time.Now()
		p := s.startPeer(api, folder)
		w := s.watchPeer(p, nobody, 0)
		for w.firstComplete(began).IsZero() && time.Since(began) < 2*time.Minute {
			time.Sleep(pause)
			if control, err := os.ReadFile(filepath.Join(folder, "memory.oom_control")); err == nil && !strings.Contains(string(control), "oom_kill 0") {
				w.end()
				_ = p.Wait() // it was killed
				return fmt.Sprintf("With %d MiB: the kernel killed it after %s.", enough, seconds(time.Since(began)))
			}
		}
		full := time.Now()
		time.Sleep(2 * peerInterval)
		return fmt.Sprintf("With %d MiB: %s With at most %d MiB of the cgroup in use.", enough, w.peerResult(full, began), peak(folder)>>20)
	}
	record(t, "MemoryLimit", Result{
		Served: fmt.Sprintf("Nothing: with %d MiB for 200 nodes and 12,000 containers the kernel killed weir after %s. With %d MiB: right, at most %s old, with at most %d MiB of the cgroup in use.",
			little, seconds(died), enough, seconds(after.healthy.oldest), peak(folder)>>20),
		Lost:  "the fifteen minutes in memory",
		Ended: fmt.Sprintf("all numbers %s after the start with enough memory", seconds(back.Sub(began))),
		Peer:  beside(),
	})
}
