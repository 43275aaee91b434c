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

// cgroup is a cgroup in the hierarchy that counts memory. Its files stay open between reads. Only
// its CPU time, and for the depth Memory the figures of a pod, are kept from one read to the next.
type cgroup struct {
	podcgroup.Ref
	path  metric.CgroupPath
	inode uint64
	dir   int
	// On version 1, cpu and tasks are in other hierarchies.
	usage, limit, stat, procs, cpu, tasks openFile
	pressure                              pressureFiles // version 2

	rate cpuRate // the rate of the CPU time
	last *pod    // the last read of a pod at a depth beyond Memory; nil before
	// children are the cgroups in it, by inode. listed are those of the last list, sorted by path.
	children map[uint64]*cgroup
	listed   []*cgroup
}

// openCgroup opens the cgroup with path p. Its directory is name, relative to the directory at.
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
		stat: openFile{name: "memory.stat"}, procs: openFile{name: "cgroup.procs", list: true}, cpu: openFile{name: d.version.CPUTime},
		pressure: pressureFiles{openFile{name: "cpu.pressure"}, openFile{name: "memory.pressure"}, openFile{name: "io.pressure"}},
	}
	if d.version == cgroupfs.V1 {
		c.cpu.name = path.Join(d.cpuacctDir, string(p), d.version.CPUTime)
		c.tasks.name = path.Join(d.pidsDir, string(p), "pids.current")
	}
	return c, nil
}

// close closes c and the cgroups below it.
func (c *cgroup) close() {
	for _, child := range c.children {
		child.close()
	}
	for _, h := range [...]*openFile{&c.usage, &c.limit, &c.stat, &c.procs, &c.cpu, &c.tasks} {
		h.close()
	}
	c.pressure.close()
	closeFD(c.dir)
}

// listChildren sets c.listed to the cgroups in c, sorted by path. It opens new ones and closes
// removed ones. A removed one may have been replaced by another with the same name.
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

// isReplaced reports whether the cgroup was removed. Another one may have its name.
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
	// The links of a directory are its name, its "." and the ".." of each child. A directory with two
	// links has no children. File systems that do not count links report one.
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

// countOwnProcesses counts the processes of c itself. The parent of a threaded cgroup lists the
// processes of that cgroup.
func (r *round) countOwnProcesses(c *cgroup) (int, error) {
	data, err := r.read(&c.procs, c.dir)
	if errors.Is(err, unix.EOPNOTSUPP) {
		return 0, nil
	}
	return bytes.Count(data, newline), cgroupfs.IgnoreRemoved(err)
}

// processesOf returns the processes of the containers with these names in c, which is a cgroup above the
// pod, that of a pod, or one of a container.
func (r *round) processesOf(uid metric.PodUID, names map[string]string, c *cgroup) (pids []int, err error) {
	if c.Kind == podcgroup.Pod && c.UID != uid {
		return nil, nil
	}
	errs := []error{r.listChildren(c)}
	for _, child := range c.listed {
		if c.Kind == podcgroup.Pod && (child.Kind != podcgroup.Container || names[string(child.ID)] == "") {
			continue // it is the sandbox, or has a helper of the runtime
		}
		below, err := r.processesOf(uid, names, child)
		pids, errs = append(pids, below...), append(errs, err)
	}
	if c.Kind != podcgroup.Container && c.Kind != podcgroup.Inside {
		return pids, errors.Join(errs...)
	}
	data, err := r.read(&c.procs, c.dir)
	if !errors.Is(err, unix.EOPNOTSUPP) { // the parent of a threaded cgroup lists its processes
		errs = append(errs, cgroupfs.IgnoreRemoved(err))
	}
	for pid, err := range cgroupfs.ProcessIDs(data) {
		if pid == 0 && err == nil {
			err = errHidden
		}
		pids, errs = append(pids, pid), append(errs, err)
	}
	return pids, errors.Join(errs...)
}

// errHidden is the error of processes of another PID namespace.
var errHidden = errors.New("its tasks are in another PID namespace: run with hostPID: true")

// hasHiddenTasks reports whether version 1 counts tasks in a cgroup that lists no process. The
// tasks are then in another PID namespace. Version 2 lists them as PID 0.
func (r *round) hasHiddenTasks(c *cgroup) (bool, error) {
	if r.pidsDir == "" {
		return false, nil
	}
	n, err := r.readNumber(&c.tasks, unix.AT_FDCWD)
	if err == nil && n > 0 {
		err = fmt.Errorf("count processes: %w", errHidden)
	}
	err = cgroupfs.IgnoreRemoved(err)
	return err != nil, err
}

// rootSearchInterval is the time between two searches for kubepods cgroups. A kubelet creates
// them when it starts.
const rootSearchInterval = 10 * time.Second

// findRoots returns the kubepods cgroups. Usually there is one. After a change of the cgroup driver
// there may also be the one of the other driver.
func (r *round) findRoots() []*cgroup {
	state := &r.mu
	if time.Since(state.looked) < rootSearchInterval && !slices.ContainsFunc(state.roots, r.isReplaced) {
		return state.roots
	}
	known := state.roots
	state.roots, state.looked = nil, time.Now()
	found, err := cgroupfs.FindPodRoots(r.memoryDir)
	r.addError("find pods", err)
	for _, p := range found {
		if i := slices.IndexFunc(known, func(c *cgroup) bool { return c.path == p && !r.isReplaced(c) }); i >= 0 {
			state.roots = append(state.roots, known[i])
			known = slices.Delete(known, i, i+1)
			continue
		}
		c, err := r.openCgroup(unix.AT_FDCWD, path.Join(r.memoryDir, string(p)), p)
		if err != nil {
			r.addError("find pods", cgroupfs.IgnoreRemoved(err))
			continue
		}
		state.roots = append(state.roots, c)
	}
	for _, c := range known {
		c.close()
	}
	return state.roots
}
