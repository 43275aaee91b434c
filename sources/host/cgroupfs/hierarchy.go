package cgroupfs

import (
	"bytes"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/host/podcgroup"
)

// Hierarchy is one mounted tree of cgroups.
type Hierarchy struct {
	// Name identifies the hierarchy. It is the list of its controllers ("cpu,cpuacct"), its own name
	// if it has no controllers ("name=systemd"), or "unified" for version 2.
	Name string
	// Dir is the mount point.
	Dir string
	// Unified is true for cgroup version 2.
	Unified bool
}

// Hierarchies are the hierarchies of one machine, in the order of their mounts.
type Hierarchies []Hierarchy

// Find returns the hierarchies that are mounted at dir or in its directories. If dir is
// empty, it returns those in this process's mountinfo, read from proc. It returns an error if
// there are none.
func Find(dir, proc string) (Hierarchies, error) {
	var found Hierarchies
	searched := dir
	if dir == "" {
		searched = path.Join(proc, "self/mountinfo")
		mountinfo, err := os.ReadFile(searched)
		if err != nil {
			return nil, fmt.Errorf("find cgroup hierarchies: %w", err)
		}
		found = parseHierarchies(mountinfo)
	} else {
		var err error
		if found, err = findInDirectory(dir); err != nil {
			return nil, err
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("find cgroup hierarchies: %s has none: name the directory they are mounted in, such as /sys/fs/cgroup", searched)
	}
	return found, nil
}

// Mode returns "v1", "v2" or, if there are hierarchies of both versions, "hybrid".
func (hi Hierarchies) Mode() string {
	switch {
	case hi.UnifiedDir() == "":
		return "v1"
	case len(hi) == 1:
		return "v2"
	}
	return "hybrid"
}

// ControllerDir returns the mount point of a controller's version 1 hierarchy. It is empty if no
// version 1 hierarchy has that controller.
func (hi Hierarchies) ControllerDir(controller string) string {
	for _, h := range hi {
		if !h.Unified && slices.Contains(strings.Split(h.Name, ","), controller) {
			return h.Dir
		}
	}
	return ""
}

// UnifiedDir returns the mount point of version 2; empty if it is not mounted.
func (hi Hierarchies) UnifiedDir() string {
	for _, h := range hi {
		if h.Unified {
			return h.Dir
		}
	}
	return ""
}

// parseHierarchies returns the hierarchies in a mountinfo. A hierarchy with several mounts is
// returned once, with the mount that shows the largest part of it: a container may have both its
// own part and the whole tree mounted.
func parseHierarchies(mountinfo []byte) (found Hierarchies) {
	depths := map[string]int{}  // by device: the depth of the mount that was chosen
	indexes := map[string]int{} // by device: the index in found
	for line := range bytes.Lines(mountinfo) {
		m, ok := ParseMount(string(line))
		if !ok {
			continue
		}
		h := Hierarchy{Dir: m.Point}
		switch m.FileSystem {
		case "cgroup2":
			h.Name, h.Unified = "unified", true
		case "cgroup":
			h.Name = controllersOf(m.Options)
		default:
			continue
		}
		depth := rootDepth(m.Root)
		index, seen := indexes[m.Device]
		switch {
		case !seen:
			indexes[m.Device], depths[m.Device] = len(found), depth
			found = append(found, h)
		case depth < depths[m.Device]:
			depths[m.Device], found[index] = depth, h
		}
	}
	return found
}

// rootDepth returns how many levels a mount's root is below the hierarchy's root. It is
// negative if the root is above the root of this process's cgroup namespace.
func rootDepth(root string) (n int) {
	for part := range strings.SplitSeq(root, "/") {
		switch part {
		case "":
		case "..":
			n--
		default:
			n++
		}
	}
	return n
}

// controllersOf returns the options of a version 1 mount that identify its hierarchy.
func controllersOf(options string) string {
	var names []string
	for o := range strings.SplitSeq(options, ",") {
		switch {
		case o == "rw", o == "ro", o == "xattr", o == "noprefix", o == "clone_children", o == "cpuset_v2_mode":
		case strings.Contains(o, "=") && !strings.HasPrefix(o, "name="):
		default:
			names = append(names, o)
		}
	}
	return strings.Join(names, ",")
}

// findInDirectory returns the hierarchies that are mounted at dir or in its directories.
// It does not follow links, such as the one from cpu to cpu,cpuacct.
func findInDirectory(dir string) (Hierarchies, error) {
	if exists(filepath.Join(dir, "cgroup.controllers")) {
		return Hierarchies{{Name: "unified", Dir: dir, Unified: true}}, nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("list cgroup hierarchies: %w", err)
	}
	var found Hierarchies
	for _, e := range entries {
		h := Hierarchy{Name: e.Name(), Dir: filepath.Join(dir, e.Name())}
		h.Unified = exists(filepath.Join(h.Dir, "cgroup.controllers"))
		if e.IsDir() && (h.Unified || exists(filepath.Join(h.Dir, "cgroup.procs"))) {
			found = append(found, h)
		}
	}
	return found, nil
}

func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

// maxRootDepth is how many levels below the mount FindPodRoots searches. kind's kubepods
// cgroup is four levels deep: /docker/<id>/kubelet/kubepods.
const maxRootDepth = 5

// FindPodRoots returns the kubepods cgroups of the hierarchy that is mounted at dir, and an error
// about directories that could not be listed. It returns only the topmost ones, because a container
// of a pod may run another cluster. Usually there is one. If the kubelet's cgroup driver was
// changed, there may also be the one of the other driver.
func FindPodRoots(dir string) (roots []metric.CgroupPath, err error) {
	var errs ErrorList
	level := []metric.CgroupPath{"/"}
	for depth := 0; depth < maxRootDepth && len(roots) == 0; depth++ {
		var next []metric.CgroupPath
		for _, p := range level {
			children, err := Children(dir, p)
			if err != nil {
				errs.Add(fmt.Errorf("list cgroup %s: %w", p, err))
			}
			next = append(next, children...)
			for _, child := range children {
				if podcgroup.Parse(child).Kind == podcgroup.Root {
					roots = append(roots, child)
				}
			}
		}
		level = next
	}
	return roots, errs.Err()
}

// Children returns the cgroups in the cgroup p of the hierarchy that is mounted at dir. A cgroup that was
// removed has none.
func Children(dir string, p metric.CgroupPath) (children []metric.CgroupPath, err error) {
	entries, err := os.ReadDir(path.Join(dir, string(p)))
	for _, e := range entries {
		if e.IsDir() {
			children = append(children, metric.CgroupPath(path.Join(string(p), e.Name())))
		}
	}
	return children, IgnoreRemoved(err)
}
