package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"

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
				return nil, noCluster(fmt.Errorf("find the cluster: %w", err))
			}
			return kubernetes.NewForConfig(config)
		},
		Namespace: where.namespace,
		Program:   "kubectl weir",
	})
}
