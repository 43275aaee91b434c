// Package nodeapi serves what only the agent on a node knows: the report on evictions of the node,
// the contents of its pod cgroups, the devices that its kubelet has allocated, and what its kernel killed
// for memory. "weir explain eviction" and "weir explain devices" read it; for "weir explain death" weir
// reads the last.
//
// # Request
//
//	GET /apis/weir.dev/v1alpha1/nodes/NODE/eviction
//	GET /apis/weir.dev/v1alpha1/nodes/NODE/podcgroups
//	GET /apis/weir.dev/v1alpha1/nodes/NODE/devices
//	GET /apis/weir.dev/v1alpha1/nodes/NODE/kills
//
// There are no parameters. The agent answers for its own node only (NewHandler). The weir of the
// cluster serves the same paths for all nodes by asking the agent on each (Proxy), so one address is
// enough, and the API server checks the rights.
//
// # Answer
//
// The answer is an EvictionExplanation, NodeDevices or NodeKills as JSON, or the inspector's report as the agent
// gives it. An error is a Problem that shows where it went wrong: there is no such node, no agent answers, or the
// agent refuses.
//
// Files: handler.go answers on a node, proxy.go in the cluster; request.go has paths and
// requests, rights.go their rights, client.go the client. Package agents finds the agents, and package oomkills has the kills on both sides.
package nodeapi
