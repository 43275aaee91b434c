//go:build tools

// Package containerd pins containerd and the programs beside it, in a module of its own: it excludes versions of
// modules that the other programs of a cluster need.
package containerd

import (
	_ "github.com/containerd/containerd/v2/cmd/containerd"
	_ "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2"
	_ "github.com/containerd/containerd/v2/cmd/ctr"
)
