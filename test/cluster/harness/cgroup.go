//go:build linux

package harness

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A cgroup is a path below the root of every cgroup hierarchy. Everything that
// a cluster starts, pods included, stays in the cluster's cgroup, so it is
// always clear which processes belong to it.
type cgroup string

const cgroupPrefix = "/weir-cluster-"

// cgroupOf returns the cgroup of the cluster of that name.
func cgroupOf(cluster string) cgroup { return cgroup(cgroupPrefix + cluster) }

// child returns the cgroup with that name below g.
func (g cgroup) child(name string) cgroup { return g + cgroup("/"+name) }

// check returns an error if g is not the cgroup of a cluster or below one.
// Otherwise kill and remove could end this machine's own processes.
func (g cgroup) check() error {
	name, _, _ := strings.Cut(strings.TrimPrefix(string(g), cgroupPrefix), "/")
	if !strings.HasPrefix(string(g), cgroupPrefix) || !validName.MatchString(name) || string(g) != filepath.Clean(string(g)) {
		return fmt.Errorf("cgroup %q is not a cluster's", string(g))
	}
	return nil
}

// hierarchies returns the mount points of the cgroup hierarchies: of version
// 1's controllers and named hierarchies, and of version 2.
func hierarchies() ([]string, error) {
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("find cgroups: %w", err)
	}
	found := parseHierarchies(b)
	if len(found) == 0 {
		return nil, errors.New("find cgroups: no cgroup file system is mounted")
	}
	return found, nil
}

func parseHierarchies(mountinfo []byte) []string {
	var found []string
	for s := bufio.NewScanner(bytes.NewReader(mountinfo)); s.Scan(); {
		before, after, ok := strings.Cut(s.Text(), " - ")
		fields, kind := strings.Fields(before), strings.Fields(after)
		// Field 4 is the root of the mount. A bind mount of another cgroup is not a
		// hierarchy.
		if !ok || len(fields) < 5 || len(kind) < 1 || fields[3] != "/" {
			continue
		}
		if (kind[0] == "cgroup" || kind[0] == "cgroup2") && !slices.Contains(found, fields[4]) {
			found = append(found, fields[4])
		}
	}
	return found
}

// dirs returns the cgroup's folders, one for each hierarchy.
func (g cgroup) dirs() ([]string, error) {
	if err := g.check(); err != nil {
		return nil, err
	}
	roots, err := hierarchies()
	if err != nil {
		return nil, err
	}
	for i, r := range roots {
		roots[i] = filepath.Join(r, string(g))
	}
	return roots, nil
}

// make creates the cgroup in every hierarchy. With spread, its children get the
// controllers too; in version 2, the cgroup itself can then have no processes.
func (g cgroup) make(spread bool) error {
	dirs, err := g.dirs()
	if err != nil {
		return err
	}
	for _, d := range dirs {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return fmt.Errorf("make cgroup: %w", err)
		}
		// A new version 1 cpuset has no CPUs and no memory, and accepts no processes
		// until it has both.
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
			b, err := os.ReadFile(filepath.Join(filepath.Dir(d), file))
			if err != nil {
				continue // another hierarchy, or version 2, where empty means the parent's
			}
			if exists(filepath.Join(d, "tasks")) {
				if err := os.WriteFile(filepath.Join(d, file), b, 0o644); err != nil {
					return fmt.Errorf("make cgroup: %w", err)
				}
			}
		}
		if b, err := os.ReadFile(filepath.Join(d, "cgroup.controllers")); err == nil && spread {
			for _, c := range strings.Fields(string(b)) {
				if err := os.WriteFile(filepath.Join(d, "cgroup.subtree_control"), []byte("+"+c), 0o644); err != nil {
					return fmt.Errorf("make cgroup: hand on controller %s: %w", c, err)
				}
			}
		}
	}
	return nil
}

// processes returns the processes in the cgroup and below it.
func (g cgroup) processes() ([]int, error) {
	dirs, err := g.dirs()
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, d := range dirs {
		for _, sub := range tree(d) {
			b, err := os.ReadFile(filepath.Join(sub, "cgroup.procs"))
			if err != nil {
				continue // it is gone, or it is a threaded cgroup
			}
			for _, f := range strings.Fields(string(b)) {
				if pid, err := strconv.Atoi(f); err == nil && pid > 0 {
					pids = append(pids, pid)
				}
			}
		}
	}
	slices.Sort(pids)
	return slices.Compact(pids), nil
}

// tree returns a cgroup's folder and all folders below it, parents first.
func tree(dir string) []string {
	var found []string
	//nolint:errcheck // a folder that is gone needs no visit
	filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			found = append(found, path)
		}
		return nil
	})
	return found
}

// thaw thaws every frozen cgroup in g. In version 1, frozen processes do not
// end.
func (g cgroup) thaw() error {
	dirs, err := g.dirs()
	if err != nil {
		return err
	}
	for _, d := range dirs {
		for _, sub := range tree(d) {
			state := filepath.Join(sub, "freezer.state")
			if b, err := os.ReadFile(state); err != nil || strings.TrimSpace(string(b)) == "THAWED" {
				continue // another hierarchy, or nothing to do
			}
			if err := os.WriteFile(state, []byte("THAWED"), 0o644); err != nil && exists(state) {
				return fmt.Errorf("thaw cgroup: %w", err)
			}
		}
	}
	return nil
}

// kill ends every process in the cgroup and below it, and waits until there is
// none.
func (g cgroup) kill(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	if err := g.thaw(); err != nil {
		return err
	}
	var pids []int
	err := poll(ctx, 20*time.Millisecond, func() (bool, error) {
		var err error
		if pids, err = g.processes(); err != nil || len(pids) == 0 {
			return true, err
		}
		for _, pid := range pids {
			if err := unix.Kill(pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
				return false, fmt.Errorf("kill process %d: %w", pid, err)
			}
		}
		return false, nil
	})
	if err != nil {
		return fmt.Errorf("end processes of cgroup %s: %w (still there: %v)", g, err, pids)
	}
	return nil
}

// remove removes the cgroup and all cgroups below it.
func (g cgroup) remove(ctx context.Context) error {
	dirs, err := g.dirs()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for _, d := range dirs {
		var last error
		err := poll(ctx, 20*time.Millisecond, func() (bool, error) {
			last = nil
			for _, sub := range slices.Backward(tree(d)) {
				if err := os.Remove(sub); err != nil && !errors.Is(err, fs.ErrNotExist) {
					last = err // a process that was killed has not ended yet
				}
			}
			return last == nil, nil
		})
		if err != nil {
			return fmt.Errorf("remove cgroup: %w", last)
		}
	}
	return nil
}
