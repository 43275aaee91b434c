//go:build !linux

package memoryload

// Child does nothing: there are no cgroups here.
func Child() {}
