//go:build linux

package vitals

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/host/cgroupfs"
)

// Reader reads this machine. Its methods may be called concurrently; reads take turns. It has no
// goroutine. Between reads it keeps open what it read: about a dozen files a pod.
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
		looked time.Time // for them
	}
}

// cgroupDirs are where the hierarchies that are read are mounted.
type cgroupDirs struct {
	version *cgroupfs.Version
	// memoryDir is the mount of the hierarchy that counts memory. On version 2 it counts everything.
	memoryDir string
	// cpuacctDir and pidsDir are those of version 1 that count CPU time and tasks; empty if there is
	// none, and on version 2.
	cpuacctDir, pidsDir string
}

// New finds the hierarchies. It fails if there are none.
func New(o Options) (*Reader, error) {
	if o.Proc == "" {
		o.Proc = "/proc"
	}
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

// chooseDirs prefers version 1 if it counts memory: a controller belongs to one version only, and the
// other version may be mounted for its processes alone. memoryDir is empty if nothing counts memory.
func chooseDirs(all cgroupfs.Hierarchies) cgroupDirs {
	if dir := all.ControllerDir("memory"); dir != "" {
		return cgroupDirs{cgroupfs.V1, dir, all.ControllerDir("cpuacct"), all.ControllerDir("pids")}
	}
	if dir := all.UnifiedDir(); dir != "" {
		return cgroupDirs{version: cgroupfs.V2, memoryDir: dir}
	}
	return cgroupDirs{}
}

// Read reads everything now. What could not be read is nil in the summary and told by the error,
// beside the rest; the summary is never nil, and the caller's. Its pods are sorted by UID.
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

// Close closes all that is open. Reads fail from then on.
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

// round is one Read.
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

// Cgroups returns where the hierarchy is mounted in which memory is counted, and the cgroup of
// all pods in it, with a slash in front: empty if there is none, or more than one.
func (r *Reader) Cgroups() (mount string, pods metric.CgroupPath) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.closed {
		return r.memoryDir, ""
	}
	now := &round{Reader: r, fileReader: &r.mu.files, ctx: context.Background()}
	if roots := now.findRoots(); len(roots) == 1 {
		pods = roots[0].path
	}
	return r.memoryDir, pods
}

// exists reports whether there is a directory of that name.
func exists(dir string) bool {
	st, err := os.Stat(dir)
	return err == nil && st.IsDir()
}
