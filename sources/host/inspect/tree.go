package inspect

import (
	"time"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/host/podcgroup"
)

// Tree is the cgroups of pods on one machine as one walk found them.
type Tree struct {
	// Began and Ended bracket the walk, by our clock.
	Began, Ended time.Time
	Hierarchies  []Hierarchy
	// Under is the cgroup that was looked below: "/" for everywhere.
	Under metric.CgroupPath
	// Roots are the kubepods cgroups, sorted.
	Roots []metric.CgroupPath
	// Pods are the cgroups of pods, sorted by path.
	Pods []*Cgroup
	// Strays are cgroups of pods' containers outside of any pod's: containerd and
	// the kubelet were told different drivers. They are sorted by path.
	Strays []*Cgroup
	// Problems are the directories and files that could not be read. What has
	// vanished meanwhile is none.
	Problems []error
}

// Cgroup is a cgroup of a pod or of a container, in whichever hierarchies hold
// it. On version 1 each hierarchy is a tree of its own, and a cgroup may survive
// in one of them only.
type Cgroup struct {
	podcgroup.Ref
	Path metric.CgroupPath
	// In are the hierarchies that hold it, in the order of Tree.Hierarchies.
	In []Place
	// PIDs are the processes in it and below, in any hierarchy, in ascending order.
	PIDs []int
	// Unnamed counts processes that the kernel lists without a number, because
	// they belong to a PID namespace that is not ours to see.
	Unnamed int
	// Held says that the kernel counts something running in it or below,
	// whether or not it names a process.
	Held bool
	// Unread says that some of its processes could not be read: that none was
	// found proves nothing.
	Unread bool
	// Frozen says that its processes are stopped by the freezer.
	Frozen bool
	// Limits are what it may use.
	Limits Limits
	// Made is the earliest modification time of its directories. A directory's
	// time moves when a child comes or goes, never before its birth: the cgroup
	// is at least as old. Touched is the latest.
	Made, Touched time.Time
	// Processes are those of PIDs that are still there, the oldest first.
	Processes []Process
	// Containers are the container cgroups below a pod's, sorted by path.
	Containers []*Cgroup
}

// Place is where a hierarchy holds a cgroup.
type Place struct {
	// Hierarchy is an index into Tree.Hierarchies.
	Hierarchy int
	// Inode tells the directory from a later one of the same path.
	Inode uint64
}

// Count returns how many processes are in c and below.
func (c *Cgroup) Count() int { return len(c.PIDs) + c.Unnamed }

// Vacant reports whether it is certain that nothing runs in c or below.
func (c *Cgroup) Vacant() bool { return c.Count() == 0 && !c.Held && !c.Unread }

// hierarchies returns the names of those that hold c.
func (c *Cgroup) hierarchies(all []Hierarchy) []string {
	names := make([]string, 0, len(c.In))
	for _, at := range c.In {
		names = append(names, all[at.Hierarchy].Name)
	}
	return names
}
