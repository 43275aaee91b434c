// Package eviction decides which pod a node that runs out of something has to give
// up: the decisions of the kubelet's eviction manager, with the whole derivation of
// each.
//
// It is pure. Decide takes thresholds, the node's disks and pods, a summary of what is
// in use, what is remembered of earlier decisions, and the time; it returns what to do and
// why: each figure against each threshold, the conditions, the whole ranking with the keys
// it was made by. It asks no clock, no kernel and no API server, so the same code decides
// live, in a dry run and in a test.
//
// A round is two calls where something other than pods can be given up first:
//
//	d := eviction.Decide(in)
//	if len(d.Reclaim) > 0 {
//		... remove what d.Reclaim names, read the summary again ...
//		d = d.AfterReclaim(summary, err)
//	}
//	... carry out d.Kills ...
//	in.State = d.State
//
// The rules are those of Kubernetes 1.36 (pkg/kubelet/eviction), to the order of the pods
// and the text of the messages; the vectors in testdata/eviction hold it to that. Where
// the kubelet leaves an order to chance, there is a fixed one here: hard thresholds
// before soft ones, then as Signals lists them; pods that are alike, by name.
//
// In some things it goes beyond. It knows the kernel's pressure stall figures as signals
// (see ParsePressure), and lets their averages settle after a pod went (Input.Evicted). It evicts
// nobody for a figure that cannot be right: see Doubt; Settings.Parity switches that off. And it
// passes over the pod that decides (Input.Self), and those that were asked to go and cannot
// (Input.Blocked).
package eviction
