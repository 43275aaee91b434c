package enrich

import (
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// resources is an amount of everything that can be asked for. What is not known
// was not asked for, or has no limit.
type resources [len(requestKinds)]amount

type amount struct {
	value float64
	known bool
}

// kind is one thing that can be asked for.
type kind struct {
	id    metric.ID
	limit bool
}

// In the catalogue's order, in which they are cheapest to set.
var requestKinds = [...]kind{
	{id: metric.CPURequest},
	{id: metric.CPULimit, limit: true},
	{id: metric.MemoryRequest},
	{id: metric.MemoryLimit, limit: true},
	{id: metric.EphemeralStorageRequest},
	{id: metric.EphemeralStorageLimit, limit: true},
	{id: metric.AcceleratorRequest},
}

// resourcesOf returns what a pod asks for by Kubernetes' rule.
//
// Regular containers and sidecars run together, so they add up. An init
// container runs before the regular ones, beside the sidecars that precede it,
// so what it needs is not added but must fit: the pod asks for the larger. What
// is given for the pod as a whole (PodFacts.Spec) takes the place of either.
// Ephemeral containers ask for nothing.
//
// A pod has a limit only where each of its containers has one; that is also when
// the kubelet writes one into the pod's cgroup.
func resourcesOf(pod *cluster.Pod) resources {
	var sums [len(requestKinds)]sum
	containers := 0
	for i := range pod.Containers {
		c := &pod.Containers[i]
		if c.Role == cluster.Ephemeral {
			continue
		}
		containers++
		for id, v := range c.Spec.All() {
			if k := kindOf(id); k >= 0 {
				sums[k].add(c.Role, v)
			}
		}
	}
	var total resources
	for i, k := range requestKinds {
		if s := &sums[i]; s.containers > 0 && (!k.limit || s.containers == containers) {
			total[i] = amount{max(s.together, s.most), true}
		}
	}
	for id, v := range pod.Spec.All() {
		if k := kindOf(id); k >= 0 {
			total[k] = amount{v, true}
		}
	}
	return total
}

// kindOf returns the index in kinds of a metric; -1 if it is none of them.
func kindOf(id metric.ID) int {
	for i := range requestKinds {
		if requestKinds[i].id == id {
			return i
		}
	}
	return -1
}

// sum is what a pod's containers ask for of one kind.
type sum struct {
	together, sidecars, most float64
	containers               int // that ask
}

// add takes in what a container asks for. Init containers and sidecars are taken in in
// the order they run.
func (s *sum) add(role cluster.Role, v float64) {
	s.containers++
	switch role {
	case cluster.Init:
		s.most = max(s.most, v+s.sidecars)
	case cluster.Sidecar:
		s.sidecars += v
		s.most = max(s.most, s.sidecars)
		s.together += v
	default:
		s.together += v
	}
}

// add adds o to r. The sum of limits is of those that are limited.
func (r *resources) add(o *resources) {
	for i := range r {
		r[i].value += o[i].value
		r[i].known = r[i].known || o[i].known
	}
}

// set puts what is known into v.
func (r *resources) set(v *metric.Values) {
	for i, k := range requestKinds {
		if r[i].known {
			v.Set(k.id, r[i].value)
		}
	}
}
