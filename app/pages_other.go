//go:build !linux

package app

// dropBinaryPages does nothing: how it is done elsewhere is not known.
func dropBinaryPages() error { return nil }
