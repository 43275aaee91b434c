// Package guard runs eviction on one node. Each notice of the kernel leads to one round: read the
// node, decide, and carry out the decision.
//
//	g, err := guard.New(guard.Options{Read: ..., Settings: ..., Executor: ...})
//	go g.Run(ctx)
//	... g.Last() is the newest round, g.RecentActions() are the newest rounds that did something ...
//
// One goroutine decides and acts, so no other pod is chosen while a pod terminates, as in the
// kubelet. There is one exception: the wait for a pod with a soft threshold's grace period ends
// when a hard threshold must be acted on. Last may be called at any time. A round is published
// when it has decided, and again when its actions are done.
//
// Rounds also start at known times: when a grace period ends, when a limit allows the next
// eviction, and at least every 10 s (notify.Options.MaxInterval). The kernel gives no notice of
// disks and process ids. Options.Poll reads them every second, and a change of a threshold starts
// a round.
//
// If something cannot be read, the round says so. Without a summary nothing is decided. Without
// the list of pods no pod is evicted. Conditions and grace periods stay as they are.
//
// A pod that a PodDisruptionBudget protects is tried again later, after increasing waits. Meanwhile
// it is skipped and the next pod in the ranking is evicted, since the node needs the resource now.
// Also skipped for a while is a pod that the API server refuses to evict, one that did not
// terminate in time, and one that is gone or critical although the list of pods says otherwise. In
// mode kill, hard thresholds delete pods instead, so a refusal for a soft threshold does not count
// there. If the API server does not answer, no other pod is taken.
//
// Files: guard.go has Guard, Run and Round; decide.go reads the node and decides; actions.go
// carries out decisions and remembers the results; poll.go polls disks and process ids; watches.go
// chooses what the kernel should give notice of; options.go and metrics.go.
package guard
