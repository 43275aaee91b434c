package resize

import "github.com/weir-metrics/weir/cluster"

// Reserved returns what the scheduler holds on the node for p, less what its RuntimeClass
// costs: the requests of all that runs side by side, or what an init container needs
// beside the sidecars started before it, if that is more (KEP 753).
func Reserved(p *Pod) (sum Amounts) {
	for _, r := range Resources() {
		if own := p.PodLevel.Requests.Get(r); own.Set {
			*sum.of(r) = own
			continue
		}
		var sidecars, most int64
		for i := range p.Containers {
			c := &p.Containers[i]
			request := c.Requests.Get(r).Value
			switch c.Role {
			case cluster.Init:
				most = max(most, sidecars+request)
			case cluster.Sidecar:
				sidecars += request
				most = max(most, sidecars)
			}
		}
		together := sidecars
		for i := range p.Containers {
			if c := &p.Containers[i]; c.Role == cluster.Regular {
				together += c.Requests.Get(r).Value
			}
		}
		*sum.of(r) = Of(max(together, most))
	}
	return sum
}

// less returns a-b.
func (a Amounts) less(b Amounts) Amounts {
	return Amounts{Of(a.CPU.Value - b.CPU.Value), Of(a.Memory.Value - b.Memory.Value)}
}
