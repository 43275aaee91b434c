//go:build !linux

package hog

// Child does nothing: there are no cgroups here.
func Child() {}
