package memory

import (
	"maps"
	"slices"

	"github.com/weir-metrics/weir/metric"
)

// totals are the sums over namespaces and the cluster at one snapshot.
type totals struct {
	cluster    *metric.Sample
	namespaces []*metric.Sample // sorted
}

// total is the sum of its members.
type total struct {
	metric.Sample
	counted bool
}

// add adds the values of s for which counts returns true. The time and window of the total are
// those of its oldest member.
func (t *total) add(s *metric.Sample, counts func(*metric.Descriptor) bool) {
	for id, v := range s.Values.All() {
		d := &metric.Catalogue[id]
		if !counts(d) {
			continue
		}
		sum, _ := t.Values.Get(id)
		t.Values.Set(id, sum+v)
		t.counted = true
		g := d.Group
		t.Reasons[g] = metric.Measured
		if t.Times[g] == 0 || s.Times[g] != 0 && s.Times[g] < t.Times[g] {
			t.Times[g] = s.Times[g]
		}
		if w := s.Rates[g]; w != (metric.Window{}) && (t.Rates[g] == (metric.Window{}) || w.End < t.Rates[g].End) {
			t.Rates[g] = w
		}
	}
}

// isSumOfPods reports whether the value of d for a namespace and the cluster is the sum over
// their pods.
func isSumOfPods(d *metric.Descriptor) bool {
	return d.Kinds.Has(metric.Namespaced) && d.Unit != metric.Ratio
}

// isSumOfNodes reports whether the cluster's value of d is the sum over its nodes.
func isSumOfNodes(d *metric.Descriptor) bool {
	return d.Kinds.Has(metric.Cluster) && !d.Kinds.Has(metric.Namespaced) && d.Unit != metric.Ratio
}

// ratioWeights has the divisor of each of the cluster's ratios, such as allocatable CPU. A ratio is the
// mean over the nodes, weighted by it.
var ratioWeights = map[metric.ID]metric.ID{
	metric.CPUNodeReservation:              metric.CPUNodeAllocatable,
	metric.CPUNodeUtilization:              metric.CPUNodeAllocatable,
	metric.MemoryNodeReservation:           metric.MemoryNodeAllocatable,
	metric.MemoryNodeUtilization:           metric.MemoryNodeAllocatable,
	metric.EphemeralStorageNodeReservation: metric.EphemeralStorageNodeAllocatable,
	metric.EphemeralStorageNodeUtilization: metric.EphemeralStorageNodeAllocatable,
}

// computeTotals computes the totals of s. A metric that no member has is absent.
func (s *Snapshot) computeTotals() totals {
	cluster := &total{Sample: metric.Sample{Entity: metric.Entity{Kind: metric.Cluster}}}
	namespaces := map[metric.Namespace]*total{}
	s.Each(metric.Pod, func(pod *metric.Sample) bool {
		if pod.Entity.Part != "" {
			return true
		}
		n := namespaces[pod.Entity.Namespace]
		if n == nil {
			n = &total{Sample: metric.Sample{Entity: metric.Entity{Kind: metric.Namespaced, Namespace: pod.Entity.Namespace}}}
			namespaces[pod.Entity.Namespace] = n
		}
		n.add(pod, isSumOfPods)
		cluster.add(pod, isSumOfPods)
		return true
	})
	part, whole := map[metric.ID]float64{}, map[metric.ID]float64{}
	s.Each(metric.Node, func(node *metric.Sample) bool {
		if node.Entity.Part != "" {
			return true
		}
		cluster.add(node, isSumOfNodes)
		for ratio, divisor := range ratioWeights {
			share, ok := node.Values.Get(ratio)
			weight, known := node.Values.Get(divisor)
			if ok && known {
				part[ratio] += share * weight
				whole[ratio] += weight
			}
		}
		return true
	})
	for ratio := range part {
		if whole[ratio] > 0 {
			cluster.Values.Set(ratio, part[ratio]/whole[ratio])
		}
	}
	var t totals
	if cluster.counted {
		cluster.Instance.Processes = -1
		t.cluster = &cluster.Sample
	}
	for _, name := range slices.Sorted(maps.Keys(namespaces)) {
		if n := namespaces[name]; n.counted {
			n.Instance.Processes = -1
			t.namespaces = append(t.namespaces, &n.Sample)
		}
	}
	return t
}
