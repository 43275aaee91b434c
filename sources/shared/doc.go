// Package shared lets the replicas of weir share the reading of nodes. One replica reads a node and
// sends the batch, as it was read, to the others.
//
// Every replica processes every batch in its own pipeline, so each replica has all numbers. If one
// replica is lost, the others continue from the same counters. Only the reading, which is most of
// the work, is divided.
//
//	the owner:   Read ─▶ the kubelet ─▶ pipeline
//	                        └─▶ a stream for each other replica, in package recording's format
//	the others:  Read ─▶ waits for the batch from the stream ─▶ pipeline
//
// The owner of a node is the member with the highest hash of its name and the node's name
// (rendezvous hashing). A member that joins or leaves therefore moves only its own nodes. Replicas
// need not agree on the members: a replica that gets nothing from the owner in time reads the node
// itself. If a replica is lost, no numbers are lost: some nodes are read twice until the members are
// known again.
//
//	exchange.go  Read, and the members; meters.go its metrics
//	owner.go     pure: which member owns a node
//	hub.go       sends what this replica read
//	peer.go      receives what another replica read
//	mailbox.go   batches that have arrived and are not used yet
package shared
