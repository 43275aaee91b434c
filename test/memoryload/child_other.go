//go:build !linux

package memoryload

// Child does nothing: this system has no cgroups.
func Child() {}
