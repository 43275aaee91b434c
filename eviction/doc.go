// Package eviction decides which pod a node evicts when it runs out of a resource. It makes the
// same decisions as the kubelet's eviction manager, and returns the full derivation of each.
//
// The package is pure. Decide takes thresholds, the layout of the disks, the pods, a summary of
// usage, the state of the decision before, and the time. It returns what to do and why: each figure
// with its threshold, the node conditions, and the ranking with its keys. It reads no clock and
// calls neither the kernel nor the API server. The same code therefore decides on a live node, in a
// dry run and in a test.
//
// A round needs two calls if unused containers or images can be removed first:
//
//	d := eviction.Decide(in)
//	if len(d.Reclaim) > 0 {
//		... remove what d.Reclaim names, read the summary again ...
//		d = d.AfterReclaim(summary, err)
//	}
//	... carry out d.Kills ...
//	in.State = d.State
//
// The rules are those of Kubernetes 1.37 (pkg/kubelet/eviction), including the order of the pods
// and the text of the messages. The vectors in testdata/eviction come from the kubelet's code and
// verify this. Where the kubelet's order is random, this package has a fixed order: hard thresholds
// before soft ones, then the order of Signals; pods with equal keys by name.
//
// What differs from the kubelet is listed in docs/eviction-rules.md.
//
// Files:
//
//   - input.go: Settings, Input, and the DecisionState that one decision passes to the next.
//   - decide.go: Decide, and AfterReclaim for the second half of a round.
//   - decision.go: Decision and its outcomes.
//   - signal.go, threshold.go: signals; thresholds, their order, and those derived for containerfs.
//   - parse.go: thresholds from a configuration, or all mistakes in it.
//   - observe.go: the signals' figures in a summary, and why a figure cannot be right.
//   - rank.go: the order in which pods are evicted, and the usage that decides the order.
//   - limits.go: the requests of a pod; pods that exceed a limit of local storage.
//   - critical.go: pods that are never evicted.
//   - admit.go: which new pods a node under pressure admits.
//   - contention.go: the node conditions of KEP-5394, for which no pod is evicted.
//   - message.go: the kubelet's messages and annotations.
package eviction
