// Package apiserver is an API server for a simulated fleet. Use it where etcd
// and a real API server would need more than the machine has: it answers LIST
// and WATCH of nodes and pods from the fleet itself, so it stores nothing for a
// pod. Package seed writes the same objects to a real API server.
//
// A resource version is a time, in nanoseconds since the Unix epoch. The fleet
// is a function of time, so the version of an object is the time of its last
// change, and the version of a list is the time at which it was made. A watch
// returns the changes after a version:
//
//	fleet ── Follower, every Tick ─▶ history (the last changes) ─▶ watches
//	  └───── objects as of a moment ─────────────────────────────▶ lists, and watches that begin with one
//
// It serves nodes and pods (also as PartialObjectMetadata) in JSON and
// protobuf: LIST with label and field selectors, WATCH with bookmarks and
// initial events, 410 Gone for a version older than its history, and GET. It
// keeps Leases in memory. It answers yes to reviews of tokens and access. If
// asked to, it has a HorizontalPodAutoscaler of each Deployment, which does not
// change, and the scales of Deployments. It drops Events, and returns empty
// lists for the other resources that weir reads.
//
// It ignores limit and always answers a whole list as of now, whatever version
// was requested, as a real API server does for version 0. It checks no rights.
// Only Leases can be written.
package apiserver
