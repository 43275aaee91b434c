// Package controller acts on Autoscalers and shadows HorizontalPodAutoscalers: it
// watches them, has package autoscaler decide on each every fifteen seconds, writes
// the new number of replicas, and says in their status what it decided and why.
//
// # Who decides and who writes
//
// Every replica of weir decides about every object, at the same moments (an
// object's place in the period is a hash of its name), so that each has the same
// memory of recommendations. Only the leader writes: scales, statuses and Events.
// A replica that comes to lead goes on with its own memory and with the changes that
// the last leader noted in the status. One that has just started begins with what
// the status remembers and, as Kubernetes' controller does, with the current count
// as its first recommendation, so that nothing shrinks before a whole window has
// been seen. A count that changed without a word in the status, as when the leader
// died between two writes, is taken for a change just made: policies then allow
// less, never more.
//
// Two replicas can both take themselves for the leader for a moment. A scale is
// written with the version that was read, and within WriteTimeout, which is less
// than what a Lease leaves between the end of one reign and the beginning of the
// next.
//
// # What is not acted on
//
// An Autoscaler in mode DryRun only says what it would do; its memory follows the
// changes that others make to the target. An Active one whose target belongs to a
// HorizontalPodAutoscaler, or to an older Active Autoscaler, has the condition
// Conflict and does the same. Targets are the same if their resource and name are,
// however the manifests spell them. Nothing is acted on before both kinds have been
// listed.
//
// # Statuses
//
// A status is written at once when it says something new: another count, a
// condition's status or reason, an error, a change of the specification, a decision
// worth noting. Metrics' values, messages and explanations change every time; for
// those alone it is written once in StatusInterval. Kubernetes' controller writes
// every time a value changes, which is every time.
//
// # Shadowing
//
// For each HorizontalPodAutoscaler weir decides beside Kubernetes' controller and
// keeps account of where the two differ. What agreement means is in agree.go.
package controller
