// Package guard runs eviction on one node. Each notice starts one round: the guard reads the node,
// decides, and carries out the decision.
//
//	g, err := guard.New(guard.Options{NodeReader: ..., Settings: ..., Executor: ...})
//	go g.Run(ctx)
//	... g.Last() is the newest round, g.RecentActions() are the newest rounds that did something ...
//
// One goroutine decides and acts, so no other pod is chosen while a pod terminates, as in the
// kubelet. There is one exception: the wait for a pod with the grace period of a soft threshold
// ends when a hard threshold must be acted on. Last may be called at any time. A round is published
// after its decision, and again after its actions.
//
// Rounds also start at known times: at the end of a grace period, when a limit allows the next
// eviction, and at least every 10 s (notify.Options.MaxInterval). The kernel gives no notice of
// disks and process ids. Options.Poll reads them every second, and a change of a threshold starts a
// round. Nor does it of memory: Options.WorkingSet reads that at a pace that follows the distance to
// the nearest threshold.
//
// A crossing of memory is decided with the memory of the node and its pods
// (Options.ReadMemory). If no pod goes for memory then, the round reads everything.
//
// If a read fails, the round reports it. Without a summary there is no decision. Without the list
// of pods no pod is evicted. Conditions and grace periods stay as they are.
//
// A pod that a PodDisruptionBudget protects is tried again later, after increasing waits. During
// that time it is skipped, and the next pod in the ranking is evicted, because the node needs the
// resource now. Three other kinds of pods are also skipped for a while: those that the API server
// refuses to evict, those that did not terminate in time, and those that are gone or critical
// although the list of pods does not show it. In mode kill, hard thresholds delete pods instead of
// evicting them, so a refusal for a soft threshold does not count for them. If the API server does
// not answer, no other pod is evicted.
//
// Files: guard.go has Guard, Run and Round; decide.go reads the node and decides; actions.go
// carries out decisions and stores the results; pollmemory.go polls memory, at the pace of pace.go;
// polldisks.go polls disks and process ids; registration.go registers the kernel's triggers;
// options.go has the options; metrics.go has the metrics.
package guard
