// Package nodeconditions publishes a node's pressure by weir's thresholds: as conditions of the
// Node, of weir's own types (weir.dev/MemoryPressure), and optionally as taints
// (weir.dev/memory-pressure) that keep new pods away.
//
// It does not write the kubelet's conditions and taints, since the kubelet would overwrite them
// again and again. The kubelet does not change conditions that it does not know.
//
// It writes to the API server when a condition changes, for a heartbeat, and to restore what others
// changed. What fails is tried again with the next decision. While no decision is possible it
// publishes nothing, and the age of the heartbeat shows that.
package nodeconditions
