// Package informer turns what the API server says of nodes and pods into
// immutable cluster.Facts. It is the one door for client-go's lists and watches:
// no Kubernetes type goes further than this package, but for the pods of the one node
// that an agent follows (NodePods).
//
// Every object is converted the moment it arrives and then dropped, so that weir
// keeps one small copy of a pod instead of an informer's large one beside it:
//
//	API server ─▶ reflector ─▶ convert ─▶ queue ─▶ loop ─▶ *cluster.Facts
//	              (nodes, pods)           coalesces  every   read without a lock
//	                                                 50 ms
//
// Cluster owns all goroutines; convert.go is pure. While the API server is away
// the last facts stay, and Facts.At does not change.
package informer
