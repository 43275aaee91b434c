// Package kubeletconfig compares thresholds with those of the kubelet that evicts on the same
// node.
//
// Both look at the same figures, and neither asks the other. Whoever's threshold is crossed
// first takes a pod; if both are crossed at once, each takes one. So where weir is to act,
// its threshold must be far enough above the kubelet's for the pod to be gone before the
// kubelet's is crossed as well, and the kubelet stays as the one that acts if weir does not.
package kubeletconfig
