package kubelet

import (
	"fmt"
	"strings"

	"github.com/weir-metrics/weir/metric"
)

// nodeUser is how the common name of a kubelet's certificate begins, if the
// cluster issued it.
const nodeUser = "system:node:"

// checkIdentity returns an error if the certificate that the other side showed, which
// names peer, is another node's. Certificates that name no node say nothing.
func checkIdentity(peer string, t *Target) error {
	name, ok := strings.CutPrefix(peer, nodeUser)
	if !ok || t.Guessed || name == string(t.Node) {
		return nil
	}
	return &metric.ReadError{
		Reason: metric.NodeWrongIdentity,
		Err:    fmt.Errorf("expected node %q, %s shows the certificate of node %q: the address may have passed to another machine", t.Node, t.Address, name),
	}
}
