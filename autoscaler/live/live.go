// Package live tells a decision what it is made of at the moment: the target's pods
// from what is known of the cluster, and metrics straight from memory, rounded as
// the metrics APIs round them, so that decisions are those that would have been
// made through the APIs.
package live
