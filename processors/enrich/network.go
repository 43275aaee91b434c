package enrich

import "github.com/weir-metrics/weir/metric"

// removeNetwork removes the network numbers of a pod in the host's network, or of one of its
// interfaces: they are the node's.
func removeNetwork(b *metric.Batch, s *metric.Sample) {
	for id := metric.NetworkRx; id <= metric.NetworkTxErrorsRate; id++ {
		s.Values.Delete(id)
	}
	s.Times[metric.Network] = 0
	s.Rates[metric.Network] = metric.Window{}
	s.LastKnown &^= 1 << metric.Network
	s.Reasons[metric.Network] = metric.NotApplicable
	if s.Entity.Part != "" {
		return // the pod's verdict covers its interfaces
	}
	v := metric.Verdict{Entity: s.Entity, Instance: s.Instance, Group: metric.Network, Reason: metric.NotApplicable}
	v.Evidence.Name = string(s.Entity.Node)
	for i := range b.Verdicts {
		// A reason of rate about these numbers no longer applies.
		if o := &b.Verdicts[i]; o.Group == metric.Network && o.Entity == s.Entity && o.Reason.Layer() == metric.LayerRate {
			*o = v
			return
		}
	}
	b.Verdicts = append(b.Verdicts, v)
}
