// Package host reads what every cgroup of this machine uses, at the moment it
// is asked: the node, its pods and containers, and whatever else the kernel
// accounts for separately.
//
// # How it reads
//
// Package cgroupfs finds the hierarchies. cAdvisor (github.com/google/cadvisor/lib)
// reads each cgroup, and describes the machine and its file systems.
// This package uses cAdvisor's handlers and leaves its manager aside: the
// manager keeps a goroutine and a timer for each cgroup, which outlive its
// Stop; it serves the last value it has, as if it were new, when a read asked
// for now has failed; and it learns of new cgroups from inotify. Here one Read lists the
// hierarchies and reads each cgroup once, in the goroutine that asked, so that a
// cgroup is seen by the first Read after it was made.
//
// # What it promises
//
// The time of a CPU counter is when that counter was read. cAdvisor stamps a
// cgroup after all its files are read, which on a busy machine is milliseconds
// late; so the one counter from which rates are computed is read here, between
// two looks at the clock (see counter).
//
// Absent is not zero: libcontainer, below cAdvisor, reads a controller that is not there
// as zeros. A metric is set only where its controller has the cgroup and was
// read without an error, and a cgroup that vanished while it was read is
// dropped.
//
// A cgroup that cannot be read costs only itself. Read returns what went
// wrong beside the rest; Gaps says in plain words what this machine, kernel or
// user cannot supply at all.
//
// # What it leaves to others
//
// It computes no rates, knows no API server, and does not choose between two
// cgroups of one pod. The Sample of each says what processors need for that.
//
// The kubelet's names for pods and containers come from containerd where its
// socket answers. Otherwise a pod goes by its UID and a container by its ID, as
// its cgroup's path has them (package podcgroup).
//
// # Files
//
//	host.go       the Host: one read of all cgroups, or of some
//	options.go    options, and how the command line spells them
//	cgroups.go    where the hierarchies are, and which cgroups are in them
//	meter.go      one cgroup, read through cAdvisor; its CPU counter and that counter's time
//	sample.go     what was read, as metrics
//	node.go       the node: /proc, disks, file systems, CPUs
//	network.go    the network of the node and of pods
//	processes.go  how many processes and open files each cgroup has
//	runtime.go    the names of pods and containers, from containerd
package host
