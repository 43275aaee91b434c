package identity

import "github.com/weir-metrics/weir/metric"

// isPartialSample reports whether a sample has neither CPU nor memory, such as a pod's network
// beside its cgroup. The rules cannot judge it: it follows the entity's main sample.
func isPartialSample(s *metric.Sample) bool {
	return s.Times[metric.CPU] == 0 && s.Times[metric.Memory] == 0
}

// mergePartialSamples merges partial samples into the chosen sample of their entity. A pod's
// network, for instance, is reported with its sandbox, beside the pod's cgroup.
func (identifier *Identifier) mergePartialSamples(b *metric.Batch) {
	joined := 0
	for i := range b.Samples {
		sample, w := &b.Samples[i], identifier.winner[trackOf(b, i)]
		if w < 0 || sample.Entity.Part != "" || !isPartialSample(sample) || sample.Rejected() {
			continue
		}
		whole := &b.Samples[w]
		whole.Instance.Sandbox = sample.Instance.ID
		for id, v := range sample.Values.All() {
			if !whole.Values.Has(id) {
				whole.Values.Set(id, v)
			}
		}
		for g, at := range sample.Times {
			if at != 0 && whole.Times[g] == 0 {
				whole.Times[g] = at
				whole.Received |= sample.Received & (1 << g)
			}
		}
		identifier.next[i] = mergedAway
		joined++
	}
	if joined == 0 {
		return
	}
	kept := 0
	for i := range b.Samples {
		if identifier.next[i] != mergedAway {
			// The samples are swapped, not copied: each one keeps its own memory.
			b.Samples[kept], b.Samples[i] = b.Samples[i], b.Samples[kept]
			kept++
		}
	}
	b.Samples = b.Samples[:kept]
}

// mergedAway in Identifier.next marks a sample that was merged into another one.
const mergedAway = -2
