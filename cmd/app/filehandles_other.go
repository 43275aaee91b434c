//go:build !linux

package app

// denyFileHandles does nothing: only Linux opens files by handle.
func denyFileHandles() error { return nil }

// dropReadSearch does nothing, as denyFileHandles.
func dropReadSearch() error { return nil }
