package inspect

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/test/transcript"
)

// fixture is a machine of plain files, with hierarchies of cgroups and processes.
type fixture struct {
	t      testing.TB
	mount  string // the parent of the hierarchies; if there is only version 2, it is mounted here
	proc   string
	boot   time.Time
	single bool // whether there is only version 2
	all    []string
}

// newFixture creates the hierarchies of kind "v1", "v2" or "hybrid", or version 1 hierarchies with
// the given names.
func newFixture(t testing.TB, kind string) *fixture {
	t.Helper()
	f := &fixture{t: t, mount: filepath.Join(t.TempDir(), "cgroup"), proc: t.TempDir(), boot: transcript.Epoch.Add(-48 * time.Hour)}
	switch kind {
	case "v1":
		f.all = []string{"cpu", "memory", "systemd"}
	case "v2":
		f.all, f.single = []string{"."}, true
	case "hybrid":
		f.all = []string{"cpu", "memory", "unified"}
	default:
		f.all = strings.Split(kind, ",")
	}
	f.write(filepath.Join(f.proc, "stat"), fmt.Sprintf("cpu  1 2 3\nbtime %d\n", f.boot.Unix()))
	for _, h := range f.all {
		dir := filepath.Join(f.mount, h)
		f.mkdir(dir)
		if h == "." || h == "unified" {
			f.write(filepath.Join(dir, "cgroup.controllers"), "cpu memory\n")
		}
	}
	return f
}

func (f *fixture) write(name, text string) {
	f.t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		f.t.Fatal(err)
	}
}

// mkdir creates a directory with the files of a cgroup.
func (f *fixture) mkdir(dir string) {
	f.t.Helper()
	for at := dir; at != filepath.Dir(f.mount); at = filepath.Dir(at) {
		if at == f.mount && !f.single {
			break
		}
		if err := os.MkdirAll(at, 0o755); err != nil {
			f.t.Fatal(err)
		}
		if name := filepath.Join(at, "cgroup.procs"); !exists(name) {
			f.write(name, "")
		}
	}
}

// cgroup creates a cgroup in the named hierarchies: "all", or some of f.all. Words are pids=1,2
// (only in the first hierarchy: pid1=3), age=2h, current=3 (of the pids controller), populated,
// frozen, and files with limits: cpu.shares=102, cpu.max=max,100000.
func (f *fixture) cgroup(path, hierarchies string, words ...string) {
	f.t.Helper()
	in := f.all
	if hierarchies != "all" {
		in = strings.Split(hierarchies, ",")
	}
	age := 10 * time.Minute
	for n, h := range in {
		dir := filepath.Join(f.mount, h, path)
		f.mkdir(dir)
		events := ""
		for _, word := range words {
			key, value, _ := strings.Cut(word, "=")
			switch key {
			case "pids":
				f.write(filepath.Join(dir, "cgroup.procs"), strings.ReplaceAll(value, ",", "\n")+"\n")
			case "pid1":
				if n == 0 {
					f.write(filepath.Join(dir, "cgroup.procs"), value+"\n")
				}
			case "current":
				f.write(filepath.Join(dir, "pids.current"), value+"\n")
			case "populated":
				events += "populated 1\n"
			case "frozen":
				events += "frozen 1\n"
				f.write(filepath.Join(dir, "freezer.state"), "FROZEN\n")
			case "age":
				age = f.duration(value)
			case "cpu.shares", "cpu.cfs_quota_us", "cpu.cfs_period_us", "memory.limit_in_bytes":
				if strings.HasPrefix(key, h+".") {
					f.write(filepath.Join(dir, key), value+"\n")
				}
			case "cpu.weight", "cpu.max", "memory.max":
				if h == "." {
					f.write(filepath.Join(dir, key), strings.ReplaceAll(value, ",", " ")+"\n")
				}
			default:
				f.t.Fatalf("a cgroup has no %q", word)
			}
		}
		if events != "" {
			f.write(filepath.Join(dir, "cgroup.events"), events)
		}
	}
	made := transcript.Epoch.Add(-age)
	for _, h := range in {
		if err := os.Chtimes(filepath.Join(f.mount, h, path), made, made); err != nil {
			f.t.Fatal(err)
		}
	}
}

func (f *fixture) duration(text string) time.Duration {
	f.t.Helper()
	d, err := time.ParseDuration(text)
	if err != nil {
		f.t.Fatal(err)
	}
	return d
}

// process creates a process.
func (f *fixture) process(pid, command, state string, age time.Duration) {
	f.t.Helper()
	dir := filepath.Join(f.proc, pid)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		f.t.Fatal(err)
	}
	start := transcript.Epoch.Add(-age).Sub(f.boot).Milliseconds() / 10
	f.write(filepath.Join(dir, "stat"), fmt.Sprintf("%s (%s) %s 1 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 %d 1000 2000%s\n", pid, command, state, start, strings.Repeat(" 0", 28)))
}

