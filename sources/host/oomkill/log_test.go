//go:build linux

package oomkill_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-metrics/weir/cluster/endlog"
	"github.com/weir-metrics/weir/sources/host/cgroupfs"
	"github.com/weir-metrics/weir/sources/host/oomkill"
)

// newLog returns a log, and what writes records to it; full reports that none fit. Like /dev/kmsg, the pipe
// returns a record a read.
func newLog(t testing.TB) (log *oomkill.Log, write func(record string) (full bool)) {
	t.Helper()
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_DIRECT|unix.O_NONBLOCK|unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	if _, err := unix.FcntlInt(uintptr(ends[1]), unix.F_SETPIPE_SZ, 1<<20); err != nil {
		t.Log(err) // it has room for fewer records
	}
	log, err := oomkill.NewLog(os.NewFile(uintptr(ends[0]), "log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Close(ends[1]); err != nil {
			t.Error(err)
		}
	})
	return log, func(record string) bool {
		_, err := unix.Write(ends[1], []byte(record))
		if err != nil && !errors.Is(err, unix.EAGAIN) {
			t.Fatal(err)
		}
		return err != nil
	}
}

// chosen is the first record of a kill. An empty limit is the node's memory.
func chosen(limit, cgroup, name string, pid int) string {
	constraint, of := "CONSTRAINT_NONE", ",global_oom"
	if limit != "" {
		constraint, of = "CONSTRAINT_MEMCG", ",oom_memcg=/"+limit
	}
	return fmt.Sprintf("6,11446,16314603895,-;oom-kill:constraint=%s,nodemask=(null),cpuset=/,mems_allowed=0,2%s,task_memcg=/%s,task=%s,pid=%d,uid=0\n", constraint, of, cgroup, name, pid)
}

// dead is the second one, of a process with 3 KiB.
func dead(name string, pid int) string {
	return fmt.Sprintf("3,11447,16314603932,-;Memory cgroup out of memory: Killed process %d (%s) total-vm:19076kB, anon-rss:1kB, file-rss:2kB, shmem-rss:0kB, UID:0 pgtables:76kB oom_score_adj:0\n", pid, name)
}

