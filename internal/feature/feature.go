// Package feature is what the features of weir are made of. A feature, such as the eviction guard or
// the autoscaler controller, is a type in its own room with three methods: Flags adds its flags,
// Check checks them, and Open opens it on a Host, to which it adds the parts that run. Package cmd/app
// has the list of features in the order in which they open.
//
//	feature.go   Setting, in which flags are checked
//	host.go      Host and Cluster, which all features of a weir share
//	part.go      Part, Run: start in order, end what serves first, close in reverse
package feature

import (
	"fmt"

	"github.com/weir-metrics/weir/internal/usererror"
)

// Setting is the process in which a command runs, as the checks of flags see it.
type Setting struct {
	// Getenv reads the environment.
	Getenv func(name string) string
	// Given reports whether a flag was given.
	Given func(flag string) bool
	// InPod is set if the process runs in a pod that has credentials for its API server.
	InPod bool
	// HasCluster is set if a cluster is named.
	HasCluster bool
	// NodeIsNamed is set if the name of this machine's node is given.
	NodeIsNamed bool
}

// NeedsCluster returns the error for a flag without a cluster. reason is a relative clause: "whose
// pods it watches".
func NeedsCluster(flag, reason string) error {
	return usererror.Hintf(usererror.Usage(fmt.Errorf("%s needs a cluster, %s", flag, reason)),
		"Name it with --kubeconfig=FILE or --in-cluster, or leave %s out.", flag)
}