// inspector returns an Inspector of the machine that removes cgroups as the kernel does.
func (f *fixture) inspector(under metric.CgroupPath) *Inspector {
	f.t.Helper()
	i, err := New(Options{Mount: f.mount, Proc: f.proc, Under: under, Now: func() time.Time { return transcript.Epoch }})
	if err != nil {
		f.t.Fatal(err)
	}
	i.rmdir = asKernel
	return i
}

// asKernel removes a directory with its files as the kernel removes a cgroup: it refuses while the
// cgroup has processes or children.
func asKernel(dir *os.Root, name string) error {
	busy := &fs.PathError{Op: "rmdir", Path: name, Err: syscall.EBUSY}
	if procs, err := dir.ReadFile(filepath.Join(name, "cgroup.procs")); err != nil || strings.TrimSpace(string(procs)) != "" {
		return busy
	}
	child, err := dir.OpenRoot(name)
	if err != nil {
		return err
	}
	entries, err := fs.ReadDir(child.FS(), ".")
	child.Close()
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() {
			return busy
		}
	}
	for _, e := range entries {
		if err := dir.Remove(filepath.Join(name, e.Name())); err != nil {
			return err
		}
	}
	return dir.Remove(name)
}

// directories returns every cgroup in the form of hierarchy and path.
func (f *fixture) directories() map[string]bool {
	f.t.Helper()
	found := map[string]bool{}
	err := filepath.WalkDir(f.mount, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			found[strings.TrimPrefix(path, f.mount)] = true
		}
		return err
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return found
}

// expand replaces short names by names as long as real ones. In transcripts a UID is one letter
// after a $, and the ID of a container is one digit after a #.
func expand(s string) string {
	for c := 'A'; c <= 'F'; c++ {
		u := uidOf(c)
		s = strings.NewReplacer("$"+string(c)+"_", strings.ReplaceAll(u, "-", "_"), "$"+string(c), u).Replace(s)
	}
	for c := '0'; c <= '9'; c++ {
		s = strings.ReplaceAll(s, "#"+string(c), strings.Repeat(string(c), 64))
	}
	return strings.ReplaceAll(s, "$hash", strings.Repeat("ab12", 8))
}

// shorten is the inverse of expand.
func shorten(s string) string {
	for c := 'A'; c <= 'F'; c++ {
		u := uidOf(c)
		s = strings.NewReplacer(strings.ReplaceAll(u, "-", "_"), "$"+string(c)+"_", u, "$"+string(c)).Replace(s)
	}
	for c := '0'; c <= '9'; c++ {
		s = strings.ReplaceAll(s, strings.Repeat(string(c), 64), "#"+string(c))
	}
	return strings.ReplaceAll(s, strings.Repeat("ab12", 8), "$hash")
}

func uidOf(c rune) string {
	l := strings.ToLower(string(c))
	return strings.Repeat(l, 8) + "-0000-4000-8000-" + strings.Repeat(l, 12)
}

// parsePods parses lines of pods:
//
//	shop/web uid=$A qos=Burstable [phase=Running] [started=-5m] [deleted] [hash=$hash]
//	  app id=#1 [last=#0] [started=-5m] [state=waiting|terminated]
func parsePods(t *testing.T, input string) (list []*cluster.Pod) {
	t.Helper()
	moment := func(offset string) time.Time {
		at, err := transcript.Moment(offset)
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	for _, line := range transcript.Lines(expand(input)) {
		words := strings.Fields(line)
		attrs := map[string]string{}
		for _, word := range words[1:] {
			key, value, _ := strings.Cut(word, "=")
			attrs[key] = value
		}
		started := time.Time{}
		if text := attrs["started"]; text != "" {
			started = moment(text)
		}
		if namespace, name, isPod := strings.Cut(words[0], "/"); isPod {
			p := &cluster.Pod{
				PodRef: metric.PodRef{Namespace: metric.Namespace(namespace), Name: metric.PodName(name)},
				UID:    metric.PodUID(attrs["uid"]), ConfigHash: cluster.NewConfigHash(metric.PodUID(attrs["hash"])),
				Phase: cluster.Phase(attrs["phase"]), QoS: attrs["qos"], Started: started,
			}
			if p.Phase == "" {
				p.Phase = cluster.Running
			}
			if _, deleted := attrs["deleted"]; deleted {
				p.Deleted = transcript.Epoch
			}
			list = append(list, p)
			continue
		}
		c := cluster.Container{
			Name: words[0], State: cluster.StateRunning, StartedAt: started,
			ID: metric.ContainerID(attrs["id"]), Previous: cluster.PreviousRun{LastID: metric.ContainerID(attrs["last"])}.OrNil(),
		}
		switch attrs["state"] {
		case "waiting":
			c.State = cluster.StateWaiting
		case "terminated":
			c.State = cluster.StateTerminated
		}
		p := list[len(list)-1]
		p.Containers = append(p.Containers, c)
	}
	return list
}

func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}
