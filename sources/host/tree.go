//go:build linux

package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/weir-metrics/weir/metric"
)

// place is where a cgroup was found in one walk of the hierarchies.
type place struct {
	path metric.CgroupPath
	// has are the controllers whose hierarchy holds the cgroup. Version 1
	// hierarchies are trees of their own: a cgroup may be in some only.
	has controller
	// home is the directory in the first hierarchy (in the order of
	// controllers) that holds the cgroup, and inode is that directory's.
	// Its processes are those of home.
	home  string
	inode uint64
	root  int // index of home's hierarchy
}

// walk lists the cgroups at and below each of from that the options include,
// sorted by path, with what could not be listed.
func walk(m *mounts, o *Options, from ...metric.CgroupPath) ([]place, []error) {
	w := walker{mounts: m, options: o, found: map[metric.CgroupPath]*place{}}
	for i := range m.roots {
		for _, p := range from {
			w.visit(i, p)
		}
	}
	places := make([]place, 0, len(w.found))
	for _, p := range w.found {
		places = append(places, *p)
	}
	slices.SortFunc(places, func(a, b place) int { return strings.Compare(string(a.path), string(b.path)) })
	return places, w.errs
}

type walker struct {
	mounts  *mounts
	options *Options
	found   map[metric.CgroupPath]*place
	errs    []error
}

func (w *walker) visit(root int, p metric.CgroupPath) {
	h := w.mounts.roots[root]
	dir := path.Join(h.dir, string(p))
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR {
		if err != nil && !errors.Is(err, unix.ENOENT) {
			w.errs = append(w.errs, fmt.Errorf("list cgroup %s: %w", dir, err))
		}
		return
	}
	if w.options.includes(p) {
		w.add(root, p, dir, st.Ino, h.bits)
	}
	// A directory's links are its name, its "." and each child's "..": with two
	// it has no children, and most cgroups are leaves. File systems that do not
	// count say one.
	if st.Nlink == 2 || !w.options.leadsTo(p) {
		return
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		w.errs = append(w.errs, fmt.Errorf("list cgroup %s: %w", dir, err))
	}
	for _, e := range entries {
		if e.IsDir() {
			w.visit(root, metric.CgroupPath(path.Join(string(p), e.Name())))
		}
	}
}

func (w *walker) add(root int, p metric.CgroupPath, dir string, inode uint64, bits controller) {
	at, ok := w.found[p]
	if !ok {
		at = &place{path: p, home: dir, inode: inode, root: root}
		w.found[p] = at
	}
	if w.mounts.v2 {
		bits &= enabled(dir)
	}
	at.has |= bits
}

// enabled returns which controllers a version 2 cgroup has. CPU time is counted
// in all of them.
func enabled(dir string) controller {
	has := cpuacct
	data, err := os.ReadFile(path.Join(dir, "cgroup.controllers"))
	if err != nil {
		return has
	}
	for name := range strings.FieldsSeq(string(data)) {
		for _, c := range controllers[1:] {
			if c.v2 == name {
				has |= c.bit
			}
		}
	}
	return has
}

// same reports whether the cgroup is still there, and no other in its place.
func (p *place) same() bool {
	var st unix.Stat_t
	return unix.Stat(p.home, &st) == nil && st.Ino == p.inode
}

// parent returns the path above p; "/" is its own.
func parent(p metric.CgroupPath) metric.CgroupPath {
	return metric.CgroupPath(path.Dir(string(p)))
}
