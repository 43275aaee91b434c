//go:build linux

package vitals

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/host/cgroupfs"
)

// Reader reads this machine. Its methods may be called concurrently; one read runs at a time. It
// starts no goroutine. The files that it has read stay open: about twelve for each pod, and with
// version 2 about twenty after a read at the depth Containers.
type Reader struct {
	options Options
	cgroupDirs
	disks diskRoots

	mu struct {
		sync.Mutex
		files  fileReader
		closed bool
		node   nodeFiles
		roots  []*cgroup // the kubepods cgroups
		looked time.Time // the time of the last search for roots
	}
}

// cgroupDirs are the mount points of the hierarchies that are read.
type cgroupDirs struct {
	version *cgroupfs.Version
	// memoryDir is the mount point of the hierarchy that counts memory; on version 2 it is that of the
	// only hierarchy.
	memoryDir string
	// cpuacctDir and pidsDir are the mount points of the version 1 hierarchies that count CPU time and
	// tasks. They are empty if there is none, and on version 2.
	cpuacctDir, pidsDir string
}

// New finds the hierarchies. It fails if there are none.
func New(o Options) (*Reader, error) {
	o.Proc = cmp.Or(o.Proc, "/proc")
	found, err := cgroupfs.Find(o.Mount, o.Proc)
	if err != nil {
		return nil, err
	}
	r := &Reader{options: o, cgroupDirs: chooseDirs(found), disks: findDiskRoots(&o)}
	if r.memoryDir == "" {
		return nil, fmt.Errorf("find memory cgroups: none of the %d hierarchies is version 2 or version 1's memory controller", len(found))
	}
	r.mu.files.buffer = make([]byte, initialBuffer)
	r.mu.node = newNodeFiles(o.Proc)
	return r, nil
}

// chooseDirs chooses version 1 if it has the memory controller, else version 2. A controller
// belongs to only one version. memoryDir is empty if no hierarchy counts memory.
func chooseDirs(all cgroupfs.Hierarchies) cgroupDirs {
	if dir := all.ControllerDir("memory"); dir != "" {
		return cgroupDirs{cgroupfs.V1, dir, all.ControllerDir("cpuacct"), all.ControllerDir("pids")}
	}
	if dir := all.UnifiedDir(); dir != "" {
		return cgroupDirs{version: cgroupfs.V2, memoryDir: dir}
	}
	return cgroupDirs{}
}

// Read reads the machine. A figure that could not be read is nil in the summary, and the error
// joins the reasons. The summary is never nil, and the caller may change it. Its pods are sorted by
// UID.
func (r *Reader) Read(ctx context.Context, d Depth) (*stats.Summary, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &stats.Summary{Node: stats.NodeStats{NodeName: r.options.Node}, Pods: []stats.PodStats{}}
	if r.mu.closed {
		return s, fmt.Errorf("read vitals: %w", os.ErrClosed)
	}
	now := &round{Reader: r, fileReader: &r.mu.files, ctx: ctx, depth: d}
	now.readNode(&s.Node)
	if d > Node {
		now.readPods(s)
	}
	return s, now.errs.Err()
}

// Processes returns the process IDs of those containers of a pod that Options.Pod names. It returns an
// error if there are none, or if they are not known.
func (r *Reader) Processes(uid metric.PodUID) (pids []int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.closed {
		return nil, fmt.Errorf("list processes: %w", os.ErrClosed)
	}
	now := &round{Reader: r, fileReader: &r.mu.files, ctx: context.Background()}
	var known PodNames
	if r.options.Pod != nil {
		known, _ = r.options.Pod(uid)
	}
	for _, root := range now.findRoots() {
		below, err := now.processesOf(uid, known.Containers, root)
		now.addError("list processes of pod "+string(uid), err)
		pids = append(pids, below...)
	}
	if err := now.errs.Err(); err != nil || len(pids) > 0 {
		return pids, err
	}
	return nil, fmt.Errorf("list processes: no known container of pod %s has any that this process sees", uid)
}

// Close closes all files. Later reads return an error.
func (r *Reader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.closed = true
	r.mu.node.close()
	for _, c := range r.mu.roots {
		c.close()
	}
	r.mu.roots = nil
	return nil
}

// round is the state of one Read.
type round struct {
	*Reader
	*fileReader
	ctx   context.Context
	depth Depth
	errs  cgroupfs.ErrorList
}

func (r *round) addError(doing string, err error) {
	if err != nil {
		r.errs.Add(fmt.Errorf("%s: %w", doing, err))
	}
}

// Cgroups returns the mount point of the hierarchy that counts memory, and the kubepods cgroup in
// it, such as "/kubepods". If there are several, it is the one whose pods have processes or, if no pod has any,
// the one that has pods, as in a Read. pods is empty if there is none, or if that is true of several.
func (r *Reader) Cgroups() (mount string, pods metric.CgroupPath) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.closed {
		return r.memoryDir, ""
	}
	now := &round{Reader: r, fileReader: &r.mu.files, ctx: context.Background(), depth: Pods}
	roots := now.findRoots()
	if len(roots) > 1 {
		roots = chooseRoots(roots, now.readPodsOf(roots))
	}
	if len(roots) == 1 {
		pods = roots[0].path
	}
	return r.memoryDir, pods
}

// exists reports whether dir is a directory.
func exists(dir string) bool {
	st, err := os.Stat(dir)
	return err == nil && st.IsDir()
}
