package inspect

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/host/cgroupfs"
	"github.com/weir-metrics/weir/sources/host/podcgroup"
)

// Tree has the cgroups of pods on one machine, from one walk.
type Tree struct {
	Ended       time.Time // the end of the walk, by this machine's clock
	Hierarchies cgroupfs.Hierarchies
	// Under is the cgroup that was searched; "/" means everything.
	Under metric.CgroupPath
	// Roots are the kubepods cgroups, sorted.
	Roots []metric.CgroupPath
	// Pods are the cgroups of pods, sorted by path.
	Pods []*Cgroup
	// OutsidePods are cgroups of containers that are outside of any pod's cgroup, sorted by path. They
	// occur if containerd and the kubelet use different cgroup drivers.
	OutsidePods []*Cgroup
	// Problems are the directories and files that could not be read. Those that were removed in the
	// meantime are not included.
	Problems []error
}

// Cgroup is a cgroup of a pod or of a container, in all hierarchies that have it. On version 1 each
// hierarchy is a separate tree, and a cgroup may still exist in only one of them.
type Cgroup struct {
	podcgroup.Ref
	Path metric.CgroupPath
	// Locations are the hierarchies that have it, in the order of Tree.Hierarchies.
	Locations []Location
	// PIDs are the processes in it and below it, in any hierarchy, in ascending order.
	PIDs []int
	// ForeignProcesses is the number of processes in other PID namespaces. The kernel lists them as
	// PID 0.
	ForeignProcesses int
	// Populated is true if the kernel counts a process in it or below it, even if it does not list the
	// process.
	Populated bool
	// Unreadable is true if some of its processes could not be read. It may then have processes
	// although none was found.
	Unreadable bool
	// Frozen is true if the freezer has stopped its processes.
	Frozen bool
	// Limits are the kernel's limits for it.
	Limits Limits
	// EarliestModified and LatestModified are the earliest and the latest modification
	// time of its directories. A directory's time changes when a child is added or
	// removed, so the cgroup is at least as old as EarliestModified.
	EarliestModified, LatestModified time.Time
	// Processes are the processes in PIDs that have not ended since, the oldest first.
	Processes []Process
	// Containers are the cgroups of containers below a pod's cgroup, sorted by path.
	Containers []*Cgroup
}

// Location is the directory of a cgroup in one hierarchy.
type Location struct {
	cgroupfs.Hierarchy
	// Inode identifies the directory. A directory that is created later at the same path has another
	// inode.
	Inode uint64
}

// CountProcesses returns the number of processes in c and below it.
func (c *Cgroup) CountProcesses() int { return len(c.PIDs) + c.ForeignProcesses }

// IsEmpty reports whether c and the cgroups below it certainly have no process.
func (c *Cgroup) IsEmpty() bool { return c.CountProcesses() == 0 && !c.Populated && !c.Unreadable }

// hierarchyNames returns the names of the hierarchies that contain c.
func (c *Cgroup) hierarchyNames() []string {
	names := make([]string, 0, len(c.Locations))
	for _, at := range c.Locations {
		names = append(names, at.Name)
	}
	return names
}

// Read walks every hierarchy. It fails only if none can be opened. Everything else that cannot be
// read is in Tree.Problems.
func (i *Inspector) Read() (*Tree, error) {
	w := &treeWalk{
		tree:  &Tree{Hierarchies: i.hierarchies, Under: i.options.Under},
		found: map[metric.CgroupPath]*foundCgroup{}, roots: map[metric.CgroupPath]bool{},
	}
	opened := 0
	for _, h := range i.hierarchies {
		dir, err := openUnder(h.Dir, i.options.Under)
		if err != nil {
			if cgroupfs.IsRemoved(err) {
				opened++ // this hierarchy does not have the cgroup
			} else {
				w.addProblem(fmt.Errorf("open hierarchy %s: %w", h.Name, err))
			}
			continue
		}
		opened++
		w.hierarchy = h
		w.visit(dir, i.options.Under, nil)
		closeRoot(dir)
	}
	if opened == 0 {
		return nil, errors.Join(w.tree.Problems...)
	}
	procs, err := newProcessTable(i.options.Proc)
	if err != nil {
		w.addProblem(err)
	}
	w.buildTree(procs)
	w.tree.Ended = i.options.Now()
	return w.tree, nil
}