// TestProcessesAreNamed checks which process of the log is added to a kill, on version 2.
func TestProcessesAreNamed(t *testing.T) {
	container, sidecar := web+"/"+app, web+"/"+side
	for _, c := range []struct {
		name    string
		happen  func(*node)
		records []string
		want    []string
	}{
		{"a container that ended", func(n *node) { n.kill(container, container, 1); n.remove(container) }, []string{"4,1,1,-;java invoked oom-killer\n", chosen(container, container, "java", 4711), "6,2,2,c;x\n SUBSYSTEM=net\n", dead("java", 4711)},
			[]string{`container of 1111/a by the limit "container": 1 killed, 1 in all, java 4711 3072`}},
		{"a child", func(n *node) { n.kill(container, container, 1) }, []string{chosen(container, container, "java", 4711), dead("java", 4711)},
			[]string{`child of 1111/a by the limit "container": 1 killed, 1 in all, java 4711 3072`}},
		{"a cgroup in a container", func(n *node) { n.kill(container, container, 1) }, []string{chosen(container, container+"/inner", "java", 4711)},
			[]string{`child of 1111/a by the limit "container": 1 killed, 1 in all, java 4711 0`}},
		{"the largest of two", func(n *node) { n.kill(container, container, 2); n.remove(container) },
			[]string{chosen(container, container, "sh", 1), chosen(container, container, "java", 2), dead("java", 2)}, []string{`container of 1111/a by the limit "container": 2 killed, 2 in all, java 2 3072`}},
		{"the limits of the pod and of the container", func(n *node) { n.rise(web, "oom", 1); n.kill(container, container, 1); n.remove(container) },
			[]string{chosen(web, container, "java", 4711)}, []string{`pod of 1111/a by the limit "pod": 1 killed, 1 in all, java 4711 0`}},
		{"two containers", func(n *node) { n.kill(container, container, 1); n.kill(sidecar, sidecar, 1); n.remove(container) },
			[]string{chosen(sidecar, sidecar, "envoy", 2), chosen(container, container, "java", 1)},
			[]string{`container of 1111/a by the limit "container": 1 killed, 1 in all, java 1 0`, `child of 1111/b by the limit "container": 1 killed, 1 in all, envoy 2 0`}},
		{"two containers that ended", func(n *node) {
			n.kill(container, container, 1)
			n.kill(sidecar, sidecar, 1)
			n.remove(container)
			n.remove(sidecar)
		}, []string{chosen(sidecar, sidecar, "envoy", 2), chosen(container, container, "java", 1)},
			[]string{`container of 1111 by the limit "container": 2 killed, 2 in all`}},
		{"two containers that ended, of which the log has one process each", func(n *node) {
			n.kill(container, container, 3)
			n.remove(container)
			n.remove(sidecar)
		}, []string{chosen(sidecar, sidecar, "envoy", 2), chosen(container, container, "java", 1)}, []string{`container of 1111 by the limit "container": 3 killed, 3 in all`}},
		{"a limit that the counters do not show", func(n *node) { n.kill(container, "", 1); n.remove(container) }, []string{chosen(container, container, "java", 1)},
			[]string{`container of 1111/a by the limit "container": 1 killed, 1 in all, java 1 0`}},
		{"NUMA nodes", func(n *node) { n.kill(container, "", 1); n.remove(container) }, []string{strings.Replace(chosen("", container, "java", 1), "_NONE", "_CPUSET", 1)},
			[]string{`node of 1111/a by the limit "node": 1 killed, 1 in all, of its NUMA nodes, java 1 0`}},
		{"a container of crun", func(n *node) { n.kill(container, container, 1); n.remove(container) }, []string{chosen(container+"/container", container+"/container", "java", 4711)},
			[]string{`container of 1111/a by the limit "container": 1 killed, 1 in all, java 4711 0`}},
		{"the limit of a cgroup in a container that ended", func(n *node) { n.kill(container, container, 1); n.remove(container) }, []string{chosen(container+"/inner", container+"/inner", "java", 4711)},
			[]string{`container of 1111/a by the limit "container": 1 killed, 1 in all, of a cgroup in it, java 4711 0`}},
		{"another pod", func(n *node) { n.kill(container, container, 1); n.remove(container) }, []string{chosen(api, api+"/"+app, "java", 4711)}, []string{`container of 1111 by the limit "container": 1 killed, 1 in all`}},
		{"a process that writes to the log", func(n *node) { n.kill(container, container, 1); n.remove(container) }, []string{"1" + chosen(container, container, "java", 4711)},
			[]string{`container of 1111 by the limit "container": 1 killed, 1 in all`}},
		{"a log without a kill", func(*node) {}, []string{chosen(container, container, "java", 4711), dead("java", 4711)}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			log, write := newLog(t)
			n := newNode(t, true, log)
			n.start(kubepods, burstable, web, container, sidecar, api, api+"/"+app)
			n.pass(15 * time.Second)
			c.happen(n)
			for _, record := range c.records {
				write(record)
			}
			if got := n.pass(2 * time.Second); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
			n.kill(api+"/"+app, api+"/"+app, 1)
			if got := n.pass(30 * time.Second); len(got) != 1 || c.name != "another pod" && strings.Contains(got[0], "java") {
				t.Errorf("a later kill: got %q, want one without a name", got)
			}
		})
	}
}

// TestVersion1WithLog checks that containers which ended are found, and the limits.
func TestVersion1WithLog(t *testing.T) {
	container := web + "/" + app
	for limit, want := range map[string]string{
		container: `container of 1111/a by the limit "container": 1 killed, 1 in all, java 4711 3072`,
		web:       `pod of 1111/a by the limit "pod": 1 killed, 1 in all, java 4711 3072`,
		burstable: `slice of 1111/a by the limit "slice"/kubepods/burstable: 1 killed, 1 in all, java 4711 3072`,
		"":        `node of 1111/a by the limit "node": 1 killed, 1 in all, java 4711 3072`,
	} {
		for _, goesOn := range []bool{false, true} {
			log, write := newLog(t)
			n := newNode(t, false, log)
			n.start(kubepods, burstable, web, container)
			n.pass(15 * time.Second)
			n.kill(container, "", 1)
			write(chosen(limit, container, "java", 4711))
			write(dead("java", 4711))
			if !goesOn {
				n.remove(container)
			} else if _, rest, ok := strings.Cut(want, " "); ok {
				want = "child " + rest
			}
			if got := n.pass(2500 * time.Millisecond); len(got) != 1 || got[0] != want {
				t.Errorf("limit of %q: got %q, want %q", limit, got, want)
			}
		}
	}
}

