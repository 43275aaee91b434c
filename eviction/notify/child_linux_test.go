//go:build linux && e2e

package notify_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const (
	mebi    = 1 << 20
	page    = 4096
	memory1 = "/sys/fs/cgroup/memory"
)

// monotonic is a clock that two processes share.
func monotonic() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err)
	}
	return time.Duration(ts.Nano())
}

// child does what it is told, a line each, and answers with a line:
//
//	cross FILE FIGURE  use memory until FILE says FIGURE, and 4 MiB more; answers when
//	grow BYTES         use so much memory
//	free               give all memory back
//	cache FILE BYTES   fill the page cache with a new file
//	burn               have two threads contend for one processor until the end
func child() {
	must := func(err error) {
		if err != nil {
			fmt.Println("failed:", err)
			os.Exit(1)
		}
	}
	region, err := unix.Mmap(-1, 0, 64*mebi, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	must(err)
	must(unix.Madvise(region, unix.MADV_NOHUGEPAGE))
	top := 0
	touch := func(pages int) {
		for range pages {
			region[top] = 1
			top += page
		}
	}
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		words := strings.Fields(in.Text())
		number := func(i int) int {
			n, err := strconv.Atoi(words[i])
			must(err)
			return n
		}
		switch words[0] {
		case "cross":
			f, err := os.Open(words[1])
			must(err)
			figure, buf := number(2), make([]byte, 32)
			for {
				before := monotonic() // so the crossing was after this
				touch(8)
				n, err := f.ReadAt(buf, 0)
				if err != io.EOF {
					must(err)
				}
				usage, err := strconv.Atoi(string(bytes.TrimSpace(buf[:n])))
				must(err)
				if usage >= figure {
					touch(4 * mebi / page) // the kernel compares every 128 pages
					fmt.Println(int64(before))
					break
				}
			}
			must(f.Close())
		case "grow":
			touch(number(1) / page)
			fmt.Println("grown")
		case "free":
			must(unix.Madvise(region, unix.MADV_DONTNEED))
			top = 0
			fmt.Println("free")
		case "cache":
			f, err := os.Create(words[1])
			must(err)
			_, err = io.CopyN(f, zeros{}, int64(number(2)))
			must(err)
			must(f.Sync())
			must(f.Close())
			fmt.Println("cached")
		case "burn":
			for range 2 {
				go func() {
					runtime.LockOSThread()
					var one unix.CPUSet
					must(unix.SchedGetaffinity(0, &one))
					for cpu := range 1024 {
						if one.IsSet(cpu) {
							one.Zero()
							one.Set(cpu)
							break
						}
					}
					must(unix.SchedSetaffinity(0, &one))
					for {
					}
				}()
			}
			fmt.Println("burning")
		}
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { return len(b), nil }

// worker is a child, in cgroups of its own.
type worker struct {
	t   testing.TB
	pid int
	in  io.Writer
	out *bufio.Scanner
}

// tell gives an order and returns the answer.
func (w worker) tell(format string, args ...any) string {
	w.t.Helper()
	if _, err := fmt.Fprintf(w.in, format+"\n", args...); err != nil {
		w.t.Fatal(err)
	}
	if !w.out.Scan() || strings.HasPrefix(w.out.Text(), "failed") {
		w.t.Fatalf("%s: %q, %v", fmt.Sprintf(format, args...), w.out.Text(), w.out.Err())
	}
	return w.out.Text()
}

// work starts a child in cgroups.
func work(t testing.TB, cgroups ...string) worker {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"=1", "GOMAXPROCS=2")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for _, dir := range cgroups {
		join(t, dir, cmd.Process.Pid)
	}
	return worker{t, cmd.Process.Pid, in, bufio.NewScanner(out)}
}

func join(t testing.TB, dir string, pid int) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o644); err != nil {
		t.Fatal(err)
	}
}

// memoryCgroup makes a memory cgroup of version 1 below ours.
func memoryCgroup(t testing.TB) string {
	t.Helper()
	b, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Skip(err)
	}
	for line := range strings.Lines(string(b)) {
		if _, path, ok := strings.Cut(strings.TrimSpace(line), ":memory:"); ok {
			dir := cgroup(t, filepath.Join(memory1, path))
			if _, err := os.Stat(filepath.Join(dir, "cgroup.event_control")); err != nil {
				t.Skipf("the memory cgroups have no event_control: %v", err)
			}
			return dir
		}
	}
	t.Skip("the memory controller is not of cgroup version 1 here")
	return ""
}

// unifiedCgroup makes a cgroup of version 2.
func unifiedCgroup(t testing.TB) string {
	t.Helper()
	for _, mount := range []string{"/sys/fs/cgroup/unified", "/sys/fs/cgroup"} {
		var fs unix.Statfs_t
		if unix.Statfs(mount, &fs) == nil && fs.Type == unix.CGROUP2_SUPER_MAGIC {
			return cgroup(t, mount)
		}
	}
	t.Skip("no cgroup version 2 is mounted")
	return ""
}

func cgroup(t testing.TB, parent string) string {
	t.Helper()
	dir, err := os.MkdirTemp(parent, "weir-notify-")
	if err != nil {
		t.Skipf("may not make a cgroup of our own: %v", err)
	}
	// The child was registered to end later, so it has ended by now, all but its memory.
	t.Cleanup(func() { remove(t, dir) })
	return dir
}

// remove removes a cgroup, which the kernel may hold for a moment after its last process.
func remove(t testing.TB, dir string) {
	t.Helper()
	for start := time.Now(); ; time.Sleep(time.Millisecond) {
		err := os.Remove(dir)
		if err == nil || os.IsNotExist(err) {
			return
		}
		if time.Since(start) > 5*time.Second {
			t.Errorf("remove cgroup: %v", err)
			return
		}
	}
}
