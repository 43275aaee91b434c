package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// asWorkload makes the test binary run as the workload, for tests that need a
// separate process.
const asWorkload = "RUN_AS_WORKLOAD"

func TestMain(m *testing.M) {
	if os.Getenv(asWorkload) != "" {
		main()
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// program returns the workload with args. It is not started yet.
func program(ctx context.Context, t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env = append(os.Environ(), asWorkload+"=1")
	return cmd
}

// TestBurnUsesTheGivenCores compares a process's usage with the kernel's count.
// The upper bound is the important one and holds on any machine. The lower
// bound allows for a machine that is too busy to give the process what it
// wants.
func TestBurnUsesTheGivenCores(t *testing.T) {
	empty := program(t.Context(), t, "exit")
	if out, err := empty.CombinedOutput(); err != nil {
		t.Fatalf("exit: %v\n%s", err, out)
	}
	start := empty.ProcessState.UserTime() + empty.ProcessState.SystemTime()

	cmd := program(t.Context(), t, "burn", "--millicores", "200", "--for", "3s")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("burn: %v\n%s", err, out)
	}
	got := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime() - start
	if want := 600 * time.Millisecond; got > want+100*time.Millisecond || got < want*6/10 {
		t.Errorf("3s at 200 millicores used %v, want %v", got, want)
	}
}

func TestTurns(t *testing.T) {
	b := newBurner(0)
	t0 := time.Unix(1000, 0)
	f := func(l level, now, used, length, goal time.Duration) {
		t.Helper()
		b.mu.level, b.mu.at, b.mu.cpu = l, t0, time.Second
		got := b.turn(t0.Add(now), time.Second+used)
		if got := got.end.Sub(t0) - now; got != length {
			t.Errorf("%dm: a turn of %v, want %v", l, got, length)
		}
		if got := got.goal - time.Second; got != goal {
			t.Errorf("%dm at %v with %v used: goal %v, want %v", l, now, used, got, goal)
		}
	}
	ms := time.Millisecond
	f(0, 0, 0, 10*ms, 0)
	f(500, 0, 0, 10*ms, 5*ms)
	f(500, 10*ms, 5*ms, 10*ms, 10*ms)
	f(500, 10*ms, 7*ms, 10*ms, 10*ms)        // used too much: the next turn burns only 3ms
	f(2500, 100*ms, 250*ms, 10*ms, 275*ms)   // several cores
	f(1, 0, 0, 200*ms, 200*time.Microsecond) // too little for turns of 10ms
	f(500, 900*ms, 0, 10*ms, 455*ms)         // got too little CPU, which is made up for ...
	f(500, 10*time.Second, 0, 10*ms, 505*ms) // ... up to one second of it
}

func TestLevelChangesAtOnce(t *testing.T) {
	b := newBurner(1000)
	before := b.turn(time.Now(), cpuTime())
	b.set(0)
	select {
	case <-before.changed:
	default:
		t.Error("workers were not told")
	}
	if got := b.turn(time.Now(), cpuTime()); got.goal > cpuTime() {
		t.Errorf("at level 0 the goal is %v more", got.goal-cpuTime())
	}
}

func TestThreads(t *testing.T) {
	f := func(l level, want int) {
		t.Helper()
		if got := threads(l); got != want {
			t.Errorf("threads(%d) = %d, want %d", l, got, want)
		}
	}
	f(0, 0)
	f(1, 1)
	f(1000, 1)
	f(1001, 2)
}

func TestExitAndCrash(t *testing.T) {
	f := func(want int, args ...string) {
		t.Helper()
		cmd := program(t.Context(), t, args...)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		err := cmd.Run()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		if got := cmd.ProcessState.ExitCode(); got != want {
			t.Errorf("%q: status %d, want %d\n%s", args, got, want, &stderr)
		}
	}
	f(0, "exit")
	f(7, "exit", "--after", "1ms", "--code", "7")
	f(-1, "exit", "--after", "1ms", "--signal", "11") // by the signal, without a status
	f(2, "crash", "--after", "1ms", "--bytes", "1Mi")
	f(0, "--help")
	f(0, "burn", "--help")
	f(1, "dance")
}

// TestSIGTERMEndsServe waits for the program's first line. An earlier signal
// would also end the program, but with another status.
func TestSIGTERMEndsServe(t *testing.T) {
	cmd := program(t.Context(), t, "serve", "--listen", "127.0.0.1:0", "--millicores", "10")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 256)
	n, _ := stdout.Read(line)
	if !strings.HasPrefix(string(line[:n]), "workload serves on http://127.0.0.1:") {
		t.Errorf("first line %q", line[:n])
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, stdout)
	if err := cmd.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v, want status 0", err)
	}
}

