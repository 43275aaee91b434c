// Package controller acts on Autoscalers and shadows HorizontalPodAutoscalers: it
// watches them, has package autoscaler decide on each every fifteen seconds, writes
// the new number of replicas, and says in their status what it decided and why.
//
// Between two decisions it looks at an Autoscaler's numbers every second, and decides
// at once where they ask for another count (peek.go).
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
// died between two writes, or a write that was never answered, is taken for a change
// just made: policies then allow less, never more. So after an outage: who has not
// seen the target for longer than a window begins anew with the current count.
//
// What is remembered is of a target, and not of an object: a specification that comes
// to name another begins anew as well. Replicas' clocks should agree to a second or
// two: a change is forgotten too early by as much as the successor's clock is ahead.
//
// Two replicas can both take themselves for the leader for a moment. A scale is
// written only over the count that was decided on, and within WriteTimeout, which is
// less than what a Lease leaves between the end of one reign and the beginning of the
// next.
//
// # What it costs
//
// Each decision reads one scale from the API server, as Kubernetes' controller does:
// it must be that of the moment. 10,000 objects in a period of 15 seconds are 667
// requests a second from each replica; Workers bounds how many are sent at once, and
// nothing how many in a second. Statuses are few (below), and a pass over 10,000
// objects takes the controller itself 0.4 s of one core, besides what reads metrics.
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
