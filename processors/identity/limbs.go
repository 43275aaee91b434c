package identity

import (
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// limb reports whether a sample speaks only of groups that rules cannot weigh,
// such as a pod's network beside its cgroup: it follows the entity's main sample.
func limb(s *metric.Sample) bool {
	return s.Times[metric.CPU] == 0 && s.Times[metric.Memory] == 0
}

// join folds limbs into the sample they belong to, so that an entity has one
// sample: a pod's network is reported with its sandbox, beside the pod's cgroup.
func (s *State) join(facts *cluster.Facts, b *metric.Batch) {
	joined := 0
	for i := range b.Samples {
		sample, w := &b.Samples[i], s.winner[s.trackOf(i)]
		if w < 0 || sample.Entity.Part != "" || !limb(sample) || sample.Rejected() {
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
		s.next[i] = isJoined
		joined++
	}
	if joined == 0 {
		return
	}
	kept := 0
	for i := range b.Samples {
		if s.next[i] != isJoined {
			// Swapped, not copied: each sample keeps its own memory.
			b.Samples[kept], b.Samples[i] = b.Samples[i], b.Samples[kept]
			kept++
		}
	}
	b.Samples = b.Samples[:kept]
	s.layAnew(facts, b)
}

// layAnew gives b, from which samples are gone, the Layout of what is left: the same
// as in the last batch, if that is the same.
func (s *State) layAnew(facts *cluster.Facts, b *metric.Batch) {
	if b.Layout == nil {
		return
	}
	if s.joined == nil {
		s.joined = &joined{}
	}
	if !describes(s.joined.layout, b) {
		s.joined.layout = metric.LayoutOf(b.Samples)
	}
	b.Layout = s.joined.layout
	s.joined.pods.Resolve(facts, b)
}

// joined is what is kept of batches after limbs were joined.
type joined struct {
	layout *metric.Layout
	pods   cluster.PodCache
}

// isJoined in State.next marks a sample that has become part of another.
const isJoined = -2
