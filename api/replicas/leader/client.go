package leader

import (
	"time"

	"k8s.io/client-go/rest"
)

// ClientConfig returns a copy of a configuration for the client of an Elector that renews its Lease
// every renew. A request that is not answered ends in half of that time, so that a second one can
// follow. Requests use HTTP/1.1: one that ends early closes its connection, and the next does not
// wait on a connection that swallows what is sent.
func ClientConfig(kube *rest.Config, renew time.Duration) *rest.Config {
	kube = rest.CopyConfig(kube)
	kube.Timeout = renew / 2
	kube.NextProtos = []string{"http/1.1"}
	return kube
}
