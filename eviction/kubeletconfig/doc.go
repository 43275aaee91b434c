// Package kubeletconfig compares weir's thresholds with those of the kubelet on the same node.
//
// Both read the same figures, and neither knows the other's decisions. If one threshold is crossed
// first, its owner evicts a pod; if both thresholds are crossed at once, each evicts one. weir's
// threshold must therefore be so far above the kubelet's that the pod evicted by weir is gone
// before the kubelet's threshold is crossed. The kubelet still acts if weir does not.
package kubeletconfig
