// Package beside compares thresholds with those of the kubelet that evicts on the same node.
package beside
