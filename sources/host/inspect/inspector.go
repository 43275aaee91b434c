package inspect

import (
	"path"
	"time"

	"github.com/weir-metrics/weir/metric"
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
	hierarchies []Hierarchy
	rmdir       rmdir
}

// New finds the hierarchies. It is an error that there are none.
func New(o Options) (*Inspector, error) {
	o = o.withDefaults()
	hierarchies, err := o.find()
	if err != nil {
		return nil, err
	}
	return &Inspector{options: o, hierarchies: hierarchies, rmdir: removeDirectory}, nil
}

// Hierarchies returns what was found. It must not be changed.
func (i *Inspector) Hierarchies() []Hierarchy { return i.hierarchies }