func TestCommandsEndWithTheirContext(t *testing.T) {
	for _, args := range [][]string{
		{"pause"},
		{"burn", "--millicores", "1500"},
		{"hold", "--bytes", "1Mi"},
		{"use", "--millicores", "1", "--bytes", "4Ki"},
		{"exit", "--after", "1h", "--code", "3"},
		{"crash", "--after", "1h"},
		{"fill", "--dir", filepath.Join(t.TempDir(), "a"), "--files", "1"},
		{"serve", "--listen", "127.0.0.1:0"},
		{"traffic", "--to", "http://127.0.0.1:1", "--bytes-per-second", "1"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		if err := run(ctx, args, io.Discard, io.Discard); err != nil {
			t.Errorf("%q: %v, want an end without error", args, err)
		}
		cancel()
	}
}

func TestIgnoredSIGTERM(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // SIGTERM has the same effect
	began := time.Now()
	if err := run(ctx, []string{"burn", "--deaf", "--millicores", "1", "--for", "50ms"}, io.Discard, io.Discard); err != nil {
		t.Fatal(err)
	}
	if got := time.Since(began); got < 50*time.Millisecond {
		t.Errorf("it ended after %v, want not before 50ms", got)
	}
}

func TestMistakes(t *testing.T) {
	f := func(want string, args ...string) {
		t.Helper()
		err := run(t.Context(), args, io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got error %v, want one with %q", args, err, want)
		}
	}
	f("no command")
	f(`no command "dance"`, "dance")
	f("give --millicores", "burn")
	f("give --bytes", "hold")
	f("give --bytes", "use", "--millicores", "1")
	f(`unexpected argument "100"`, "burn", "100")
	f("want thousandths of a core", "burn", "--millicores", "much")
	f("want thousandths of a core", "burn", "--millicores", "-1")
	f("want thousandths of a core", "burn", "--millicores", "1000000")
	f("which folder", "fill", "--bytes", "1")
	f("give --to", "traffic", "--bytes-per-second", "1")
	f("give --bytes-per-second", "traffic", "--to", "http://localhost")
	f("listen", "serve", "--listen", "127.0.0.1:99999")
}

func TestSizes(t *testing.T) {
	f := func(v string, want size) {
		t.Helper()
		var got size
		if err := got.Set(v); err != nil || got != want {
			t.Errorf("%q is %d (%v), want %d", v, got, err, want)
		}
	}
	f("0", 0)
	f("4096", 4096)
	f("2Ki", 2048)
	f("3Mi", 3<<20)
	f("1Gi", 1<<30)
	for _, v := range []string{"", "Mi", "-1", "1.5Gi", "1MB", "9999999999Gi"} {
		if got := new(size); got.Set(v) == nil {
			t.Errorf("%q is %d, want an error", v, *got)
		}
	}
}

func TestReapTakesWhatOthersLeft(t *testing.T) {
	pid, err := syscall.ForkExec(os.Args[0], []string{"workload", "exit"}, &syscall.ProcAttr{
		Env: append(os.Environ(), asWorkload+"=1"),
	})
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); syscall.Kill(pid, 0) == nil; reap() {
		if time.Now().After(deadline) {
			t.Fatalf("process %d is still there", pid)
		}
		time.Sleep(time.Millisecond) // a real process: there is no event to wait for
	}
}

func TestAllocatedMemoryIsResident(t *testing.T) {
	var m memory
	before := resident(t)
	if err := m.hold(32<<20, 0); err != nil {
		t.Fatal(err)
	}
	if got := resident(t) - before; got < 31<<20 {
		t.Errorf("resident memory grew by %d, want 32Mi", got)
	}
	if got := m.size(); got != 32<<20 {
		t.Errorf("holds %d, want 32Mi", got)
	}
	if err := m.hold(40<<20, 0); err != nil {
		t.Fatal(err)
	}
	if got := len(m.data); got != 2 || m.size() != 40<<20 {
		t.Errorf("grown to 40Mi it holds %d in %d pieces, want 40Mi in 2: what was held stays", m.size(), got)
	}
	if err := m.hold(16<<20, 0); err != nil || m.size() != 16<<20 {
		t.Errorf("shrunk it holds %d (%v), want 16Mi", m.size(), err)
	}
	if err := m.hold(1<<62, 0); err == nil || !strings.Contains(err.Error(), "hold 4611686018427387904 bytes") {
		t.Errorf("holding 2^62 bytes: %v, want an error", err)
	}
	m.release()
	m.release()
	if got := resident(t) - before; got > 8<<20 {
		t.Errorf("after release resident memory is %d higher", got)
	}
}
