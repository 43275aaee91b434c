// Package apiserver is an API server for a simulated fleet, where etcd and a real one
// would need more than the machine has: it answers LIST and WATCH of nodes and pods
// from the fleet itself, so it keeps nothing for a pod. Package seed writes the same
// objects to a real API server.
//
// A resource version is a moment, in nanoseconds since the Unix epoch: the fleet is a
// function of time, so an object's version is when it changed last, a list's is
// when it was made, and a watch tells what changed since:
//
//	fleet ── Follower, every Tick ─▶ history (the last changes) ─▶ watches
//	  └───── objects as of a moment ─────────────────────────────▶ lists, and watches that begin with one
//
// What it can do: nodes and pods (and them as PartialObjectMetadata) in JSON and protobuf, LIST
// with label and field selectors, WATCH with bookmarks and initial events, 410 Gone for a
// version older than its history, GET; Leases in memory; reviews of tokens and access that
// say yes; Events, which are dropped; empty lists of what else weir asks for.
//
// What it cannot: it ignores limit and answers a list whole, from now, whatever
// version was asked for, as a real one does for version 0; it checks nobody's rights, and
// nothing but a Lease can be written.
package apiserver
