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
func (fl *Flags) Add(f *pflag.FlagSet) {
	f.StringVar(&fl.Kubeconfig, "kubeconfig", "", "kubeconfig `FILE` of the cluster")
	f.StringVar(&fl.Master, "master", "", "`URL` of the API server, instead of the kubeconfig's")
	f.BoolVar(&fl.InCluster, "in-cluster", false, "use the service account of the pod weir runs in")
}

// Given reports whether the flags name a cluster.
func (fl *Flags) Given() bool { return fl.Kubeconfig != "" || fl.Master != "" || fl.InCluster }

// Check returns an error for flags that exclude each other.
func (fl *Flags) Check() error {
	if fl.InCluster && (fl.Kubeconfig != "" || fl.Master != "") {
		return cli.Usage(errors.New("--in-cluster excludes --kubeconfig and --master"))
	}
	return nil
}

// Options returns the options of a client of the cluster.
func (fl *Flags) Options() informer.Options {
	return informer.Options{Kubeconfig: fl.Kubeconfig, Master: fl.Master}
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
