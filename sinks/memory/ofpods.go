package memory

import "github.com/weir-metrics/weir/metric"

// EachOfPods calls do with what is served of some pods: for each, in the order
// given, the pod's own sample if there is one, then its containers', by name, parts
// left out, until do returns false. i is the pod's index. It says what Pod says of
// each, in memory that is used again: a sample is good until do returns.
func (s *Snapshot) EachOfPods(pods []metric.PodRef, do func(i int, sample *metric.Sample) bool) {
	var (
		rd   reader
		i    int
		kind metric.Kind
		on   = true
	)
	in := func(d *directory) (from, to int) { return d.ofPod(kind, pods[i]) }
	take := s.placed(func(sample *metric.Sample) bool {
		on = sample.Entity.Part != "" || do(i, sample)
		return on
	})
	for i = range pods {
		n := s.nodes.get(s.nodeOf(metric.Entity{Kind: metric.Pod, Namespace: pods[i].Namespace, Pod: pods[i].Name}))
		if n == nil {
			continue
		}
		for _, kind = range [...]metric.Kind{metric.Pod, metric.Container} {
			if n.each(in, &rd, take); !on {
				return
			}
		}
	}
}
