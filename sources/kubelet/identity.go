package kubelet

import (
	"fmt"
	"strings"

	"github.com/weir-metrics/weir/metric"
)

// nodeUserPrefix begins the common name of a kubelet's certificate, if the cluster issued
// it.
const nodeUserPrefix = "system:node:"

// checkIdentity returns an error if the certificate of the server is that of another node.
// commonName is the certificate's; a certificate without a node's name is accepted.
func checkIdentity(commonName string, t *Target) error {
	name, ok := strings.CutPrefix(commonName, nodeUserPrefix)
	if !ok || t.Guessed || name == string(t.Node) {
		return nil
	}
	return &metric.ReadError{
		Reason: metric.NodeWrongIdentity,
		Err:    fmt.Errorf("expected node %q, %s shows the certificate of node %q: the address may belong to another machine now", t.Node, t.Address, name),
	}
}
