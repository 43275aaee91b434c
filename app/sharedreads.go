package app

import (
	"k8s.io/client-go/rest"

	"github.com/weir-metrics/weir/replicas/members"
	"github.com/weir-metrics/weir/replicas/peer"
	"github.com/weir-metrics/weir/sources/shared"
)

// sharedPath is where a replica hands what it reads to the others. It lies outside /api
// and /apis, to which every user has the right.
const sharedPath = "/shared/reads"

// introduce returns what tells an Exchange who the members are. Connections to those
// who stay are kept.
func introduce(kube *rest.Config, shares *shared.Exchange, self string) func([]members.Member) {
	transports := map[members.Member]*peer.Transports{}
	return func(all []members.Member) {
		there := map[members.Member]*peer.Transports{}
		told := []shared.Member{}
		for _, m := range all {
			if m.Identity == self {
				told = append(told, shared.Member{Name: self})
				continue
			}
			t := transports[m]
			if t == nil {
				t = peer.NewTransports(kube)
			}
			there[m] = t
			transport, err := t.For(m.Address, []byte(m.Certificate))
			if err != nil {
				continue // it owns nothing, then: whoever cannot call it reads its nodes
			}
			told = append(told, shared.Member{Name: m.Identity, URL: "https://" + m.Address + sharedPath, Transport: transport})
		}
		shares.SetMembers(self, told)
		for m, t := range transports {
			if there[m] == nil {
				t.Close()
			}
		}
		transports = there
	}
}
