// Package kubeletconfig compares weir's thresholds with those of the kubelet on the same node.
//
// Both read the same figures and do not know each other. The one with the threshold that is crossed
// first evicts a pod; if both are crossed at once, each evicts one. So weir's threshold must be far
// enough above the kubelet's that weir's pod is gone before the kubelet's threshold is crossed. The
// kubelet then still acts if weir does not.
package kubeletconfig
