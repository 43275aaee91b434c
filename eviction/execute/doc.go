// Package execute carries out what package eviction decided, and says in words what
// became of it.
//
// How far it goes is its Mode. Observe, the default, asks the API server nothing and changes
// nothing: it tells what would be done. Evict asks the Eviction API, which honours
// PodDisruptionBudgets, for every victim. Kill does the same for soft thresholds; for a
// hard one, and for limits of local storage, it does what the kubelet does: the pod's
// status first gets the condition DisruptionTarget, then the pod is deleted, whatever budgets
// say.
//
// An agent's loop is one goroutine, which waits where the kubelet waits:
//
//	d := eviction.Decide(in)
//	if len(d.Reclaim) > 0 {
//		outcomes := x.Reclaim(ctx, d)
//		d = d.AfterReclaim(readSummary())
//	}
//	outcomes := x.Execute(ctx, d)
//
// What it holds to, in every mode that writes:
//
//   - A pod is looked at afresh before anything is done to it, and all that is sent
//     holds for that pod and no other (its UID; when killing, also its resourceVersion). The
//     agent's own pod, critical, static and mirror pods, and pods of another node are
//     refused, whatever the decision says.
//   - At most one pod goes in a round. The round ends when the pod is gone from the API
//     and from the node's statistics, or when that took too long.
//   - Between pods there is a gap, and a window holds only so many. What was blocked or
//     failed is tried again later, each time after a longer while.
//   - What is done already is not an error: a pod that is gone, ends, or was replaced.
//
// What it remembers for its limits is lost with the process.
package execute
