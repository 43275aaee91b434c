package connect

import (
	"errors"
	"fmt"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/weir-metrics/weir/client/cli"
)

// Kubeconfig reads a kubeconfig as kubectl does: the file, or else those of $KUBECONFIG and
// the home directory, in the context, or else the current one.
func Kubeconfig(file, context string) clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = file
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: context})
}

// NoCluster makes of an error of Kubeconfig's one that says what to do.
func NoCluster(err error, hint string) error {
	if clientcmd.IsEmptyConfig(err) { // which would have people set $KUBERNETES_MASTER
		err = errors.New("there is no kubeconfig")
	}
	return cli.Hintf(fmt.Errorf("find the cluster: %w", err), "%s", hint)
}
