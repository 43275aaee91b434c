package replicas

import (
	"net/http"

	"k8s.io/client-go/rest"

	"github.com/weir-metrics/weir/api/replicas/members"
	"github.com/weir-metrics/weir/api/replicas/peer"
)

// Peer is a replica that can be called.
type Peer struct {
	Identity string
	// URL has no path. It is empty, and Transport nil, for this replica.
	URL       string
	Transport http.RoundTripper
}

// peerUpdater returns a function that passes the members of a list that can be called to set. It keeps
// the connections to members that remain.
func peerUpdater(kube *rest.Config, self string, set func(self string, all []Peer)) func([]members.Member) {
	transports := peer.NewTransports(kube)
	return func(all []members.Member) {
		present := map[string]bool{}
		peers := []Peer{}
		for _, m := range all {
			present[m.Identity] = true
			if m.Identity == self {
				peers = append(peers, Peer{Identity: self})
				continue
			}
			transport, err := transports.For(m.Identity, m.Address, []byte(m.Certificate))
			if err != nil {
				continue // this replica cannot call that member, so it reads the member's nodes itself
			}
			peers = append(peers, Peer{Identity: m.Identity, URL: "https://" + m.Address, Transport: transport})
		}
		set(self, peers)
		transports.Retain(func(identity string) bool { return present[identity] })
	}
}
