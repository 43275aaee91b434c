// Package host reads the usage of every cgroup of this machine at the moment of the call:
// the node, its pods and containers, and everything else that has a cgroup.
//
// Package cgroupfs finds the hierarchies. cAdvisor (github.com/google/cadvisor/lib) reads each
// cgroup, and describes the machine and its file systems. One Read lists the hierarchies and
// reads each cgroup once, in the caller's goroutine, so the first Read after a cgroup was
// created includes it. README.md lists the files, and says why cAdvisor's manager is not used.
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
// It computes no rates, does not use the API server, and does not choose between two
// cgroups of one pod. Each Sample has what processors need for that. Pods and containers are
// named by containerd if its socket answers, else by the UID and ID in the cgroup's path.
package host
