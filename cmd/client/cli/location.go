package cli

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Location shows where weir and the cluster are, from flags and the environment.
type Location struct {
	Getenv func(string) string
	// Local is the address of the weir to use if no flag names one. If Local is empty, that is the
	// weir of the cluster, through the API server.
	Local string

	server, kubeconfig, context string
}

// AddServerFlag adds the flag that names a weir.
func (l *Location) AddServerFlag(f *pflag.FlagSet) {
	usual := "the cluster's, through the API server"
	if l.Local != "" {
		usual = "the one on this machine, http://" + l.Local
	}
	f.StringVar(&l.server, "server", "", "URL of the weir to ask (default: $WEIR_SERVER, or else "+usual+")")
}

// AddClusterFlags adds the flags that name a cluster.
func (l *Location) AddClusterFlags(f *pflag.FlagSet) {
	f.StringVar(&l.kubeconfig, "kubeconfig", "", "kubeconfig `FILE` of the cluster (default: as kubectl's)")
	f.StringVar(&l.context, "context", "", "context of the kubeconfig")
}

// named returns the URL of the weir that the user names, or "".
func (l *Location) named() string { return cmp.Or(l.server, l.Getenv("WEIR_SERVER")) }

// Connect returns the weir that the command asks.
func (l *Location) Connect() (*Weir, error) {
	switch server := l.named(); {
	case server != "":
		return Direct(server, false)
	case l.Local != "":
		return Direct("http://"+l.Local, true)
	}
	config, err := l.config().ClientConfig()
	if err != nil {
		return nil, noCluster(err, nameEither)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("make API client: %w", err)
	}
	host, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("read the API server's address: %w", err)
	}
	return NewWeir(host.String(), client, adviseInCluster)
}

// Namespace returns the namespace of the kubeconfig's context. It is empty if the user names a
// weir, which may belong to another cluster.
func (l *Location) Namespace() (string, error) {
	if l.named() != "" {
		return "", nil
	}
	namespace, _, err := l.config().Namespace()
	if err != nil {
		return "", noCluster(err, nameEither)
	}
	return namespace, nil
}

// Cluster returns a client of the cluster's API server, with the user's own rights.
func (l *Location) Cluster() (*Kube, error) {
	config, err := l.config().ClientConfig()
	if err != nil {
		return nil, noCluster(err, "Name a kubeconfig with --kubeconfig=FILE: this command also uses the API server, with your rights.")
	}
	return NewKube(config)
}

// config reads the kubeconfig as kubectl does: the file, or else the files of $KUBECONFIG and the
// home directory.
func (l *Location) config() clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = l.kubeconfig
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: l.context})
}

// nameEither is the hint if a kubeconfig or a weir is needed.
const nameEither = "Name a kubeconfig with --kubeconfig=FILE, or a weir with --server=URL."

func noCluster(err error, hint string) error {
	if clientcmd.IsEmptyConfig(err) { // the library's own message names $KUBERNETES_MASTER
		err = errors.New("there is no kubeconfig")
	}
	return Hintf(fmt.Errorf("find the cluster: %w", err), "%s", hint)
}
