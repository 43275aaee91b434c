package inspect

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/host/cgroupfs"
	"github.com/weir-metrics/weir/sources/host/podcgroup"
)

// Removal is the result of removing one cgroup.
type Removal struct {
	Path metric.CgroupPath `json:"path"`
	// Removed are the hierarchies from which it was removed.
	Removed []string `json:"removed,omitempty"`
	// Failed is why it still exists in some hierarchy; empty if it is gone.
	Failed string `json:"failed,omitempty"`
}

// Failed returns how many cgroups Clean could not remove in every hierarchy.
func (r *Report) Failed() (n int) {
	for i := range r.Removals {
		if r.Removals[i].Failed != "" {
			n++
		}
	}
	return n
}

// Clean removes the removable cgroups of the report, with the cgroups below them, in every
// hierarchy. Before that it checks each one again in every hierarchy. If a process is inside now,
// or another cgroup has the same path, Clean does not remove the cgroup. Clean returns the results
// and adds them to the report.
func (i *Inspector) Clean(r *Report) []Removal {
	for n := range r.Pods {
		if p := &r.Pods[n]; p.Removable && p.cgroup != nil {
			r.Removals = append(r.Removals, i.remove(p.cgroup))
		}
	}
	return r.Removals
}

// remove removes one cgroup in every hierarchy.
func (i *Inspector) remove(c *Cgroup) Removal {
	done := Removal{Path: c.Path}
	err := i.checkRemovable(c)
	for _, at := range c.Locations {
		if err != nil {
			break
		}
		if err = i.removeIn(c, at); err == nil {
			done.Removed = append(done.Removed, at.Name)
		}
	}
	if err != nil {
		done.Failed = err.Error()
	}
	return done
}

// checkRemovable returns an error if c must not be removed.
func (i *Inspector) checkRemovable(c *Cgroup) error {
	if c.Kind != podcgroup.Pod || podcgroup.Parse(c.Path) != c.Ref {
		return errors.New("it is not the cgroup of a pod")
	}
	if under := i.options.Under; under != "/" && c.Path != under && !strings.HasPrefix(string(c.Path), string(under)+"/") {
		return fmt.Errorf("it is outside of %s", under)
	}
	for _, at := range c.Locations {
		dir, err := openJudged(c, at)
		if cgroupfs.IsRemoved(err) {
			continue
		}
		if err == nil {
			err = checkEmpty(dir, at.Unified)
			closeRoot(dir)
		}
		if err != nil {
			return fmt.Errorf("in %s: %w", at.Name, err)
		}
	}
	return nil
}

// openJudged opens the directory of c in one hierarchy. It follows no link, and returns an error if
// the inode is not the one that was judged.
func openJudged(c *Cgroup, at Location) (*os.Root, error) {
	dir, err := os.OpenRoot(at.Dir)
	if err != nil {
		return nil, err
	}
	for name := range strings.SplitSeq(strings.TrimPrefix(string(c.Path), "/"), "/") {
		next, err := openDirectory(dir, name)
		closeRoot(dir)
		if err != nil {
			return nil, err
		}
		dir = next
	}
	info, err := dir.Stat(".")
	if err == nil && inode(info) != at.Inode {
		err = errors.New("it was removed and created again after it was judged")
	}
	if err != nil {
		closeRoot(dir)
		return nil, err
	}
	return dir, nil
}

// openDirectory opens a directory in dir. A link to a directory is an error.
func openDirectory(dir *os.Root, name string) (*os.Root, error) {
	info, err := dir.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s is not a directory", name)
	}
	return dir.OpenRoot(name)
}

// checkEmpty returns an error if a process is in dir or below it.
func checkEmpty(dir *os.Root, unified bool) error {
	procs, err := dir.ReadFile("cgroup.procs")
	switch {
	case cgroupfs.IsRemoved(err), errors.Is(err, syscall.EOPNOTSUPP) && unified: // the kernel refuses to remove the cgroup if it is in use
	case err != nil:
		return fmt.Errorf("read its processes: %w", err)
	case len(strings.TrimSpace(string(procs))) > 0:
		return fmt.Errorf("processes have started in it: %s", strings.Join(strings.Fields(string(procs)), ", "))
	}
	return eachBelow(dir, func(below *os.Root, _ string) error { return checkEmpty(below, unified) })
}

// eachBelow opens each directory in dir and calls do with it.
func eachBelow(dir *os.Root, do func(below *os.Root, name string) error) error {
	entries, err := fs.ReadDir(dir.FS(), ".")
	if err != nil && !cgroupfs.IsRemoved(err) { // a removed directory has no children
		return fmt.Errorf("list it: %w", err)
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		below, err := openDirectory(dir, e.Name())
		if cgroupfs.IsRemoved(err) {
			continue
		}
		if err != nil {
			return err
		}
		err = do(below, e.Name())
		closeRoot(below)
		if err != nil {
			return err
		}
	}
	return nil
}

// removeIn removes c in one hierarchy, its deepest children first.
func (i *Inspector) removeIn(c *Cgroup, at Location) error {
	dir, err := openJudged(c, at)
	if cgroupfs.IsRemoved(err) {
		return nil // someone else removed it
	}
	if err != nil {
		return fmt.Errorf("in %s: %w", at.Name, err)
	}
	err = i.removeBelow(dir)
	closeRoot(dir)
	if err == nil {
		var parent *os.Root
		if parent, err = openUnder(at.Dir, metric.CgroupPath(path.Dir(string(c.Path)))); err == nil {
			err = i.rmdir(parent, path.Base(string(c.Path)))
			closeRoot(parent)
		}
		err = cgroupfs.IgnoreRemoved(err)
	}
	if err != nil {
		return fmt.Errorf("in %s: %w", at.Name, explainRefusal(err))
	}
	return nil
}

// removeBelow removes the cgroups below dir. The kernel refuses (EBUSY) while a process is in one.
func (i *Inspector) removeBelow(dir *os.Root) error {
	return eachBelow(dir, func(below *os.Root, name string) error {
		if err := i.removeBelow(below); err != nil {
			return err
		}
		return cgroupfs.IgnoreRemoved(i.rmdir(dir, name))
	})
}

// explainRefusal adds to an error of rmdir an explanation for cgroups.
func explainRefusal(err error) error {
	switch {
	case errors.Is(err, syscall.EBUSY):
		return fmt.Errorf("a process or a cgroup was added to it meanwhile: %w", err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("removing cgroups needs root: %w", err)
	case errors.Is(err, syscall.EROFS):
		return fmt.Errorf("the hierarchy is mounted read-only: %w", err)
	}
	return err
}
