// Package cluster says what the API server says of nodes, pods and their containers,
// as weir knew it at one moment (Facts). It holds data and look-ups, and does no I/O:
// package cluster/informer watches the API server and makes Facts.
//
// Facts are immutable. Facts.With makes the next ones, which share all that did not
// change, so that a change costs the same in a large cluster as in a small one.
// Generations, which are unique in the process, tell what has not changed.
//
//	facts.go         Facts, Node, Pod, Container, and how a change is applied
//	since.go         which change leads from one Facts to another
//	podtable.go      the pods of a namespace; shards.go, the nodes and namespaces
//	requirements.go  requests and limits, shared by the pods of one owner
//	podcache.go      the pods of one source's batches, kept from batch to batch
package cluster
