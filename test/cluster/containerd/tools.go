//go:build tools

// Package containerd pins the versions of containerd and its helper programs.
// It is a module of its own, because it excludes versions of modules that the
// other programs of a cluster need.
package containerd

import (
	_ "github.com/containerd/containerd/v2/cmd/containerd"
	_ "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2"
	_ "github.com/containerd/containerd/v2/cmd/ctr"
)
