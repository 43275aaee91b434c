// Package oomkills has the kills by the kernel, for memory, on their way from a node to the server.
//
//	watch.go    Watch, on an agent: looks at the node, records and counts
//	metrics.go  what it counts
//	events.go   the Events that it writes, if a flag asks for them
//	gather.go   Gatherer, in the server: asks agents, and adds what they know to the record of ends
//
// The server asks an agent when a run ended that the kernel may have killed, when somebody asks about a pod
// on its node, and otherwise every five minutes. Agents keep what they found for an hour, so nothing is lost
// in between, nor when another replica becomes the leader.
package oomkills
