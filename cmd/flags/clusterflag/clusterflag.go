// Package clusterflag reads the flags that name the cluster of a command, and the name of this
// machine's node.
package clusterflag

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/weir-metrics/weir/cluster/informer"
	"github.com/weir-metrics/weir/cmd/client/cli"
)

// Flags name a cluster.
type Flags struct {
	Kubeconfig, Master string
	InCluster          bool
}

// Add adds the flags to f.
func (c *Flags) Add(f *pflag.FlagSet) {
	f.StringVar(&c.Kubeconfig, "kubeconfig", "", "kubeconfig `FILE` of the cluster")
	f.StringVar(&c.Master, "master", "", "`URL` of the API server, instead of the kubeconfig's")
	f.BoolVar(&c.InCluster, "in-cluster", false, "use the service account of the pod weir runs in")
}

// Given reports whether the flags name a cluster.
func (c *Flags) Given() bool { return c.Kubeconfig != "" || c.Master != "" || c.InCluster }

// Check returns an error for flags that exclude each other.
func (c *Flags) Check() error {
	if c.InCluster && (c.Kubeconfig != "" || c.Master != "") {
		return cli.Usage(errors.New("--in-cluster excludes --kubeconfig and --master"))
	}
	return nil
}

// Options returns the options of a client of the cluster.
func (c *Flags) Options() informer.Options {
	return informer.Options{Kubeconfig: c.Kubeconfig, Master: c.Master}
}

// NodeName returns the name of this machine's Node object: the given one, or else the host name in
// lower case, as kubelets use it.
func NodeName(given string) (string, error) {
	if given != "" {
		return given, nil
	}
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("name this node: %w; give --node-name", err)
	}
	return strings.ToLower(host), nil
}