// TestOldRecords checks that a kill is not named by a record from long before it, and that many records
// displace the oldest.
func TestOldRecords(t *testing.T) {
	log, write := newLog(t)
	n := newNode(t, true, log)
	container := web + "/" + app
	n.start(kubepods, burstable, web, container, api, api+"/"+app)
	n.pass(time.Second)
	write(chosen(container, container, "old", 1))
	n.pass(4 * time.Second)
	n.kill(container, container, 1)
	if got, want := n.pass(2*time.Second), `child of 1111/a by the limit "container": 1 killed, 1 in all`; len(got) != 1 || got[0] != want {
		t.Errorf("a record from 4s before: got %q, want %q", got, want)
	}
	n.kill(container, container, 1)
	n.kill(api+"/"+app, api+"/"+app, 1)
	write(chosen(api, api+"/"+app, "displaced", 1))
	for i := range 256 {
		if write(chosen(container, container, "java", 1+i)); i == 128 { // the pipe has no room for all
			n.pass(0)
		}
	}
	got := n.pass(2 * time.Second)
	slices.Sort(got)
	if want := []string{`child of 1111/a by the limit "container": 1 killed, 2 in all, java 1 0`, `child of 2222/a by the limit "container": 1 killed, 1 in all`}; !slices.Equal(got, want) {
		t.Errorf("257 records: got %q, want %q", got, want)
	}
}

