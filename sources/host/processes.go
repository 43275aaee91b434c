//go:build linux

package host

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/host/cgroupfs"
)

// processCounts counts the processes of cgroups and those below them.
type processCounts map[metric.CgroupPath]*processCount

// processCount is what lives in a cgroup and, after sum, below it.
type processCount struct {
	// processes is their number, -1 if the kernel would not list them (a
	// threaded cgroup of version 2: the cgroup above lists them).
	processes int32
	// files is how many descriptors they have open, -1 if some would not say.
	files int64
	// pid is one of the cgroup's own processes; 0 if it has none.
	pid int
}

// countProcesses counts the processes of each cgroup, in the hierarchy of its dir. places are
// sorted by path.
func countProcesses(places []cgroupDir, proc string) (processCounts, []error) {
	c := make(processCounts, len(places))
	var errs []error
	for i := range places {
		h := &processCount{}
		c[places[i].path] = h
		data, err := os.ReadFile(path.Join(places[i].dir, "cgroup.procs"))
		if err != nil {
			h.processes, h.files = -1, -1
			if places[i].stillExists() && !isUnsupported(err) {
				errs = append(errs, fmt.Errorf("list processes: %w", err))
			}
			continue
		}
		h.addProcesses(data, proc)
	}
	// Below comes after: a child is added to its parent when all of its own are
	// in. Hierarchies of version 1 do not add up with each other.
	roots := make(map[metric.CgroupPath]int, len(places))
	for i := range places {
		roots[places[i].path] = places[i].hierarchy
	}
	for i := len(places) - 1; i >= 0; i-- {
		p := places[i].path
		for above := parentPath(p); p != "/"; above = parentPath(above) {
			if up, ok := c[above]; ok {
				if roots[above] == places[i].hierarchy {
					up.addBelow(c[p])
				}
				break
			}
			if above == "/" {
				break
			}
		}
	}
	return c, errs
}

// addProcesses reads cgroup.procs: one process a line.
func (h *processCount) addProcesses(procs []byte, proc string) {
	for pid, err := range cgroupfs.ProcessIDs(procs) {
		h.processes++
		if err != nil || pid == 0 { // 0: of another PID namespace
			h.files = -1
			continue
		}
		if h.pid == 0 {
			h.pid = pid
		}
		if h.files >= 0 {
			h.files = addKnown(h.files, openFiles(path.Join(proc, strconv.Itoa(pid), "fd")))
		}
	}
}

func (h *processCount) addBelow(below *processCount) {
	if below.processes > 0 {
		h.processes = max(h.processes, 0) + below.processes
	}
	if below.processes >= 0 {
		h.files = addKnown(h.files, below.files)
	}
}

// addKnown adds two counts of which a negative one is unknown.
func addKnown(a, b int64) int64 {
	if a < 0 || b < 0 {
		return -1
	}
	return a + b
}

// openFiles returns how many descriptors a process has, -1 if it may not be
// known. A process that has ended has none.
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
	dir, err := os.Open(fds)
	if os.IsNotExist(err) {
		return 0
	} else if err != nil {
		return -1
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return 0 // it ended meanwhile
	}
	return int64(len(names))
}

func isUnsupported(err error) bool {
	return errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENODEV)
}
