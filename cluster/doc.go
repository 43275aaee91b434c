// Package cluster holds what the API server reports about nodes, pods and their containers at one
// moment (Facts). It has data and look-ups, and does no I/O: package cluster/informer watches
// the API server and makes Facts.
//
// Facts are immutable. Facts.With returns new Facts, which share everything that did not
// change, so a change costs the same in a large cluster as in a small one. Generations are
// unique in the process: data of the same generation has not changed.
//
//	facts.go         Facts, Node, Pod, Container, and how a change is applied
//	since.go         which change leads from one Facts to another
//	table.go         the immutable map that Facts are made of
//	labels.go        a key for equal labels
//	requirements.go  requests and limits, shared by the pods of one owner
//	podcache.go      the pods of one source's batches, kept from batch to batch
package cluster
