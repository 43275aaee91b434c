// Package execute carries out the decisions of package eviction, and describes the results.
//
// Its Mode limits what it does. Observe, the default, writes nothing but Events and only reports
// what would be done. Evict uses the Eviction API, which respects PodDisruptionBudgets, for every
// pod. Kill does the same for soft thresholds. For hard thresholds and for limits of local storage,
// Kill does what the kubelet does: it sets the condition DisruptionTarget in the pod's status, then
// deletes the pod, and ignores budgets. With Options.KillAtOnce it first ends the pod's processes, if
// memory or process IDs are short, and does the rest right after. Request creates an EvictionRequest
// (KEP-4563) for every pod, and deletes it when the pod is gone or the wait for it is over.
//
// The loop of an agent is one goroutine, which waits where the kubelet waits:
//
//	d := eviction.Decide(in)
//	if len(d.Reclaim) > 0 {
//		outcomes := x.Reclaim(ctx, d)
//		d = d.AfterReclaim(readSummary())
//	}
//	outcomes := x.Execute(ctx, d)
//
// In every mode that writes:
//
//   - The pod is read again before anything is done to it, except to its processes. Every request has
//     preconditions for that pod (its UID; for a deletion also its resourceVersion). The agent's own pod,
//     critical, static and mirror pods, and pods of other nodes are refused, even if the decision names
//     them.
//   - At most one pod is evicted in a round. The round ends when the pod is gone from the API and
//     from the node's statistics, or after a timeout.
//   - A node needs one of a few places, for which it writes its own Lease and compares it with those
//     of other nodes. If many nodes have evicted, no node may. To kill a pod for a hard threshold, it
//     is enough that the node writes its Lease, but only for one pod in ten minutes. While memory is near a
//     hard threshold, Prepare obtains the place ahead of a kill at once.
//   - Evictions have a minimum gap, and a maximum number in a window. An eviction that was
//     blocked or failed is tried again after increasing waits.
//   - It is not an error if a pod is gone, terminating or replaced.
//
// The state of these limits is lost when the process ends.
//
// Files: execute.go has Executor; options.go its options and modes; evict.go reads, checks, evicts
// and deletes a pod; brake.go writes the node's Lease and reads those of all nodes; request.go creates and withdraws EvictionRequests; removal.go waits until it is gone; pacing.go has the gap, the window and the
// backoff; reclaim.go removes unused containers and images; outcome.go has the results; events.go
// records Events; metrics.go has the metrics.
package execute
