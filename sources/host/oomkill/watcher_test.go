//go:build linux

package oomkill_test

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-metrics/weir/cluster/endlog"
	"github.com/weir-metrics/weir/sources/host/oomkill"
)

// node is a tree of cgroups in a directory, in which a test is the kernel.
type node struct {
	t       testing.TB
	dir     string
	unified bool
	now     time.Time
	watcher *oomkill.Watcher
	counts  map[string]map[string]int // by file and name
}

func newNode(t testing.TB, unified bool, log *oomkill.Log) *node {
	t.Helper()
	n := &node{t: t, dir: t.TempDir(), unified: unified, now: time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC), counts: map[string]map[string]int{}}
	n.write("vmstat", "oom_kill", 0)
	n.watcher = oomkill.New(oomkill.Options{Dir: n.dir, Proc: n.dir, Unified: unified, Log: log})
	t.Cleanup(func() {
		if err := n.watcher.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

// The cgroups of the tests.
const (
	kubepods  = "kubepods"
	burstable = kubepods + "/burstable"
	web       = burstable + "/pod11111111-1111-1111-1111-111111111111"
	api       = kubepods + "/pod22222222-2222-2222-2222-222222222222"
)

var (
	app  = strings.Repeat("a", 64)
	side = strings.Repeat("b", 64)
)

// write adds n to a counter of a file.
func (n *node) write(file, name string, add int) {
	n.t.Helper()
	if n.counts[file] == nil {
		n.counts[file] = map[string]int{}
	}
	n.counts[file][name] += add
	var text strings.Builder
	for name, v := range n.counts[file] {
		fmt.Fprintf(&text, "%s %d\n", name, v)
	}
	if err := os.WriteFile(filepath.Join(n.dir, file), []byte(text.String()), 0o600); err != nil {
		n.t.Fatal(err)
	}
}

// start makes cgroups with a process each.
func (n *node) start(cgroups ...string) {
	n.t.Helper()
	for _, c := range cgroups {
		if err := os.MkdirAll(filepath.Join(n.dir, c), 0o700); err != nil {
			n.t.Fatal(err)
		}
		if !n.unified {
			n.write(c+"/memory.oom_control", "oom_kill", 0)
			n.write(c+"/cgroup.procs", "", 4711)
			continue
		}
		n.write(c+"/memory.events", "oom_kill", 0)
		n.write(c+"/memory.events.local", "oom", 0)
		n.write(c+"/cgroup.events", "populated", 1)
	}
}

// rise adds to a counter of a cgroup and, in memory.events, of those above it.
func (n *node) rise(cgroup, name string, add int) {
	n.t.Helper()
	if !n.unified {
		n.write(cgroup+"/memory.oom_control", name, add)
		return
	}
	if name == "oom" || name == "oom_group_kill" {
		n.write(cgroup+"/memory.events.local", name, add)
	}
	for c := cgroup; c != "."; c = filepath.Dir(c) {
		n.write(c+"/memory.events", name, add)
	}
}

// kill is a kill of processes in a cgroup because another one, or none, reached its limit.
func (n *node) kill(cgroup, limit string, processes int) {
	n.t.Helper()
	if limit != "" && n.unified {
		n.rise(limit, "oom", 1)
	}
	n.rise(cgroup, "oom_kill", processes)
	n.write("vmstat", "oom_kill", processes)
}

func (n *node) remove(cgroup string) {
	n.t.Helper()
	if err := os.RemoveAll(filepath.Join(n.dir, cgroup)); err != nil {
		n.t.Fatal(err)
	}
	maps.DeleteFunc(n.counts, func(file string, _ map[string]int) bool { return strings.HasPrefix(file, cgroup+"/") })
}

// pass returns what is found in some time, one line each.
func (n *node) pass(d time.Duration) (found []string) {
	n.t.Helper()
	for end := n.now.Add(d); !n.now.After(end); n.now = n.now.Add(oomkill.Interval) {
		all, err := n.watcher.Look(n.now)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			n.t.Error(err)
		}
		for _, f := range all {
			line := fmt.Sprintf("%s of %s", f.Scope, string(f.UID)[:4])
			if f.ContainerID != "" {
				line += "/" + string(f.ContainerID)[:1]
			}
			line += fmt.Sprintf(" by the limit %q%s: %d killed, %d in all", f.Limit, f.Slice, f.New, f.Processes)
			if f.Whole {
				line += ", together"
			}
			if f.Inner {
				line += ", of a cgroup in it"
			}
			if f.NUMA {
				line += ", of its NUMA nodes"
			}
			if f.Doubt != "" {
				line += ", doubt: " + string(f.Doubt)
			}
			if f.Process != nil {
				line += fmt.Sprintf(", %s %d %d", f.Process.Name, f.Process.PID, f.Process.RSS)
			}
			if took := f.At.Sub(f.After); took < 0 || took > 2*time.Second && f.Scope != "child" {
				n.t.Errorf("%s: between %v and %v", line, f.After, f.At)
			}
			found = append(found, line)
		}
	}
	return found
}

// TestKills checks whose limit is found, on version 2.
func TestKills(t *testing.T) {
	container := web + "/" + app
	for _, c := range []struct {
		name   string
		happen func(*node)
		want   []string
	}{
		{"nothing", func(*node) {}, nil},
		{"a limit that was reached without a kill", func(n *node) { n.rise(container, "oom", 1) }, nil},
		{"a container's limit, and its cgroup is gone", func(n *node) { n.kill(container, container, 1); n.remove(container) },
			[]string{`container of 1111 by the limit "container": 1 killed, 1 in all`}},
		{"a container's limit, and its cgroup is empty", func(n *node) { n.kill(container, container, 1); n.write(container+"/cgroup.events", "populated", -1) },
			[]string{`container of 1111/a by the limit "container": 1 killed, 1 in all`}},
		{"a group", func(n *node) {
			n.rise(container, "oom_group_kill", 1)
			n.kill(container, container, 7)
			n.remove(container)
		}, []string{`container of 1111 by the limit "container": 1 killed, 7 in all, together`}},
		{"a child", func(n *node) { n.kill(container, container, 2) }, []string{`child of 1111/a by the limit "container": 2 killed, 2 in all`}},
		{"a child, at the limit of its pod", func(n *node) { n.kill(container, web, 1) }, []string{`child of 1111/a by the limit "pod": 1 killed, 1 in all`}},
		{"a pod's limit", func(n *node) { n.kill(container, web, 1); n.remove(container) }, []string{`pod of 1111 by the limit "pod": 1 killed, 1 in all`}},
		{"a pod's limit and a container's", func(n *node) { n.rise(web, "oom", 1); n.kill(container, container, 1); n.remove(container) },
			[]string{`container of 1111 by the limit "": 1 killed, 1 in all`}},
		{"a slice", func(n *node) { n.kill(container, burstable, 1); n.remove(container) },
			[]string{`slice of 1111 by the limit "slice"/kubepods/burstable: 1 killed, 1 in all`}},
		{"the slice of all pods", func(n *node) { n.kill(api+"/"+app, kubepods, 1); n.remove(api + "/" + app) },
			[]string{`slice of 2222 by the limit "slice"/kubepods: 1 killed, 1 in all`}},
		{"the node", func(n *node) { n.kill(container, "", 1); n.remove(container) }, []string{`node of 1111 by the limit "node": 1 killed, 1 in all`}},
		{"a cgroup in a container", func(n *node) {
			n.start(container + "/inner")
			n.kill(container+"/inner", container+"/inner", 1)
		}, []string{`child of 1111/a by the limit "container": 1 killed, 1 in all, of a cgroup in it`}},
		{"a container of crun", func(n *node) {
			n.start(container + "/container")
			n.kill(container+"/container", container+"/container", 1)
		}, []string{`child of 1111/a by the limit "container": 1 killed, 1 in all`}},
		{"a group of crun", func(n *node) {
			n.start(container + "/container")
			n.rise(container+"/container", "oom_group_kill", 1)
			n.kill(container+"/container", container+"/container", 3)
		}, []string{`container of 1111/a by the limit "container": 1 killed, 3 in all, together`}},
		{"a group in a container", func(n *node) {
			n.start(container + "/inner")
			n.rise(container+"/inner", "oom_group_kill", 1)
			n.kill(container+"/inner", container+"/inner", 3)
		}, []string{`child of 1111/a by the limit "container": 1 killed, 3 in all, together, of a cgroup in it`}},
		{"a group that ends later", func(n *node) {
			n.rise(container, "oom_group_kill", 1)
			n.kill(container, container, 7)
		}, []string{`container of 1111/a by the limit "container": 1 killed, 7 in all, together`}},
		{"another slice, at the same time", func(n *node) {
			n.rise(burstable, "oom", 1)
			n.kill(api+"/"+app, "", 1)
			n.remove(api + "/" + app)
		}, []string{`node of 2222 by the limit "node": 1 killed, 1 in all`}},
		{"two slices", func(n *node) {
			n.rise(burstable, "oom", 1)
			n.kill(container, kubepods, 1)
			n.remove(container)
		}, []string{`slice of 1111 by the limit "slice"/kubepods/burstable: 1 killed, 1 in all, doubt: several`}},
		{"a kernel that does not count whose limit it was", func(n *node) {
			for _, c := range []string{kubepods, burstable, web, container} {
				n.remove(c + "/memory.events.local")
			}
			n.kill(container, "", 1)
			n.rise(web, "oom", 1)
			n.remove(web + "/memory.events.local")
			n.remove(container)
		}, []string{`container of 1111 by the limit "": 1 killed, 1 in all, doubt: uncounted`}},
		{"such a kernel, and no limit in the pod", func(n *node) {
			for _, c := range []string{kubepods, burstable, web, container} {
				n.remove(c + "/memory.events.local")
			}
			n.kill(container, "", 1)
			n.remove(container)
		}, []string{`container of 1111 by the limit "": 1 killed, 1 in all, doubt: uncounted`}},
		{"a process outside of pods", func(n *node) { n.write("vmstat", "oom_kill", 1) }, nil},
		{"a pod that came later", func(n *node) {
			const late = burstable + "/pod33333333-3333-3333-3333-333333333333"
			n.start(late, late+"/"+app)
			n.kill(late+"/"+app, late+"/"+app, 1)
			n.remove(late + "/" + app)
		}, []string{`container of 3333 by the limit "container": 1 killed, 1 in all`}},
		{"two containers of a pod", func(n *node) {
			n.kill(container, container, 1)
			n.kill(web+"/"+side, web+"/"+side, 1)
			n.remove(container)
		}, []string{`container of 1111 by the limit "container": 1 killed, 1 in all`, `child of 1111/b by the limit "container": 1 killed, 1 in all`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := newNode(t, true, nil)
			n.start(kubepods, burstable, web, container, web+"/"+side, api, api+"/"+app)
			n.kill(container, container, 3) // before the first look
			n.write("vmstat", "oom_kill", 5)
			if got := n.pass(15 * time.Second); got != nil {
				t.Errorf("before anything happened: got %q, want nothing", got)
			}
			c.happen(n)
			if got := n.pass(2 * time.Second); !slices.Equal(got, c.want) {
				t.Errorf("within 2s: got %q, want %q", got, c.want)
			}
			if got := n.pass(30 * time.Second); got != nil {
				t.Errorf("later: got %q, want nothing", got)
			}
		})
	}
}

// TestScanBeforeTheKill has a scan between a limit and its kill: the kernel writes its log in between.
func TestScanBeforeTheKill(t *testing.T) {
	container := web + "/" + app
	for limit, want := range map[string]string{
		container: `container of 1111 by the limit "container": 1 killed, 1 in all, doubt: earlier`,
		web:       `pod of 1111 by the limit "pod": 1 killed, 1 in all, doubt: earlier`,
		burstable: `slice of 1111 by the limit "slice"/kubepods/burstable: 1 killed, 1 in all, doubt: earlier`,
	} {
		for wait, want := range map[time.Duration]string{2 * time.Second: want, time.Minute: `node of 1111 by the limit "node": 1 killed, 1 in all`} {
			n := newNode(t, true, nil)
			n.start(kubepods, burstable, web, container, web+"/"+side)
			n.pass(8 * time.Second)
			n.rise(limit, "oom", 1)
			n.pass(2*time.Second + wait)
			n.kill(container, "", 1)
			n.remove(container)
			if got := n.pass(2 * time.Second); len(got) != 1 || got[0] != want {
				t.Errorf("limit of %s, and a scan %v before the kill: got %q, want %q", limit, wait, got, want)
			}
		}
	}
}

// TestFilesInMemory checks that files which are in no container are noticed if the pod's limit was reached.
func TestFilesInMemory(t *testing.T) {
	container := web + "/" + app
	for files, want := range map[int]bool{20 << 20: true, 1 << 20: false} {
		n := newNode(t, true, nil)
		n.start(kubepods, burstable, web, container)
		if err := os.WriteFile(filepath.Join(n.dir, web, "memory.max"), []byte("67108864\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		n.write(container+"/memory.stat", "shmem", 30<<20)
		n.write(web+"/memory.stat", "shmem", 30<<20+files)
		n.pass(time.Second)
		n.kill(container, web, 1)
		var found []endlog.Kill
		for range 10 {
			more, err := n.watcher.Look(n.now)
			if err != nil {
				t.Fatal(err)
			}
			found, n.now = append(found, more...), n.now.Add(oomkill.Interval)
		}
		if len(found) != 1 || found[0].Files != want {
			t.Errorf("%d bytes: got %+v, want one kill with files: %v", files, found, want)
		}
	}
}

// TestChildrenAreCountedUp checks that the kills of a container that goes on are one record, also if the
// kernel kills again and again.
func TestChildrenAreCountedUp(t *testing.T) {
	n := newNode(t, true, nil)
	container := web + "/" + app
	n.start(kubepods, burstable, web, container)
	n.pass(time.Second)
	var last string
	for i := range 5 {
		n.kill(container, container, 2)
		got := n.pass(3 * time.Second)
		if want := fmt.Sprintf(`child of 1111/a by the limit "container": 2 killed, %d in all`, 2*(i+1)); len(got) != 1 || got[0] != want {
			t.Fatalf("kill %d: got %q, want %q", i+1, got, want)
		}
		last = got[0]
	}
	n.kill(container, container, 1)
	n.remove(container)
	if got, want := n.pass(3*time.Second), `container of 1111 by the limit "container": 1 killed, 1 in all`; len(got) != 1 || got[0] != want {
		t.Errorf("after %q the container was killed: got %q, want %q", last, got, want)
	}
}

// TestVersion1 checks that only children are found, without their limit.
func TestVersion1(t *testing.T) {
	n := newNode(t, false, nil)
	container := web + "/" + app
	n.start(kubepods, burstable, web, container, web+"/"+side)
	n.kill(container, "", 3)
	if got := n.pass(3 * time.Second); got != nil {
		t.Errorf("before the first look: got %q, want nothing", got)
	}
	n.kill(container, "", 1)
	n.kill(web+"/"+side, "", 1)
	n.remove(container)
	if got, want := n.pass(2*time.Second), []string{`child of 1111/b by the limit "": 1 killed, 1 in all`}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	n.kill(web+"/"+side, "", 1)
	if err := os.WriteFile(filepath.Join(n.dir, web, side, "cgroup.procs"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := n.pass(3 * time.Second); got != nil {
		t.Errorf("a container whose cgroup has no processes: got %q, want nothing", got)
	}
}

// processTime returns the CPU time of this process.
func processTime(b *testing.B) time.Duration {
	b.Helper()
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t); err != nil {
		b.Fatal(err)
	}
	return time.Duration(t.Nano())
}

// held returns the memory of a Watcher that knows all pods.
func (n *node) held() int64 {
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	old := n.watcher
	n.watcher = oomkill.New(oomkill.Options{Dir: n.dir, Proc: n.dir, Unified: n.unified})
	n.pass(time.Second)
	grown := heap() - before
	n.t.Cleanup(func() { _ = old.Close() })
	return grown
}

// BenchmarkLook measures Looks at 110 pods with two containers each, as 250 ms pass between them, and with
// a thousand kills a minute.
func BenchmarkLook(b *testing.B) {
	for _, kills := range []int{0, 1000} {
		b.Run(fmt.Sprintf("kills=%d/min", kills), func(b *testing.B) {
			n := newNode(b, true, nil)
			n.start(kubepods, burstable)
			var containers []string
			for i := range 110 {
				p := fmt.Sprintf("%s/pod%08d-1111-1111-1111-111111111111", burstable, i)
				n.start(p, p+"/"+app, p+"/"+side)
				containers = append(containers, p+"/"+app)
			}
			n.pass(time.Second)
			owed := 0
			var looks time.Duration
			if kills == 0 { // else the test allocates
				b.ReportAllocs()
			}
			for i := range b.N {
				for owed += kills; owed >= 240; owed -= 240 { // four looks a second
					c := containers[i%len(containers)]
					n.kill(c, c, 1)
				}
				n.now = n.now.Add(oomkill.Interval)
				began := processTime(b)
				if _, err := n.watcher.Look(n.now); err != nil {
					b.Fatal(err)
				}
				looks += processTime(b) - began
			}
			b.ReportMetric(float64(n.held())/(1<<10), "KiB")
			b.ReportMetric(float64(looks.Nanoseconds())/float64(b.N), "ns/look")
			b.ReportMetric(100*looks.Seconds()/(float64(b.N)*oomkill.Interval.Seconds()), "%core")
		})
	}
}
