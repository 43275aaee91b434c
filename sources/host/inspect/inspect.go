// Package inspect finds the cgroups of pods on this machine and judges each: to which pod it
// belongs, whether it is at the right place, and whether it has processes. The kubelet removes the
// cgroup of a pod only after the pod was deleted. If a process cannot be killed, or the kubelet
// restarts at the wrong time, the cgroup stays, and the kubelet then reports one pod twice.
//
// There are three independent steps:
//
//	i, err := inspect.New(inspect.Options{})
//	tree, err := i.Read()                    // the cgroups, in every hierarchy
//	report := inspect.Judge(tree, pods, now) // a pure function
//	removals := i.Clean(report)              // the only step that changes anything
//
// Pods is the list of this node's pods from a kubelet or an API server, requested after the tree
// was read; nil if there is none. README.md lists the files, the judgements and the conditions
// under which Clean removes a cgroup.
package inspect

import (
	"cmp"
	"os"
	"path"
	"time"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/host/cgroupfs"
)

// Options has the directories to read. The zero Options means the whole of this machine.
type Options struct {
	// Mount is the directory in which the cgroup hierarchies are mounted, for example
	// /host/sys/fs/cgroup in a pod that has the host's directory mounted there. Default: from this
	// process's mountinfo.
	Mount string
	// Proc is the directory of processes. Default "/proc".
	Proc string
	// Under limits Read and Clean to a cgroup and those below it. Default "/".
	Under metric.CgroupPath
	// Now returns the current time. Default time.Now.
	Now func() time.Time
}

func (o Options) withDefaults() Options {
	o.Proc = cmp.Or(o.Proc, "/proc")
	o.Under = metric.CgroupPath(path.Clean("/" + string(o.Under)))
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// Inspector reads and cleans the cgroups of pods on one machine. It keeps no file open between
// calls. Several goroutines may call its methods.
type Inspector struct {
	options     Options
	hierarchies cgroupfs.Hierarchies
	rmdir       func(dir *os.Root, name string) error // it removes one empty cgroup
}

// New finds the hierarchies. It fails if there are none.
func New(o Options) (*Inspector, error) {
	o = o.withDefaults()
	hierarchies, err := cgroupfs.Find(o.Mount, o.Proc)
	if err != nil {
		return nil, err
	}
	return &Inspector{options: o, hierarchies: hierarchies, rmdir: (*os.Root).Remove}, nil
}
