// Package controller acts on Autoscalers and shadows HorizontalPodAutoscalers. For each
// object it lets package autoscaler decide every fifteen seconds, writes the new number of
// replicas, and writes the decision and its reason to the object's status.
//
// The files, in the order of a decision:
//
//	options.go      options and the interfaces the controller needs
//	controller.go   the loop: queue, workers, answers for the API
//	catalog.go      the objects that package watcher reports
//	peek.go         checks between two decisions
//	sync.go         one decision: read the target, decide, write
//	entry.go        what is kept of an object between two decisions
//	status.go       the status of an Autoscaler
//	statusmemory.go the memory in a status
//	shadow.go       one decision about a HorizontalPodAutoscaler
//	agreement.go    comparing it with what Kubernetes' controller did
//	record.go       recording targets for replays
//	metrics.go      the weir_autoscaler_ metrics
//
// # Who decides and who writes
//
// Every replica of weir decides about every object, at the same moments, so that each has the
// same memory of recommendations. The moment of an object in the period is a hash of its name.
// Only the leader writes scales, statuses and Events. A new leader continues with its own
// memory and with the changes in the status. A replica that has just started begins with the
// memory in the status and, like Kubernetes' controller, with the current count as its first
// recommendation, so that nothing scales down before a whole window has passed. A count that
// changed without an entry in the status, for example because the leader ended between two
// writes, counts as a change made now: policies then allow less, never more. After an outage
// longer than a window the memory begins again with the current count.
//
// The memory belongs to a target, not to an object: if the specification names another target,
// the memory begins again. The clocks of replicas should agree to a second or two, because a
// change is forgotten too early by as much as the new leader's clock is ahead.
//
// For a moment two replicas can both believe that they lead. A scale is written only over the
// count that was decided on, and within writeTimeout, which is shorter than the time that a
// Lease guarantees between two leaders.
//
// docs/autoscaler.md says what a decision costs the API server, what counts as a conflict, and when
// a status is written.
//
// # Shadowing
//
// For each HorizontalPodAutoscaler weir decides beside Kubernetes' controller and counts where
// the two differ. agreement.go defines agreement.
package controller
