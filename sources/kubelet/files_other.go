//go:build !unix

package kubelet

// MaxConnections returns 0: only Unix limits the number of open files.
func MaxConnections() int { return 0 }
