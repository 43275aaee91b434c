//go:build linux

package host

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/host/cgroupfs"
	"github.com/weir-metrics/weir/sources/host/podcgroup"
)

// processCounts has the processes of each cgroup, including those of the cgroups below it.
type processCounts map[metric.CgroupPath]*processCount

// processCount has the processes and open files in a cgroup and below it.
type processCount struct {
	// processes is the number of processes; -1 if the kernel does not list them (in a threaded cgroup
	// of version 2, where the parent lists them, and on version 1 to another PID namespace).
	processes int32
	// files is the number of open descriptors; -1 if the number of one process is not known.
	files int64
	// pid is one of the processes in the cgroup itself; 0 if it has none.
	pid       int
	hierarchy int // the hierarchy in which they were counted
}

// initPIDNamespace is the link of the PID namespace that has all processes of the machine. Its number
// is fixed (PROC_PID_INIT_INO in the kernel's include/linux/proc_ns.h).
const initPIDNamespace = "pid:[4026531836]"

// pidNamespace is what shows whether weir has a PID namespace of its own, or shares one with its
// container or pod, and so does not see the other processes of the node.
type pidNamespace struct {
	link string // of /proc/self/ns/pid
	pid  int    // weir's
	// first and self are /proc/1/cgroup and /proc/self/cgroup.
	first, self string
}

func readPIDNamespace() pidNamespace {
	link, _ := os.Readlink("/proc/self/ns/pid") // what cannot be read is empty, and shows nothing
	first, _ := os.ReadFile("/proc/1/cgroup")
	self, _ := os.ReadFile("/proc/self/cgroup")
	return pidNamespace{link, os.Getpid(), string(first), string(self)}
}

// isOwn reports whether weir does not see the processes of the node. The node itself may be a
// container with a namespace, as with kind. Then the first process, which is the node's, is outside of
// weir's pod. In a namespace of the pod it is weir, an init process of its container, or the pod's
// sandbox.
func (n pidNamespace) isOwn() bool {
	switch {
	case n.link == initPIDNamespace:
		return false
	case n.pid == 1:
		return true
	}
	first := maps.Collect(cgroupfs.ProcessCgroups(n.first))
	for hierarchy, self := range cgroupfs.ProcessCgroups(n.self) {
		if samePod(first[hierarchy], self) {
			return true
		}
	}
	return false
}

// samePod reports whether two cgroups are of the same pod, or of the same container without a pod. In
// a cgroup namespace of its container, weir's cgroup is / and that of the pod's sandbox /../ID.
func samePod(first, self metric.CgroupPath) bool {
	a, b := podcgroup.Parse(first), podcgroup.Parse(self)
	switch {
	case b.UID != "":
		return a.UID == b.UID
	case b.ID != "":
		return a.ID == b.ID
	}
	beside, ok := strings.CutPrefix(string(first), "/../")
	return ok && self == "/" && beside != "init.scope" && !strings.Contains(beside, "/")
}

// countProcesses counts the processes of each cgroup in the hierarchy of its dir. dirs must be
// sorted by path. If the processes are hidden from weir, no count is known.
func countProcesses(dirs []cgroupDir, proc string, hidden bool) (processCounts, []error) {
	counts := make(processCounts, len(dirs))
	var errs []error
	for i := range dirs {
		c := &processCount{hierarchy: dirs[i].hierarchy}
		counts[dirs[i].path] = c
		if hidden {
			c.processes, c.files = -1, -1
			continue
		}
		data, err := os.ReadFile(path.Join(dirs[i].dir, "cgroup.procs"))
		if err != nil {
			c.processes, c.files = -1, -1
			if dirs[i].stillExists() && !errors.Is(err, unix.EOPNOTSUPP) && !errors.Is(err, unix.ENODEV) {
				errs = append(errs, fmt.Errorf("list processes: %w", err))
			}
			continue
		}
		c.addProcesses(data, proc)
	}
	// Children follow their parent in the order of paths. In reverse order each child is therefore
	// complete when it is added to its parent. Counts of different version 1 hierarchies are not
	// added.
	for _, d := range slices.Backward(dirs) {
		c := counts[d.path]
		for above := d.path; above != "/"; {
			above = metric.CgroupPath(path.Dir(string(above)))
			if parent, ok := counts[above]; ok {
				if parent.hierarchy == c.hierarchy {
					parent.addBelow(c)
				}
				break
			}
		}
	}
	return counts, errs
}

// addProcesses adds the processes of a cgroup.procs file.
func (c *processCount) addProcesses(procs []byte, proc string) {
	for pid, err := range cgroupfs.ProcessIDs(procs) {
		c.processes++
		if err != nil || pid == 0 { // 0 is a process of another PID namespace
			c.files = -1
			continue
		}
		if c.pid == 0 {
			c.pid = pid
		}
		if c.files >= 0 {
			c.files = addKnown(c.files, openFiles(path.Join(proc, strconv.Itoa(pid), "fd")))
		}
	}
}

func (c *processCount) addBelow(below *processCount) {
	if below.processes > 0 {
		c.processes = max(c.processes, 0) + below.processes
	}
	if below.processes >= 0 {
		c.files = addKnown(c.files, below.files)
	}
}

// addKnown adds two counts. It returns -1 if one of them is negative, which means that it is not
// known.
func addKnown(a, b int64) int64 {
	if a < 0 || b < 0 {
		return -1
	}
	return a + b
}

// openFiles returns the number of open descriptors of a process, or -1 if it cannot be read.
// It is 0 for a process that has ended.
func openFiles(fds string) int64 {
	var st unix.Stat_t
	if err := unix.Stat(fds, &st); err == unix.ENOENT || err == unix.ESRCH {
		return 0
	} else if err != nil {
		return -1
	}
	// Since Linux 6.2 the directory's size is the number of descriptors.
	if st.Size > 0 {
		return st.Size
	}
	entries, err := os.ReadDir(fds)
	if errors.Is(err, fs.ErrPermission) {
		return -1
	}
	return int64(len(entries)) // none if the process has ended
}
