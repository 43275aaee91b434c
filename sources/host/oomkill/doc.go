// Package oomkill notices when the kernel kills processes of pods for memory, and finds whose limit it was.
//
// The kernel counts a kill (oom_kill) in the cgroup of the process, and a limit that was reached with nothing
// left to reclaim (oom) in the cgroup that has the limit. On cgroup version 2, memory.events adds what the
// cgroups below count, and memory.events.local does not. A pod's cgroup is still there when its container is
// gone, and so are its counters:
//
//	oom_kill of the pod rose            the kernel killed in the pod
//	oom rose, but not the local one     at the limit of a container
//	the same of a container             at the limit of a cgroup in it
//	the local oom of the pod rose       at the pod's own limit
//	that of a cgroup above it rose      at the limit of that slice
//	none rose                           the machine has no memory left, or only some of its NUMA nodes
//
// The kernel counts the limit, writes its log, and then counts the kill. If no limit rose with the kill, those that rose
// in the ten seconds before count, with a doubt (endlog.Earlier). Two slices that rose are another doubt. Without
// memory.events.local (before Linux 5.2), the limit is not known.
//
// A container that still has processes a second later goes on: only a child was killed. If its own oom_group_kill rose,
// it ends, although its processes may take longer to free their memory. A process that is killed alone may, too:
// package endlog retracts the kill of a child if SIGKILL ended the run within ten seconds.
//
// Version 1 does not add up oom_kill, and counts no oom. There only a child is noticed, and no limit is known.
//
// The kernel's log (/dev/kmsg), if it is read, has of a kill the process with its pid, its cgroup and the cgroup
// whose limit was reached. A limit that the counters show is not replaced by it. It completes them: with the container
// if its cgroup is gone, with the limit if they show none or a doubted one, and on version 1 with the kills in
// containers that ended.
//
//	watcher.go  the counters, and what they show
//	log.go      the kernel's log, and which kill a record is of
//	record.go   how a record is parsed
//
// A Look reads one file as long as nothing was killed. Every ten seconds it reads those of all pods, so that
// the counters of a limit are compared with recent ones.
package oomkill
