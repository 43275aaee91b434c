package disk

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/host/cgroupfs"
	"github.com/weir-metrics/weir/sources/host/podcgroup"
)

// layers finds the writable layers of containers, with the state of one time.
type layers struct {
	proc, root string
	mounted    map[metric.ContainerID]string // from the host's mount table
	pods       map[metric.PodUID]map[metric.ContainerID][]int
}

// maxProcesses is the largest number of processes of a container for which the root is read.
const maxProcesses = 8

// findLayers reads the host's mount table and the cgroup of every process. If there is an error,
// the result is incomplete, but not nil.
func findLayers(proc, containerRoot string) (*layers, error) {
	l := &layers{
		proc: proc, root: containerRoot,
		mounted: map[metric.ContainerID]string{},
		pods:    map[metric.PodUID]map[metric.ContainerID][]int{},
	}
	data, err := os.ReadFile(path.Join(proc, "1", "mountinfo"))
	if err != nil {
		err = fmt.Errorf("read the host's mounts: %w", err)
	}
	for _, o := range parseOverlays(data) {
		// containerd mounts at /run/containerd/io.containerd.runtime.v2.task/k8s.io/ID/rootfs.
		if path.Base(o.point) == "rootfs" {
			l.mounted[metric.ContainerID(path.Base(path.Dir(o.point)))] = o.upper
		}
	}
	return l, errors.Join(err, l.findProcesses())
}

func (l *layers) findProcesses() error {
	proc, err := procfs.NewFS(l.proc)
	var all procfs.Procs
	if err == nil {
		all, err = proc.AllProcs()
	}
	if err != nil {
		return fmt.Errorf("list processes: %w", err)
	}
	for _, p := range all {
		data, err := os.ReadFile(path.Join(l.proc, strconv.Itoa(p.PID), "cgroup"))
		if err != nil {
			continue // the process has ended
		}
		ref, ok := containerOf(string(data))
		if !ok {
			continue
		}
		if l.pods[ref.UID] == nil {
			l.pods[ref.UID] = map[metric.ContainerID][]int{}
		}
		l.pods[ref.UID][ref.ID] = append(l.pods[ref.UID][ref.ID], p.PID)
	}
	return nil
}

// containerOf returns the container of a process, from its cgroup file.
func containerOf(cgroup string) (podcgroup.Ref, bool) {
	for _, p := range cgroupfs.ProcessCgroups(cgroup) {
		if ref := parseNamespacedPath(string(p)); ref.UID != "" && ref.ID != "" {
			return ref, true
		}
	}
	return podcgroup.Ref{}, false
}

// parseNamespacedPath parses the path of a cgroup. If this process is in its own cgroup namespace,
// as pods with version 2 are, the paths of others begin with "/../.." and do not have the common
// part above both.
func parseNamespacedPath(p string) podcgroup.Ref {
	ref := podcgroup.Parse(metric.CgroupPath(p))
	if ref.UID != "" || !strings.HasPrefix(p, "/../") {
		return ref
	}
	for _, above := range []string{
		"/kubepods", "/kubepods.slice",
		"/kubepods.slice/kubepods-burstable.slice", "/kubepods.slice/kubepods-besteffort.slice",
	} {
		if ref := podcgroup.Parse(metric.CgroupPath(above + path.Clean(p))); ref.UID != "" {
			return ref
		}
	}
	return podcgroup.Ref{}
}

// errEnded means that a container has no process. It may have ended, or run in a virtual machine.
var errEnded = errors.New("it has no process")

// find returns the writable layer of a container, as a path on the host.
func (l *layers) find(uid metric.PodUID, id metric.ContainerID) (string, error) {
	if upper, ok := l.mounted[id]; ok {
		return upper, nil
	}
	pids := l.pods[uid][id]
	if len(pids) == 0 {
		return "", errEnded
	}
	var found string
	for _, pid := range pids[:min(maxProcesses, len(pids))] {
		data, err := os.ReadFile(path.Join(l.proc, strconv.Itoa(pid), "mountinfo"))
		if errors.Is(err, fs.ErrNotExist) || err != nil && !errors.Is(err, fs.ErrPermission) {
			continue // the process has ended
		}
		if err != nil {
			return "", fmt.Errorf("read the mounts of process %d: %w", pid, err)
		}
		upper, ok := rootLayer(parseOverlays(data))
		switch {
		case !ok: // the process has changed its root
		case !isBelow(upper, l.root):
			return "", fmt.Errorf("the layer %s is not below %s: set ContainerRoot to the runtime's directory", upper, l.root)
		case found != "" && upper != found:
			return "", fmt.Errorf("its processes have two roots: %s and %s", found, upper)
		default:
			found = upper
		}
	}
	if found == "" {
		return "", errors.New("the root of none of its processes is an overlay")
	}
	return found, nil
}

// overlay is a mounted overlay file system.
type overlay struct {
	point string // the mount point, as the process with this mountinfo sees it
	upper string // the writable layer, as in the options of the mount
}

// parseOverlays returns the overlays in a mountinfo (proc_pid_mountinfo(5)) that are mounted at
// their root and have a writable layer with an absolute path. It ignores malformed lines.
func parseOverlays(mountinfo []byte) []overlay {
	var list []overlay
	for line := range bytes.Lines(mountinfo) {
		if !bytes.Contains(line, []byte(" - overlay ")) {
			continue // fast path: most mounts are other file systems
		}
		m, ok := cgroupfs.ParseMount(string(line))
		if !ok || m.Root != "/" {
			continue
		}
		for option := range strings.SplitSeq(m.Options, ",") {
			upper, ok := strings.CutPrefix(option, "upperdir=")
			if upper = cgroupfs.UnescapePath(upper); ok && path.IsAbs(upper) {
				list = append(list, overlay{point: m.Point, upper: path.Clean(upper)})
			}
		}
	}
	return list
}

// rootLayer returns the writable layer of the overlay that is a process's root. The last mount
// at "/" hides those before it.
func rootLayer(list []overlay) (string, bool) {
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].point == "/" {
			return list[i].upper, true
		}
	}
	return "", false
}

// isBelow reports whether p is a path below dir.
func isBelow(p, dir string) bool { return strings.HasPrefix(p, strings.TrimSuffix(dir, "/")+"/") }
