//go:build e2e

package local

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-metrics/weir/sources/host/inspect"
	"github.com/weir-metrics/weir/test/commands"
)

// pods is a tree of pods' cgroups in the kernel, below a separate parent,
// because real clusters may run on this machine at the same time.
type pods struct {
	t      *testing.T
	parent string
	roots  []string // mount points
}

// newPods creates the parent. It is removed with everything below it at the end
// of the test.
func newPods(t *testing.T, parent string, roots []string) *pods {
	t.Helper()
	p := &pods{t: t, parent: parent, roots: roots}
	for _, root := range p.roots {
		if err := os.Mkdir(filepath.Join(root, parent), 0o755); err != nil {
			t.Skipf("making cgroups needs root and a writable cgroup hierarchy: %v", err)
		}
	}
	t.Cleanup(func() {
		for dir := range p.directories() {
			p.remove(dir)
		}
	})
	return p
}

// remove removes a cgroup and all cgroups below it.
func (p *pods) remove(dir string) {
	var below []string
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			below = append(below, path)
		}
		return nil
	})
	for _, at := range slices.Backward(below) {
		for range 50 { // the kernel may need a moment until it is empty
			if err := os.Remove(at); err == nil || os.IsNotExist(err) {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
}

// add creates a cgroup in these hierarchies, or in all if there are none.
func (p *pods) add(path string, roots ...string) {
	p.t.Helper()
	if len(roots) == 0 {
		roots = p.roots
	}
	for _, root := range roots {
		if err := os.MkdirAll(filepath.Join(root, p.parent, path), 0o755); err != nil {
			p.t.Fatal(err)
		}
	}
}

// sleep starts a process that sleeps in a cgroup, in these hierarchies.
func (p *pods) sleep(path string, roots ...string) *exec.Cmd {
	p.t.Helper()
	p.add(path, roots...)
	sleeper := exec.Command("sleep", "3600")
	if err := sleeper.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { end(sleeper) })
	if len(roots) == 0 {
		roots = p.roots
	}
	for _, root := range roots {
		procs := filepath.Join(root, p.parent, path, "cgroup.procs")
		if err := os.WriteFile(procs, []byte(strconv.Itoa(sleeper.Process.Pid)), 0o644); err != nil {
			p.t.Fatal(err)
		}
	}
	return sleeper
}

func end(c *exec.Cmd) {
	_ = c.Process.Kill()
	_ = c.Wait()
}

// old makes every cgroup below the parent look an hour old, except those named.
func (p *pods) old(but ...string) {
	p.t.Helper()
	hourAgo := time.Now().Add(-time.Hour)
	for dir := range p.directories() {
		if slices.ContainsFunc(but, func(path string) bool { return strings.HasSuffix(dir, path) }) {
			continue
		}
		if err := os.Chtimes(dir, hourAgo, hourAgo); err != nil {
			p.t.Fatal(err)
		}
	}
}

// directories returns the directories of the parent and of everything below it,
// in every hierarchy.
func (p *pods) directories() map[string]bool {
	found := map[string]bool{}
	for _, root := range p.roots {
		_ = filepath.WalkDir(filepath.Join(root, p.parent), func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				found[path] = true
			}
			return nil
		})
	}
	return found
}

// TestInspectCgroups checks that weir inspect finds and removes leftovers in
// the kernel's own hierarchies.
func TestInspectCgroups(t *testing.T) {
	t.Run("as mounted", func(t *testing.T) {
		roots, _ := hierarchies(t)
		inspectCgroups(t, roots)
	})
	t.Run("version 2 alone", func(t *testing.T) {
		const unified = "/sys/fs/cgroup/unified" // beside version 1, without controllers
		if _, err := os.Stat(filepath.Join(unified, "cgroup.controllers")); err != nil {
			t.Skipf("no hierarchy of version 2 beside version 1: %v", err)
		}
		inspectCgroups(t, []string{unified}, "--cgroupfs="+unified)
	})
}

