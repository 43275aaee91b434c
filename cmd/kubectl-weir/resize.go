package main

import (
	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"

	"github.com/weir-metrics/weir/client/connect"
	"github.com/weir-metrics/weir/client/resizecmd"
)

// newResize returns the commands about requests that fit. Pods are changed with the
// rights of the kubeconfig.
func newResize(where *location) *cobra.Command {
	return resizecmd.NewCommand(resizecmd.Options{
		Connect: func() (resizecmd.Asker, error) { return where.connect() },
		Cluster: func() (kubernetes.Interface, error) {
			config, err := where.config().ClientConfig()
			if err != nil {
				return nil, connect.NoCluster(err, "Name a kubeconfig with --kubeconfig=FILE: pods are read and changed there.")
			}
			return kubernetes.NewForConfig(config)
		},
		Namespace: where.namespace,
		Program:   "kubectl weir",
	})
}
