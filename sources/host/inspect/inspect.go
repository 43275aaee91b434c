// Package inspect finds the cgroups of pods on this machine and judges each:
// whose it is, whether it is where it should be, and whether anything keeps it.
// The kubelet removes the cgroup of a pod only after the pod was deleted; a
// process that cannot be killed, or a kubelet that was restarted at a bad
// moment, leaves it behind, and the kubelet then reports one pod twice.
//
// It works in three steps that do not know of each other:
//
//	i, err := inspect.New(inspect.Options{})
//	tree, err := i.Read()                    // what the kernel has, in every hierarchy
//	report := inspect.Judge(tree, pods, now) // pure: tree and pods to judgements
//	removals := i.Clean(report)              // the only one that changes anything
//
// Pods is what a kubelet or an API server said of this node's pods, asked for
// after the tree was read; nil where there is nobody to ask. README.md lists the
// judgements and the conditions under which Clean removes a cgroup.
//
// The files: tree.go, process.go and limits.go read cgroups, processes and limits; pods.go has
// what is known of pods; judge.go, judge_containers.go and evidence.go judge pods and containers
// and give the reasons; report.go and table.go hold and print the result; clean.go removes
// cgroups; collector.go exports metrics.
package inspect

import (
	"path"
	"time"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/host/cgroupfs"
)

// Options says where to look. The zero Options looks at the whole of this
// machine.
type Options struct {
	// Mount is the directory that the cgroup hierarchies are mounted in, such
	// as /host/sys/fs/cgroup in a pod that has the host's there. Default: what
	// this process's mountinfo says.
	Mount string
	// Proc is where processes are looked up. Default "/proc".
	Proc string
	// Under limits the search, and what is cleaned, to a cgroup and those below
	// it. Default "/".
	Under metric.CgroupPath
	// Now reads our clock. Default time.Now.
	Now func() time.Time
}

func (o Options) withDefaults() Options {
	if o.Proc == "" {
		o.Proc = "/proc"
	}
	o.Under = metric.CgroupPath(path.Clean("/" + string(o.Under)))
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// Inspector reads and cleans the cgroups of pods on one machine. It holds
// nothing open between calls, and its methods may be called by several
// goroutines.
type Inspector struct {
	options     Options
	hierarchies cgroupfs.Hierarchies
	rmdir       removeFunc
}

// New finds the hierarchies. It is an error that there are none.
func New(o Options) (*Inspector, error) {
	o = o.withDefaults()
	hierarchies, err := cgroupfs.Find(o.Mount, o.Proc)
	if err != nil {
		return nil, err
	}
	return &Inspector{options: o, hierarchies: hierarchies, rmdir: removeDirectory}, nil
}

// Hierarchies returns what was found. It must not be changed.
func (i *Inspector) Hierarchies() cgroupfs.Hierarchies { return i.hierarchies }
