package main

import (
	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"

	"github.com/weir-metrics/weir/internal/reach"
	"github.com/weir-metrics/weir/internal/resizing"
)

// newResize returns the commands about requests that fit. Pods are changed with the
// rights of the kubeconfig.
func newResize(where *location) *cobra.Command {
	return resizing.NewCommand(resizing.Options{
		Connect: func() (resizing.Asker, error) { return where.connect() },
		Cluster: func() (kubernetes.Interface, error) {
			config, err := where.config().ClientConfig()
			if err != nil {
				return nil, reach.NoCluster(err, "Name a kubeconfig with --kubeconfig=FILE: pods are read and changed there.")
			}
			return kubernetes.NewForConfig(config)
		},
		Namespace: where.namespace,
		Program:   "kubectl weir",
	})
}
