// Package nodeconditions publishes the pressure of a node by weir's thresholds. It writes
// conditions of weir's own types to the Node (weir.dev/MemoryPressure), and optionally taints that
// keep new pods away (weir.dev/memory-pressure).
//
// If it is asked to, it also writes the conditions of KEP-5394, by the stalls of the node
// (SystemMemoryContentionPressure), with their taints (node.kubernetes.io/memory-contention-pressure).
// These are Kubernetes' names, but no release up to 1.37 writes them.
//
// It does not write the conditions and taints of the kubelet, because the kubelet would overwrite
// them repeatedly. The kubelet does not change conditions that it does not know.
//
// It writes to the API server when a condition changes, for a heartbeat, and to restore what other
// clients changed. A failed write is repeated with the next decision. While no decision is
// possible, it publishes nothing, and the age of the heartbeat shows that.
package nodeconditions
