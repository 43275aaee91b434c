//go:build linux

package vitals

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/host/podcgroup"
)

const (
	// searchAfter is how long the kubepods cgroups that were found are taken to be all there are: they
	// are made when a kubelet starts.
	searchAfter = 10 * time.Second
	// searchDepth is how far down they are looked for. kind's lie four deep:
	// /docker/<id>/kubelet/kubepods.
	searchDepth = 5
)

// findRoots returns the kubepods cgroups. Usually it is one; a node whose cgroup driver was changed has
// the other's left over.
func (r *round) findRoots() []*cgroup {
	state := &r.mu
	if time.Since(state.looked) < searchAfter && !slices.ContainsFunc(state.roots, r.vanished) {
		return state.roots
	}
	known := state.roots
	state.roots, state.looked = nil, time.Now()
	for _, p := range r.search() {
		if i := slices.IndexFunc(known, func(c *cgroup) bool { return c.path == p && !r.vanished(c) }); i >= 0 {
			state.roots = append(state.roots, known[i])
			known = slices.Delete(known, i, i+1)
			continue
		}
		c, err := r.openCgroup(unix.AT_FDCWD, path.Join(r.mount, string(p)), p)
		if err != nil {
			r.problem("look for pods", ignoreGone(err))
			continue
		}
		state.roots = append(state.roots, c)
	}
	for _, c := range known {
		c.close()
	}
	return state.roots
}

// search looks for kubepods cgroups, and returns those that are nearest to the top: below a container of a
// pod may run another cluster.
func (r *round) search() (found []metric.CgroupPath) {
	level := []metric.CgroupPath{"/"}
	for depth := 0; depth < searchDepth && len(found) == 0; depth++ {
		var next []metric.CgroupPath
		for _, p := range level {
			entries, err := os.ReadDir(path.Join(r.mount, string(p)))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				r.problem("look for pods", fmt.Errorf("list cgroup %s: %w", p, err))
			}
			for _, e := range entries {
				if !e.IsDir() {
					continue
				}
				child := metric.CgroupPath(path.Join(string(p), e.Name()))
				next = append(next, child)
				if podcgroup.Parse(child).Kind == podcgroup.Root {
					found = append(found, child)
				}
			}
		}
		level = next
	}
	return found
}