// openUnder opens the directory of a cgroup as a root, so that no link in it can lead outside.
func openUnder(mount string, under metric.CgroupPath) (*os.Root, error) {
	root, err := os.OpenRoot(mount)
	if err != nil || under == "/" {
		return root, err
	}
	defer closeRoot(root)
	return root.OpenRoot(strings.TrimPrefix(string(under), "/"))
}

// closeRoot closes a directory. The error does not matter, because the directory was only read.
func closeRoot(dir *os.Root) { _ = dir.Close() }

// treeWalk is the state of one walk through all hierarchies.
type treeWalk struct {
	tree      *Tree
	hierarchy cgroupfs.Hierarchy // the hierarchy of the current walk
	found     map[metric.CgroupPath]*foundCgroup
	roots     map[metric.CgroupPath]bool
}

// foundCgroup is a Cgroup while the walk fills it.
type foundCgroup struct {
	Cgroup
	pod     *foundCgroup // the pod of a container; nil for a pod, and outside of any pod's cgroup
	pids    map[int]bool
	foreign int // the ForeignProcesses in the hierarchy of the current walk
}

func (w *treeWalk) addProblem(err error) { w.tree.Problems = append(w.tree.Problems, err) }

// addCgroup returns the cgroup at a path, and adds the hierarchy of the current walk to its
// locations.
func (w *treeWalk) addCgroup(p metric.CgroupPath, ref podcgroup.Ref, dir *os.Root, pod *foundCgroup) *foundCgroup {
	f := w.found[p]
	if f == nil {
		f = &foundCgroup{Cgroup: Cgroup{Ref: ref, Path: p}, pod: pod, pids: map[int]bool{}}
		w.found[p] = f
	}
	info, err := dir.Stat(".")
	if err != nil {
		w.markUnreadable(f, fmt.Errorf("read age of cgroup: %w", err))
		return f
	}
	changed := info.ModTime()
	if f.EarliestModified.IsZero() || changed.Before(f.EarliestModified) {
		f.EarliestModified = changed
	}
	if changed.After(f.LatestModified) {
		f.LatestModified = changed
	}
	f.Locations = append(f.Locations, Location{Hierarchy: w.hierarchy, Inode: inode(info)})
	f.foreign = 0
	return f
}

// markUnreadable records that f, or a cgroup in it, could not be read, unless it was removed. f may
// be nil.
func (w *treeWalk) markUnreadable(f *foundCgroup, err error) {
	if cgroupfs.IsRemoved(err) {
		return
	}
	w.addProblem(err)
	for ; f != nil; f = f.pod {
		f.Unreadable = true
	}
}

// visit reads the cgroup p and those below it. inner is the cgroup of the container, or else of the
// pod, that p is in; nil outside of pods.
func (w *treeWalk) visit(dir *os.Root, p metric.CgroupPath, inner *foundCgroup) {
	switch ref := podcgroup.Parse(p); ref.Kind {
	case podcgroup.Root:
		w.roots[p] = true
	case podcgroup.Pod, podcgroup.Container:
		inner = w.addCgroup(p, ref, dir, inner)
	}
	entries, err := fs.ReadDir(dir.FS(), ".")
	if inner != nil {
		w.readFiles(dir, entries, p, inner)
	}
	if err != nil {
		w.markUnreadable(inner, fmt.Errorf("list cgroup %s: %w", p, err))
	}
	for _, e := range entries {
		if !e.IsDir() { // a link is not a directory either
			continue
		}
		child := metric.CgroupPath(path.Join(string(p), e.Name()))
		below, err := dir.OpenRoot(e.Name())
		if err != nil {
			w.markUnreadable(inner, fmt.Errorf("open cgroup %s: %w", child, err))
			continue
		}
		w.visit(below, child, inner)
		closeRoot(below)
	}
	if inner != nil && inner.Path == p {
		inner.ForeignProcesses = max(inner.ForeignProcesses, inner.foreign)
	}
}

