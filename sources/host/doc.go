// Package host reads the usage of every cgroup of this machine at the time of the call: the node,
// its pods and containers, and everything else that has a cgroup.
//
// Package cgroupfs finds the hierarchies. cAdvisor (github.com/google/cadvisor/lib) reads each
// cgroup, and describes the machine and its file systems. A Read lists the hierarchies and reads
// each cgroup once, in the caller's goroutine, so the first Read after a cgroup was created
// includes it. README.md lists the files, and explains why cAdvisor's manager is not used.
//
// # What it promises
//
// The time of a CPU counter is the time at which that counter was read. cAdvisor takes the time of
// a cgroup after it has read all its files, which is milliseconds late on a busy machine. Rates are
// computed from this one counter, so this package reads it itself, between two readings of the
// clock (see cpuReading).
//
// Absent is different from zero: libcontainer, which cAdvisor uses, returns zeros for a controller
// that does not exist. A metric is set only if its controller has the cgroup and was read without
// an error. A cgroup that was removed while it was read has no sample.
//
// A cgroup that cannot be read does not affect the others. Read returns errors in addition to the
// samples. Gaps returns what this machine, kernel or user can never provide.
//
// The package computes no rates, does not use the API server, and does not choose between two
// cgroups of one pod. Each Sample has what processors need for that. containerd gives the names of
// pods and containers if its socket answers; otherwise their names are the UID and the ID in the
// cgroup's path.
package host
