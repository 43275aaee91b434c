// Package nodeconditions tells the cluster of a node's pressure by weir's thresholds: with
// conditions of the Node, of weir's own types (weir.dev/MemoryPressure), and, if asked for,
// with taints (weir.dev/memory-pressure) that keep new pods away.
//
// The kubelet's own conditions and taints are its own: two who write the same one would
// overwrite each other for ever. It leaves alone conditions that it does not know.
//
// The API server is asked only when a condition changes, and once in a while for the
// heartbeat and for what others changed. What fails is tried again with the next decision. While
// nothing can be decided nothing is published, and the heartbeat grows old, which tells.
package nodeconditions
