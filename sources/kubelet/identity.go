package kubelet

import (
	"strings"

	"github.com/weir-metrics/weir/metric"
)

// nodeUserPrefix is the prefix of the common name in a kubelet's certificate that the cluster
// issued.
const nodeUserPrefix = "system:node:"

// checkIdentity returns an error if the server's certificate belongs to another node. commonName is
// the common name of the certificate. A certificate without a node's name is accepted.
func checkIdentity(commonName string, t *Target) error {
	name, ok := strings.CutPrefix(commonName, nodeUserPrefix)
	if !ok || t.Guessed || name == string(t.Node) {
		return nil
	}
	return metric.ReadErrorf(metric.NodeWrongIdentity, "expected node %q, %s shows the certificate of node %q: the address may belong to another machine now", t.Node, t.Address, name)
}
