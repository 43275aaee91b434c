//go:build linux

package vitals

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/host/cgroupfs"
	"github.com/weir-metrics/weir/sources/host/podcgroup"
)

// cgroup is a cgroup in the hierarchy in which memory is counted, kept open from one read to the next.
// Of what was read it remembers processor time alone.
type cgroup struct {
	podcgroup.Ref
	path  metric.CgroupPath
	inode uint64
	dir   int
	// Files of it, of which cpu and tasks may be in hierarchies of their own.
	usage, limit, stat, procs, cpu, tasks openFile

	rate cpuRate // of processor time
	// children are the cgroups in it by inode, and listed those of the last list, by path.
	children map[uint64]*cgroup
	listed   []*cgroup
}

// openCgroup opens the cgroup at a path, whose directory is called name below at.
func (d *cgroupDirs) openCgroup(at int, name string, p metric.CgroupPath) (*cgroup, error) {
	fd, err := openDir(at, name)
	if err != nil {
		return nil, fmt.Errorf("open cgroup: %w", err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		closeFD(fd)
		return nil, fmt.Errorf("open cgroup: %w", err)
	}
	c := &cgroup{
		Ref: podcgroup.Parse(p), path: p, inode: st.Ino, dir: fd, children: map[uint64]*cgroup{},
		usage: openFile{name: d.version.MemoryUsage}, limit: openFile{name: d.version.MemoryLimit},
		stat: openFile{name: "memory.stat"}, procs: openFile{name: "cgroup.procs"}, cpu: openFile{name: d.version.CPUTime},
	}
	if d.version == cgroupfs.V1 {
		c.cpu.name = path.Join(d.cpuacctDir, string(p), d.version.CPUTime)
		c.tasks.name = path.Join(d.pidsDir, string(p), "pids.current")
	}
	return c, nil
}

// close closes c and what is below.
func (c *cgroup) close() {
	for _, child := range c.children {
		child.close()
	}
	for _, h := range [...]*openFile{&c.usage, &c.limit, &c.stat, &c.procs, &c.cpu, &c.tasks} {
		h.close()
	}
	closeFD(c.dir)
}

// listChildren finds the cgroups in c as they are now: c.listed, sorted. It opens new ones and closes those that are
// gone, of which another of the same name may be there.
func (r *round) listChildren(c *cgroup) error {
	c.listed = c.listed[:0]
	var errs []error
	err := r.eachDirectory(c.dir, func(name []byte, inode uint64) {
		child := c.children[inode]
		if child == nil {
			var err error
			if child, err = r.openCgroup(c.dir, string(name), metric.CgroupPath(path.Join(string(c.path), string(name)))); err != nil {
				errs = append(errs, cgroupfs.IgnoreRemoved(err))
				return
			}
			c.children[inode] = child
		}
		c.listed = append(c.listed, child)
	})
	if err == nil && len(c.children) > len(c.listed) {
		maps.DeleteFunc(c.children, func(_ uint64, child *cgroup) bool {
			if slices.Contains(c.listed, child) {
				return false
			}
			child.close()
			return true
		})
	}
	slices.SortFunc(c.listed, func(a, b *cgroup) int { return strings.Compare(string(a.path), string(b.path)) })
	return errors.Join(append(errs, cgroupfs.IgnoreRemoved(err))...)
}

// isReplaced reports whether the cgroup is not there any more, or another in its place.
func (r *round) isReplaced(c *cgroup) bool {
	var st unix.Stat_t
	err := unix.Stat(path.Join(r.memoryDir, string(c.path)), &st)
	return errors.Is(err, unix.ENOENT) || err == nil && st.Ino != c.inode
}

var newline = []byte{'\n'}

// countProcesses counts the processes in c and below it.
func (r *round) countProcesses(c *cgroup) (int, error) {
	n, err := r.countOwnProcesses(c)
	var st unix.Stat_t
	// A directory's links are its name, its "." and each child's "..": with two it has no children.
	// File systems that do not count say one.
	if statErr := unix.Fstat(c.dir, &st); statErr != nil || st.Nlink == 2 {
		return n, errors.Join(err, statErr)
	}
	errs := []error{err, r.listChildren(c)}
	for _, child := range c.listed {
		m, err := r.countProcesses(child)
		n += m
		errs = append(errs, err)
	}
	return n, errors.Join(errs...)
}

// countOwnProcesses counts the processes of c. Those of a threaded one are listed by the cgroup above.
func (r *round) countOwnProcesses(c *cgroup) (int, error) {
	data, err := r.read(&c.procs, c.dir)
	if errors.Is(err, unix.EOPNOTSUPP) {
		return 0, nil
	}
	return bytes.Count(data, newline), cgroupfs.IgnoreRemoved(err)
}

// hasHiddenTasks reports whether version 1 counts tasks in a cgroup in which it lists no process:
// they are in a PID namespace that is not ours to see. Version 2 lists those as 0.
func (r *round) hasHiddenTasks(c *cgroup) (bool, error) {
	if r.pidsDir == "" {
		return false, nil
	}
	n, err := r.readNumber(&c.tasks, unix.AT_FDCWD)
	if err == nil && n > 0 {
		err = errors.New("count processes: its tasks are in a PID namespace not to be seen from here: run in the host's (hostPID)")
	}
	err = cgroupfs.IgnoreRemoved(err)
	return err != nil, err
}

// rootSearchInterval is how long the kubepods cgroups that were found are taken to be all there are: they
// are made when a kubelet starts.
const rootSearchInterval = 10 * time.Second

// findRoots returns the kubepods cgroups. Usually it is one; a node whose cgroup driver was changed has
// the other's left over.
func (r *round) findRoots() []*cgroup {
	state := &r.mu
	if time.Since(state.looked) < rootSearchInterval && !slices.ContainsFunc(state.roots, r.isReplaced) {
		return state.roots
	}
	known := state.roots
	state.roots, state.looked = nil, time.Now()
	found, err := cgroupfs.FindPodRoots(r.memoryDir)
	r.addError("look for pods", err)
	for _, p := range found {
		if i := slices.IndexFunc(known, func(c *cgroup) bool { return c.path == p && !r.isReplaced(c) }); i >= 0 {
			state.roots = append(state.roots, known[i])
			known = slices.Delete(known, i, i+1)
			continue
		}
		c, err := r.openCgroup(unix.AT_FDCWD, path.Join(r.memoryDir, string(p)), p)
		if err != nil {
			r.addError("look for pods", cgroupfs.IgnoreRemoved(err))
			continue
		}
		state.roots = append(state.roots, c)
	}
	for _, c := range known {
		c.close()
	}
	return state.roots
}
