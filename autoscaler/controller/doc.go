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
// count that was decided on, and within WriteTimeout, which is shorter than the time that a
// Lease guarantees between two leaders.
//
// # What it costs
//
// Like Kubernetes' controller, each decision reads one scale from the API server: it must be
// current. 10,000 objects in a period of 15 seconds are 667 requests a second from each
// replica. Workers limits how many run at once; there is no limit per second. Statuses are
// few (below). A pass over 10,000 objects takes the controller 0.4 s of one core, without
// reading metrics.
//
// # What is not acted on
//
// An Autoscaler in mode DryRun reports what it would do; its memory follows the changes that
// others make to the target. An Active one whose target belongs to a HorizontalPodAutoscaler,
// or to an older Active Autoscaler, has the condition Conflict and does the same. Two targets
// are the same if their resource and name are, however the manifests spell them. Nothing is
// acted on before both kinds have been listed.
//
// # Statuses
//
// A status is written at once if it has another count, another status or reason of a
// condition, an error, a new generation, or a decision worth keeping. The values of metrics,
// messages and explanations change with every decision; for these alone a status is written
// once in StatusInterval. Kubernetes' controller writes them every time.
//
// # Shadowing
//
// For each HorizontalPodAutoscaler weir decides beside Kubernetes' controller and counts where
// the two differ. agreement.go defines agreement.
package controller
