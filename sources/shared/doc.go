// Package shared lets the replicas of a weir share the reading of nodes: each node is
// read by one of them, and what it said goes to the others as it was read.
//
// Every replica leads every batch through a pipeline of its own, so each has all
// numbers, and when one is lost the others go on from the same counters. What is
// divided is the reading, which is most of the work.
//
//	the owner:   Read ─▶ the kubelet ─▶ pipeline
//	                        └─▶ a stream for each other replica, in package recording's format
//	the others:  Read ─▶ waits for the stream to bring it ─▶ pipeline
//
// Who owns a node is the members' affair alone: the one whose name and the node's have
// the highest hash together (rendezvous hashing), so that a member more or less moves
// no node but its own. Replicas need not agree: who does not hear of a node from its
// owner in time reads it itself. So the loss of a replica costs no number, only reads
// that two make, until the members are known anew.
//
//	exchange.go  Read, and who the members are
//	owner.go     pure: which member owns a node
//	hub.go       what this replica read, to the others
//	peer.go      what another read, to this one
//	mailbox.go   what has come and is not yet asked for
package shared