// TestVersion1WithLogAndLateScan has the kernel kill in a container right after a scan: it goes on, so it
// did not end.
func TestVersion1WithLogAndLateScan(t *testing.T) {
	log, write := newLog(t)
	n := newNode(t, false, log)
	container, sidecar := web+"/"+app, web+"/"+side
	n.start(kubepods, burstable, web, container, sidecar)
	n.pass(15 * time.Second)
	n.kill(sidecar, "", 1)
	n.pass(0)
	n.now = n.now.Add(oomkill.Interval)
	n.kill(container, "", 1)
	write(chosen(container, container, "java", 4711))
	want := []string{`child of 1111/b by the limit "": 1 killed, 1 in all`, `child of 1111/a by the limit "container": 1 killed, 1 in all, java 4711 0`}
	if got := n.pass(5 * time.Second); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestLogFlood writes a million records, of which each hundredth is of a kill that no counter has. A kill
// after them is named.
func TestLogFlood(t *testing.T) {
	log, write := newLog(t)
	n := newNode(t, true, log)
	container := web + "/" + app
	n.start(kubepods, burstable, web, container)
	flood := []string{chosen(container, container, "sh", 1)}
	for range 99 {
		flood = append(flood, "4,1,1,-;"+strings.Repeat("x", 100)+"\n")
	}
	for i := 0; i < 1_000_000; {
		for !write(flood[i%len(flood)]) {
			i++
		}
		if got := n.pass(0); got != nil {
			t.Fatalf("record %d: got %q, want nothing", i, got)
		}
	}
	n.pass(15 * time.Second)
	n.kill(container, container, 1)
	write(chosen(container, container, "java", 4711))
	if got, want := n.pass(2*time.Second), `child of 1111/a by the limit "container": 1 killed, 1 in all, java 4711 0`; len(got) != 1 || got[0] != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestEndlessLog checks that reads of a log that has always more end: they may catch up what others left.
func TestEndlessLog(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	log, err := oomkill.OpenLog(file.Name())
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	read := func(want int) {
		t.Helper()
		records := 0
		if err := log.Read(func([]byte) { records++ }); err != nil || records != want {
			t.Errorf("read %d records, %v; want %d", records, err, want)
		}
	}
	for range 20 {
		read(0)
	}
	if err := file.Truncate(1 << 30); err != nil { // without an end, as far as these reads get
		t.Fatal(err)
	}
	read(8000)
	for range 10 {
		read(1000)
	}
}

// TestLogThatFails checks that a log which cannot be read is an error of each Look, and kills are found.
func TestLogThatFails(t *testing.T) {
	if _, err := oomkill.OpenLog(filepath.Join(t.TempDir(), "kmsg")); err == nil || !strings.Contains(err.Error(), "CAP_SYSLOG") {
		t.Errorf("no file: got %v, want what is needed", err)
	}
	directory, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	log, err := oomkill.NewLog(directory)
	if err != nil {
		t.Fatal(err)
	}
	n := newNode(t, true, log)
	n.start(kubepods, burstable, web, web+"/"+app)
	for range 8 {
		if _, err := n.watcher.Look(n.now); !errors.Is(err, syscall.EISDIR) {
			t.Errorf("got %v, want that a directory cannot be read", err)
		}
		n.now = n.now.Add(oomkill.Interval)
	}
	n.kill(web+"/"+app, web, 1)
	n.remove(web + "/" + app)
	var found []endlog.Kill
	for range 8 {
		more, _ := n.watcher.Look(n.now)
		found, n.now = append(found, more...), n.now.Add(oomkill.Interval)
	}
	if len(found) != 1 || found[0].Scope != endlog.InPod {
		t.Errorf("got %+v, want a kill at the pod's limit", found)
	}
}

// hogEnv is set in the process that TestKernelLog has killed: the file cgroup.procs of its cgroup.
const hogEnv = "WEIR_OOMKILL_TEST_HOG"

// TestKernelLog has the kernel of this machine kill a process, and reads its name from /dev/kmsg.
func TestKernelLog(t *testing.T) {
	if procs := os.Getenv(hogEnv); procs != "" {
		if err := os.WriteFile(procs, fmt.Append(nil, os.Getpid()), 0); err != nil {
			t.Fatal(err)
		}
		var all [][]byte
		for range 1 << 10 { // 1 GiB
			all = append(all, []byte(strings.Repeat("x", 1<<20)))
		}
		t.Fatalf("the kernel did not kill at %d MiB", len(all))
	}
	found, err := cgroupfs.Find("", "/proc")
	if err != nil || found.ControllerDir("memory") == "" || os.Geteuid() != 0 {
		t.Skipf("needs root, and a memory hierarchy of cgroup version 1, in which a cgroup can be made at once: %v", err)
	}
	log, err := oomkill.OpenLog("/dev/kmsg")
	if err != nil {
		t.Skipf("needs /dev/kmsg: %v", err)
	}
	top := filepath.Join(found.ControllerDir("memory"), fmt.Sprintf("weir-test-%d", os.Getpid()))
	dir := filepath.Join(top, web, app)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Skipf("cannot make a cgroup: %v", err)
	}
	t.Cleanup(func() {
		for ; dir != filepath.Dir(top); dir = filepath.Dir(dir) {
			if err := os.Remove(dir); err != nil {
				t.Error(err)
			}
		}
	})
	if err := os.WriteFile(filepath.Join(dir, "memory.limit_in_bytes"), []byte("64M"), 0); err != nil {
		t.Fatal(err)
	}
	w := oomkill.New(oomkill.Options{Dir: found.ControllerDir("memory"), Proc: "/proc", Log: log})
	defer w.Close()
	now := time.Now()
	look := func() []endlog.Kill {
		kills, err := w.Look(now)
		if err != nil {
			t.Log(err) // of other cgroups of this machine
		}
		now = now.Add(time.Second)
		return kills
	}
	look()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "a,pid=1) \n\x1b[1m")
	if err := os.Symlink(self, program); err != nil {
		t.Fatal(err)
	}
	hog := exec.CommandContext(t.Context(), program, "-test.run=^TestKernelLog$")
	hog.Env = append(os.Environ(), hogEnv+"="+filepath.Join(dir, "cgroup.procs"))
	out, err := hog.CombinedOutput()
	if hog.ProcessState == nil || hog.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("the kernel did not kill: %v\n%s", err, out)
	}
	for range 5 {
		for _, k := range look() {
			if string(k.UID) != strings.TrimPrefix(filepath.Base(web), "pod") || k.Process == nil {
				continue
			}
			if p := k.Process; p.PID != hog.Process.Pid || p.Name != `a,pid=1) \x0a\x1b[1m` || p.RSS < 32<<20 || p.RSS > 96<<20 || k.Limit != endlog.InContainer || string(k.ContainerID) != app {
				t.Errorf("got %+v, process %+v; want pid %d with about 64 MiB", k, p, hog.Process.Pid)
			}
			t.Logf("the kernel killed %+v", *k.Process)
			return
		}
	}
	t.Error("the log did not name the process that the kernel killed")
}

// BenchmarkLog measures a record of a flood: its parser alone, and with the read of this machine's log.
func BenchmarkLog(b *testing.B) {
	noise, kill := []byte("4,1,1,-;"+strings.Repeat("x", 100)+"\n"), []byte(chosen(web, web+"/"+app, "java", 4711))
	for name, record := range map[string][]byte{"parse=other": noise, "parse=kill": kill} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, ok := oomkill.ParseRecord(record); ok != (name == "parse=kill") {
					b.Fatalf("read as %v", ok)
				}
			}
		})
	}
	b.Run("read=/dev/kmsg", func(b *testing.B) {
		records := 0
		for b.Loop() {
			file, err := os.OpenFile("/dev/kmsg", os.O_RDONLY|unix.O_NONBLOCK, 0)
			if err != nil {
				b.Skip(err)
			}
			log, err := oomkill.NewLog(file)
			if err != nil {
				b.Fatal(err)
			}
			if err := log.Read(func(record []byte) { oomkill.ParseRecord(record); records++ }); err != nil {
				b.Fatal(err)
			}
			log.Close()
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(records), "ns/record")
	})
}