// readFiles reads the files of one directory, which is f or below f. entries are the files in it.
func (w *treeWalk) readFiles(dir *os.Root, entries []fs.DirEntry, p metric.CgroupPath, f *foundCgroup) {
	procs, err := dir.ReadFile("cgroup.procs")
	if err == nil {
		err = w.addProcesses(procs, f)
	}
	// A threaded cgroup of version 2 does not list processes. The cgroup at the root of its domain
	// lists them, and cgroup.events counts them.
	if err != nil && !errors.Is(err, syscall.EOPNOTSUPP) {
		w.markUnreadable(f, fmt.Errorf("read processes of cgroup %s: %w", p, err))
	}
	populated, frozen := readState(dir, entries)
	for up := f; up != nil; up = up.pod {
		up.Populated = up.Populated || populated
	}
	if f.Path != p {
		return
	}
	f.Frozen = f.Frozen || frozen
	if err := f.Limits.read(dir, entries); err != nil {
		w.addProblem(fmt.Errorf("read limits of cgroup %s: %w", p, err))
	}
}

func (w *treeWalk) addProcesses(procs []byte, f *foundCgroup) error {
	for pid, err := range cgroupfs.ProcessIDs(procs) {
		if err != nil {
			return err
		}
		for up := f; up != nil; up = up.pod {
			if pid == 0 {
				up.foreign++
			} else {
				up.pids[pid] = true
			}
		}
	}
	return nil
}

// readState reads whether a cgroup or one below it has processes, and whether it is frozen.
// Unlike cgroup.procs, these files also count processes of other PID namespaces.
func readState(dir *os.Root, entries []fs.DirEntry) (populated, frozen bool) {
	for _, e := range entries {
		switch name := e.Name(); name {
		case "cgroup.events": // of version 2
			events, _ := dir.ReadFile(name)
			inside, _ := cgroupfs.Number(events, "populated")
			stopped, _ := cgroupfs.Number(events, "frozen")
			populated, frozen = populated || inside == 1, frozen || stopped == 1
		case "pids.current":
			current, _ := dir.ReadFile(name)
			n, _ := cgroupfs.ParseUint(current)
			populated = populated || n > 0
		case "freezer.state": // of version 1
			freezer, err := dir.ReadFile(name)
			frozen = frozen || err == nil && strings.TrimSpace(string(freezer)) != "THAWED"
		}
	}
	return populated, frozen
}

// buildTree sorts the cgroups into the tree and reads their processes.
func (w *treeWalk) buildTree(procs *processTable) {
	w.tree.Roots = slices.Sorted(maps.Keys(w.roots))
	for _, p := range slices.Sorted(maps.Keys(w.found)) {
		f := w.found[p]
		if len(f.Locations) == 0 && !f.Unreadable {
			continue // it was removed while it was opened
		}
		f.PIDs = slices.Sorted(maps.Keys(f.pids))
		for _, pid := range f.PIDs {
			if one := procs.find(pid); one != nil {
				f.Processes = append(f.Processes, *one)
			}
		}
		slices.SortStableFunc(f.Processes, func(a, b Process) int { return a.Started.Compare(b.Started) })
		switch {
		case f.Kind == podcgroup.Pod:
			w.tree.Pods = append(w.tree.Pods, &f.Cgroup)
		case f.pod == nil:
			w.tree.OutsidePods = append(w.tree.OutsidePods, &f.Cgroup)
		default: // pods come before their containers in the order of paths
			f.pod.Containers = append(f.pod.Containers, &f.Cgroup)
		}
	}
}
