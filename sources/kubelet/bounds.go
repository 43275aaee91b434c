package kubelet

import (
	"cmp"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/kubelet/payload"
)

// bounds are the most that one answer may have.
type bounds struct {
	bytes   int64
	samples int
}

// expected has the bounds of an answer of a node without pods, and what each pod adds. They are about
// ten times what a kubelet writes about a pod of five containers.
var expected = map[Endpoint]struct{ node, pod bounds }{
	Resource: {bounds{2 << 20, 2048}, bounds{64 << 10, 64}},
	Summary:  {bounds{4 << 20, 4096}, bounds{256 << 10, 256}},
	CAdvisor: {bounds{16 << 20, 4096}, bounds{1 << 20, 256}},
}

// podsOfUnknown is the number of pods for the bounds of a node that no API server has, as in a list of
// targets. A node has at most 110 by default, and seldom more than 250.
const podsOfUnknown = 250

// boundsOf returns the bounds of an answer of that node: those of the options, else those by the
// node's pods.
func (s *Scraper) boundsOf(node metric.NodeName, e Endpoint) bounds {
	most := bounds{DefaultMaxBytes, payload.DefaultMaxSamples}
	facts := s.facts.Load()
	if x, ok := expected[e]; ok {
		pods := podsOfUnknown
		if facts.Node(node) != nil {
			pods = len(facts.PodsOn(node))
		}
		most.bytes = min(most.bytes, x.node.bytes+int64(pods)*x.pod.bytes)
		most.samples = min(most.samples, x.node.samples+pods*x.pod.samples)
	}
	return bounds{cmp.Or(s.opts.MaxBytes, most.bytes), cmp.Or(s.opts.MaxSamples, most.samples)}
}
