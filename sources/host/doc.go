// Package host reads the usage of every cgroup of this machine at the moment of the call:
// the node, its pods and containers, and everything else that has a cgroup.
//
// # How it reads
//
// Package cgroupfs finds the hierarchies. cAdvisor (github.com/google/cadvisor/lib)
// reads each cgroup, and describes the machine and its file systems.
// This package uses cAdvisor's handlers but not its manager: the manager keeps a goroutine
// and a timer for each cgroup, which continue after its Stop; if a read fails, it returns
// the previous value as if it were new; and it finds new cgroups by inotify. Here one Read
// lists the hierarchies and reads each cgroup once, in the caller's goroutine, so the first
// Read after a cgroup was created includes it.
//
// # What it promises
//
// The time of a CPU counter is when that counter was read. cAdvisor takes the time of a
// cgroup after it has read all its files, which is milliseconds late on a busy machine. So
// this package reads the one counter from which rates are computed itself, between two
// readings of the clock (see cpuReading).
//
// Absent is not zero: libcontainer, below cAdvisor, returns zeros for a controller that does
// not exist. A metric is set only if its controller has the cgroup and was read without an
// error. A cgroup that was removed while it was read has no sample.
//
// A cgroup that cannot be read does not affect the others. Read returns errors beside the
// samples. Gaps returns what this machine, kernel or user can never supply.
//
// # What it does not do
//
// It computes no rates, does not use the API server, and does not choose between two
// cgroups of one pod. Each Sample has what processors need for that.
//
// The names of pods and containers come from containerd if its socket answers. Otherwise a
// pod is named by its UID and a container by its ID, from the cgroup's path (package
// podcgroup).
//
// # Files
//
//	host.go       the Host: one read of all cgroups, or of some
//	options.go    options, and their parser for the command line
//	cgroups.go    finds the hierarchies and lists the cgroups in them
//	meter.go      one cgroup, read through cAdvisor; its CPU counter and that counter's time
//	sample.go     sets metrics from what was read
//	node.go       the node: /proc, disks, file systems, CPUs
//	network.go    the network of the node and of pods
//	processes.go  how many processes and open files each cgroup has
//	runtime.go    the names of pods and containers, from containerd
package host
