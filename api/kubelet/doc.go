// Package kubelet serves what a kubelet serves.
package kubelet
