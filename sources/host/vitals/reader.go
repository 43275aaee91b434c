//go:build linux

package vitals

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/host/inspect"
	"github.com/weir-metrics/weir/sources/host/problems"
)

// Reader reads this machine. Its methods may be called concurrently; reads take turns. It has no
// goroutine. Between reads it keeps open what it read: about a dozen files a pod.
type Reader struct {
	options Options
	trees
	disks diskRoots

	mu struct {
		sync.Mutex
		files  files
		closed bool
		node   node
		roots  []*cgroup // the kubepods cgroups
		looked time.Time // for them
	}
}

// trees are where the hierarchies are mounted that are read.
type trees struct {
	// mount is the directory of the one in which memory is counted, and version its version.
	mount   string
	version *version
	// cpu and tasks are those in which version 1 counts the time of processors and tasks; empty where
	// there is none, and on version 2, where all is in memory's.
	cpu, tasks string
}

// New finds the hierarchies. It fails if there are none.
func New(o Options) (*Reader, error) {
	if o.Proc == "" {
		o.Proc = "/proc"
	}
	found, err := inspect.New(inspect.Options{Mount: o.Mount, Proc: o.Proc})
	if err != nil {
		return nil, err
	}
	r := &Reader{options: o, trees: choose(found.Hierarchies()), disks: findDiskRoots(&o)}
	if r.mount == "" {
		return nil, fmt.Errorf("find memory cgroups: among %d hierarchies is neither version 2 nor version 1's memory controller", len(found.Hierarchies()))
	}
	r.mu.files.buffer = make([]byte, size)
	r.mu.node = newNode(o.Proc)
	return r, nil
}

// choose takes version 1 for memory where both versions are mounted: a controller is in one only,
// and the other may still be there for its processes.
func choose(hierarchies []inspect.Hierarchy) (t trees) {
	at := func(controller string) string {
		for _, h := range hierarchies {
			if !h.Unified && slices.Contains(strings.Split(h.Name, ","), controller) {
				return h.Dir
			}
		}
		return ""
	}
	if t.mount = at("memory"); t.mount != "" {
		t.version, t.cpu, t.tasks = &versions[0], at("cpuacct"), at("pids")
		return t
	}
	for _, h := range hierarchies {
		if h.Unified {
			return trees{mount: h.Dir, version: &versions[1]}
		}
	}
	return trees{}
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
	now := &round{Reader: r, files: &r.mu.files, ctx: ctx, depth: d}
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
	*files
	ctx   context.Context
	depth Depth
	errs  problems.List
}

func (r *round) problem(doing string, err error) {
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
		return r.mount, ""
	}
	now := &round{Reader: r, files: &r.mu.files, ctx: context.Background()}
	if roots := now.findRoots(); len(roots) == 1 {
		pods = roots[0].path
	}
	return r.mount, pods
}

// exists reports whether there is a directory of that name.
func exists(dir string) bool {
	st, err := os.Stat(dir)
	return err == nil && st.IsDir()
}
