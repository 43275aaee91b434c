// Package nodeapi serves what only the agent on a node knows: how the node stands with
// evictions, and what its pod cgroups hold. "weir explain eviction" reads it.
//
// # Request
//
//	GET /apis/weir.dev/v1alpha1/nodes/NODE/eviction
//	GET /apis/weir.dev/v1alpha1/nodes/NODE/podcgroups
//
// There are no parameters. The agent answers for its own node and no other (Handler). The
// cluster's weir serves the same paths by asking the agent on that node (Proxy), so one
// address is enough for all nodes, and the API server guards it.
//
// # Answer
//
// An EvictionExplanation as JSON, or the inspector's report as the agent gives it. What
// cannot be answered is a Problem, which says where it went wrong: no such node, no agent on it, an
// agent that refuses.
package nodeapi
