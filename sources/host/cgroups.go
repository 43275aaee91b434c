//go:build linux

package host

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/opencontainers/cgroups"
	"golang.org/x/sys/unix"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/host/cgroupfs"
	"github.com/weir-metrics/weir/sources/host/podcgroup"
)

// controllerSet is a set of cgroup controllers. Their files are read together.
type controllerSet uint8

const (
	cpuacct controllerSet = 1 << iota
	cpu
	memory
	pids
	blkio
)

// controllers are all controllers. If a cgroup is in several version 1 hierarchies, cgroupDir
// has its directory in the first of them in this order. Version 2 has one hierarchy, with io
// for blkio.
var controllers = [...]struct {
	bit    controllerSet
	v1, v2 string
}{
	{cpuacct, "cpuacct", "cpu"},
	{cpu, "cpu", "cpu"},
	{memory, "memory", "memory"},
	{pids, "pids", "pids"},
	{blkio, "blkio", "io"},
}

// cgroupMounts are the mounted hierarchies.
type cgroupMounts struct {
	v2 bool
	// noCPUFull means that cpu.pressure does not have the time in which all threads wait: before Linux 5.13.
	noCPUFull bool
	// dirs has the mount point of each controller, in the form that cAdvisor uses. On version 2 the
	// only key is the empty string.
	dirs map[string]string
	// hierarchies are the distinct hierarchies, in the order of controllers.
	hierarchies []mountedHierarchy
}

// mountedHierarchy is one mounted tree of cgroups.
type mountedHierarchy struct {
	dir         string
	controllers controllerSet // the controllers of this hierarchy; on version 2 all controllers that a cgroup can have
}

// findMounts finds the hierarchies. Like libcontainer, it uses version 2 if and only if it is
// mounted at unifiedDir.
func findMounts() (cgroupMounts, error) {
	if cgroups.IsCgroup2UnifiedMode() {
		return cgroupMounts{
			v2: true, dirs: map[string]string{"": unifiedDir},
			hierarchies: []mountedHierarchy{{dir: unifiedDir, controllers: cpuacct | cpu | memory | pids | blkio}},
		}, nil
	}
	found, err := cgroupfs.Find("", "/proc")
	if err != nil {
		return cgroupMounts{}, err
	}
	m := cgroupMounts{dirs: map[string]string{}}
	for _, c := range controllers {
		dir := found.ControllerDir(c.v1)
		if dir == "" {
			continue
		}
		m.dirs[c.v1] = dir
		if i := slices.IndexFunc(m.hierarchies, func(h mountedHierarchy) bool { return h.dir == dir }); i >= 0 {
			m.hierarchies[i].controllers |= c.bit // this controller is mounted together with the others
			continue
		}
		m.hierarchies = append(m.hierarchies, mountedHierarchy{dir: dir, controllers: c.bit})
	}
	if len(m.hierarchies) == 0 {
		return cgroupMounts{}, fmt.Errorf("find cgroup mounts: no hierarchy of cpuacct, cpu, memory, pids or blkio is mounted")
	}
	return m, nil
}

// unifiedDir is the only directory where libcontainer looks for version 2.
const unifiedDir = "/sys/fs/cgroup"

// missingControllers returns one sentence for each controller that this machine lacks.
func (m *cgroupMounts) missingControllers() []string {
	var missing []string
	if m.v2 {
		here := enabledControllers(m.dirs[""])
		for _, c := range controllers[1:] {
			if here&c.bit == 0 {
				missing = append(missing, fmt.Sprintf("cgroup v2: the %s controller is not available here", c.v2))
			}
		}
		return missing
	}
	for _, c := range controllers {
		if m.dirs[c.v1] == "" {
			missing = append(missing, fmt.Sprintf("cgroup v1: the %s controller is not mounted", c.v1))
		}
	}
	return append(missing, "cgroup v1: the kernel measures pressure (PSI) for the whole node only")
}

// cgroupDir is a cgroup that a walk of the hierarchies found.
type cgroupDir struct {
	path metric.CgroupPath
	ref  podcgroup.Ref // path, parsed
	// controllers are the controllers that have the cgroup in their hierarchies. Version 1 hierarchies
	// are separate trees, so a cgroup may be in only some of them.
	controllers controllerSet
	// dir is the cgroup's directory in the first hierarchy, in the order of controllers, that has it.
	// inode is the inode of dir. Processes are read there.
	dir       string
	inode     uint64
	hierarchy int // the index of the hierarchy of dir
}

// listCgroups lists the cgroups that the options include, sorted by path. The errors are about
// directories that could not be listed.
func listCgroups(m *cgroupMounts, o *Options) ([]cgroupDir, []error) {
	w := walker{mounts: m, options: o, found: map[metric.CgroupPath]*cgroupDir{}}
	for i := range m.hierarchies {
		w.visit(i, "/")
	}
	dirs := make([]cgroupDir, 0, len(w.found))
	for _, p := range slices.Sorted(maps.Keys(w.found)) {
		dirs = append(dirs, *w.found[p])
	}
	return dirs, w.errs
}

type walker struct {
	mounts  *cgroupMounts
	options *Options
	found   map[metric.CgroupPath]*cgroupDir
	errs    []error
}

func (w *walker) visit(root int, p metric.CgroupPath) {
	h := w.mounts.hierarchies[root]
	dir := path.Join(h.dir, string(p))
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR {
		if err != nil && !errors.Is(err, unix.ENOENT) {
			w.errs = append(w.errs, fmt.Errorf("list cgroup %s: %w", dir, err))
		}
		return
	}
	if w.options.includes(p) {
		if w.found[p] == nil {
			w.found[p] = &cgroupDir{path: p, ref: podcgroup.Parse(p), dir: dir, inode: st.Ino, hierarchy: root}
		}
		bits := h.controllers
		if w.mounts.v2 {
			bits &= enabledControllers(dir)
		}
		w.found[p].controllers |= bits
	}
	// The links of a directory are its name, its "." and the ".." of each child. A directory with two
	// links has no children, like most cgroups. File systems that do not count links report one.
	if st.Nlink == 2 || !w.options.mayContain(p) {
		return
	}
	children, err := cgroupfs.Children(h.dir, p)
	if err != nil {
		w.errs = append(w.errs, fmt.Errorf("list cgroup %s: %w", dir, err))
	}
	for _, child := range children {
		w.visit(root, child)
	}
}

// enabledControllers returns the controllers of a version 2 cgroup. It always includes cpuacct,
// because every cgroup counts CPU time.
func enabledControllers(dir string) controllerSet {
	set := cpuacct
	data, _ := os.ReadFile(path.Join(dir, "cgroup.controllers"))
	enabled := strings.Fields(string(data))
	for _, c := range controllers[1:] {
		if slices.Contains(enabled, c.v2) {
			set |= c.bit
		}
	}
	return set
}

// stillExists reports whether the cgroup still exists and was not replaced by another.
func (c *cgroupDir) stillExists() bool {
	var st unix.Stat_t
	return unix.Stat(c.dir, &st) == nil && st.Ino == c.inode
}
