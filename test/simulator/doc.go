// Package simulator simulates the kubelets of a cluster. The true CPU usage of
// every container is known at every nanosecond.
//
// New builds a Fleet from Options. From then on the Fleet is a pure function of
// time: Append writes what a node's kubelet answers at a moment, and Truth
// returns the true usage between two moments. Nothing in a Fleet runs on its
// own, so a test may ask for any moment, in any order, from several goroutines.
//
// Counters are integers of nanoseconds and never linear in time. They consist
// of ramps, bursts and steps. No period of these divides a usual scrape
// interval or is divided by one, so a reader that divides by the wrong window
// gets a wrong rate. With a linear counter the error would not be visible.
//
// Samples are as old as a kubelet's. Every cgroup has its own housekeeping
// times, 10 to 15 s apart, and is served with the time of the last one until
// the next.
//
// Faults (restarts, second cgroups, clocks that jump, nodes that hang) are
// written in a small language, see Parse. They are part of the function, so
// Truth includes them.
//
// Server adds TLS, HTTP and a clock. Package seed writes the same nodes and
// pods to an API server. Package simulator imports nothing of weir, so an error
// in weir's types cannot hide itself in its own test.
package simulator