// inspectCgroups creates the leftovers in these hierarchies, and runs weir
// inspect with these flags.
func inspectCgroups(t *testing.T, roots []string, flags ...string) {
	parent := fmt.Sprintf("/weir-inspect-%d", os.Getpid())
	p := newPods(t, parent, roots)
	other := newPods(t, parent+"-other", roots)
	one := p.roots[len(p.roots)-1:] // with version 1, one controller of several
	uid := func(c string) string { return strings.Repeat(c, 8) + "-0000-4000-8000-" + strings.Repeat(c, 12) }
	id := strings.Repeat("1", 64)

	live, duplicate := "/kubepods/burstable/pod"+uid("a"), "/kubepods/besteffort/pod"+uid("a")
	empty, partial := "/kubepods/besteffort/pod"+uid("b"), "/kubepods/burstable/pod"+uid("c")
	under := strings.ReplaceAll(uid("d"), "-", "_")
	systemd := "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + under + ".slice"
	stuck, young := "/kubepods/pod"+uid("e"), "/kubepods/pod"+uid("f")
	p.sleep(live + "/" + id)
	p.add(duplicate)
	p.add(empty + "/" + id + "/init.scope")
	p.add(partial, one...)
	p.add(systemd + "/cri-containerd-" + id + ".scope")
	sleeper := p.sleep(stuck+"/"+id, one...)
	p.add(young)
	outside := "/kubepods/pod" + uid("b")
	other.add(outside)
	p.old(young)
	other.old()

	list := filepath.Join(t.TempDir(), "pods.json")
	text := fmt.Sprintf(`{"kind":"PodList","apiVersion":"v1","items":[{"metadata":{"namespace":"shop","name":"web","uid":%q},
		"status":{"phase":"Running","qosClass":"Burstable","containerStatuses":[{"name":"app","containerID":"containerd://%s",
		"state":{"running":{"startedAt":"2026-01-01T00:00:00Z"}}}]},"spec":{"containers":[{"name":"app"}]}}]}`, uid("a"), id)
	if err := os.WriteFile(list, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) (string, error) {
		t.Helper()
		args = slices.Concat([]string{"inspect", "cgroups", "--root=" + parent, "--pods=" + list}, flags, args)
		out, err := exec.Command(commands.Path(t, "weir"), args...).CombinedOutput()
		return string(out), err
	}

	// The report without --clean.
	out, err := run("-o", "json")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var report inspect.Report
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatal(err)
	}
	type judged struct {
		Judgement   inspect.Judgement
		Processes   int
		Hierarchies int
		Removable   bool
	}
	all := len(p.roots)
	want := map[string]judged{
		live: {inspect.Live, 1, all, false}, duplicate: {inspect.Duplicate, 0, all, false},
		empty: {inspect.NoPod, 0, all, true}, partial: {inspect.NoPod, 0, 1, true}, systemd: {inspect.NoPod, 0, all, true},
		stuck: {inspect.NoPod, 1, 1, false}, young: {inspect.Unknown, 0, all, false},
	}
	for i := range report.Pods {
		pod := &report.Pods[i]
		path := strings.TrimPrefix(string(pod.Path), parent)
		got := judged{pod.Judgement, pod.Processes, len(pod.Hierarchies), pod.Removable}
		if got != want[path] {
			t.Errorf("%s: got %+v, want %+v", pod.Path, got, want[path])
		}
		delete(want, path)
	}
	for path := range want {
		t.Errorf("%s is not in the report", path)
	}

	// A dry run must not change anything.
	before := p.directories()
	out, err = run("--clean")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("weir inspect cgroups --clean:\n%s", out)
	if n := len(p.directories()); n != len(before) {
		t.Errorf("a dry run left %d directories of %d", n, len(before))
	}

	// What can be removed is removed in every hierarchy, and nothing else.
	out, err = run("--clean", "--dry-run=false")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	expect := func(removed ...string) {
		t.Helper()
		after := p.directories()
		for dir := range before {
			may := slices.ContainsFunc(removed, func(path string) bool { return strings.Contains(dir, parent+path) })
			if after[dir] == may {
				t.Errorf("%s is there: %v, want %v", dir, after[dir], !may)
			}
		}
	}
	expect(empty, partial, systemd)

	// After the last process has ended, its cgroup can be removed too.
	end(sleeper)
	commands.Eventually(t, 10*time.Second, func() error {
		if out, err = run("--clean", "--dry-run=false"); err != nil {
			return fmt.Errorf("%w\n%s", err, out)
		}
		if strings.Contains(out, "--clean keeps it: 1 process") || strings.Contains(out, "--clean keeps it: the kernel") {
			return fmt.Errorf("something is inside still:\n%s", out)
		}
		return nil
	})
	expect(empty, partial, systemd, stuck)
	t.Logf("and when the stuck process has ended:\n%s", out)

	// weir must not remove a cgroup outside the root.
	for _, root := range other.roots {
		if _, err := os.Stat(filepath.Join(root, other.parent, outside)); err != nil {
			t.Errorf("a cgroup outside of the root: %v", err)
		}
	}
}
