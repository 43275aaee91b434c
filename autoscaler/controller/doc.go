// Package controller acts on Autoscalers and shadows HorizontalPodAutoscalers. For each object it
// calls package autoscaler every fifteen seconds, writes the new number of replicas, and writes the
// decision and its reason to the object's status.
//
// The files, in the order of a decision:
//
//	options.go      options and the interfaces the controller needs
//	controller.go   the loop: queue, workers, answers for the API
//	catalog.go      the objects that package watcher reports
//	peek.go         checks between two decisions
//	sync.go         one decision: read the target, decide, write
//	entry.go        the state of an object between two decisions
//	status.go       the status of an Autoscaler
//	statusmemory.go the memory in a status
//	shadow.go       one decision about a HorizontalPodAutoscaler
//	agreement.go    the comparison with Kubernetes' controller
//	record.go       the recording of targets for replays
//	metrics.go      the weir_autoscaler_ metrics
//
// # Who decides and who writes
//
// Every replica of weir decides about every object, at the same times, so each replica has the same
// memory of recommendations. The time of an object in the period is a hash of its name. Only the
// leader writes scales, statuses and Events. A new leader continues with its own memory and with
// the changes in the status. A replica that has just started begins with the memory in the status.
// Like Kubernetes' controller it also uses the current count as its first recommendation, so
// nothing scales down before a whole window has passed. A count that changed without an entry in
// the status, for example because the leader ended between two writes, counts as a change made now:
// policies then allow less, never more. After an outage longer than a window the memory begins
// again with the current count.
//
// The memory belongs to a target, not to an object: if the specification names another target, the
// memory begins again. The clocks of the replicas should differ by two seconds at most. If the new
// leader's clock is ahead, a change is forgotten too early by that difference.
//
// For a short time two replicas can both believe that they are the leader. A scale is written only
// if it still has the count that the decision was based on. It is written within writeTimeout,
// which is shorter than the time that a Lease guarantees between two leaders.
//
// docs/autoscaler.md has what a decision costs the API server, what counts as a conflict, and when
// a status is written.
//
// # Shadowing
//
// For each HorizontalPodAutoscaler weir makes its own decision and counts where it differs from
// that of Kubernetes' controller. agreement.go defines agreement.
package controller
