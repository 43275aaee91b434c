package kubelet

import (
	"crypto/tls"
	"fmt"
	"strings"

	"github.com/weir-metrics/weir/metric"
)

// nodeUser is how the common name of a kubelet's certificate begins, if the
// cluster issued it.
const nodeUser = "system:node:"

// checkIdentity returns an error if the certificate that the other side showed is
// another node's. Certificates that name no node say nothing.
func checkIdentity(state *tls.ConnectionState, t *Target) error {
	if state == nil || t.Guessed || len(state.PeerCertificates) == 0 {
		return nil
	}
	name, ok := strings.CutPrefix(state.PeerCertificates[0].Subject.CommonName, nodeUser)
	if !ok || name == string(t.Node) {
		return nil
	}
	return &metric.ReadError{
		Reason: metric.NodeWrongIdentity,
		Err:    fmt.Errorf("expected node %q, %s shows the certificate of node %q: the address may have passed to another machine", t.Node, t.Address, name),
	}
}
