// Package simulator is a cluster of kubelets that do not exist, whose use of
// CPU is known exactly at every nanosecond.
//
// A Fleet is built once from Options and is a pure function of time from then
// on: Append writes what a node's kubelet would answer at now, Truth says what
// was really used between two moments. Nothing in a Fleet ticks, so a test may
// ask for any moment, in any order, from several goroutines.
//
// Counters are integers of nanoseconds and strictly non-linear in time (ramps,
// bursts and steps whose periods share nothing with a scrape interval): a
// reader that divides by the wrong window gets a wrong rate, where a linear
// counter would forgive it.
//
// Samples age as a kubelet's do. Every cgroup is read at its own housekeeping
// moment, each 10 to 15 s, and served with that moment's time until the next.
//
// Faults (restarts, second cgroups, clocks that step, nodes that hang) are
// written in a small language, see Parse, and are part of the function: Truth
// knows them too.
//
// Server is the shell: TLS, HTTP and a clock. Package seed writes the same
// nodes and pods to an API server. Package simulator imports nothing of weir's,
// so that an error in weir's vocabulary cannot hide itself in its own test.
package simulator
