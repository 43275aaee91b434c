package enrich

import (
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// resources is an amount of each kind of request and limit. An unknown amount means no request
// or no limit.
type resources [len(requestKinds)]amount

type amount struct {
	value float64
	known bool
}

// kind is one request or limit.
type kind struct {
	id    metric.ID
	limit bool
}

// In the catalogue's order, because values are set fastest in that order.
var requestKinds = [...]kind{
	{id: metric.CPURequest},
	{id: metric.CPULimit, limit: true},
	{id: metric.MemoryRequest},
	{id: metric.MemoryLimit, limit: true},
	{id: metric.EphemeralStorageRequest},
	{id: metric.EphemeralStorageLimit, limit: true},
	{id: metric.AcceleratorRequest},
}

// resourcesOf returns a pod's requests and limits by Kubernetes' rule.
//
// Regular containers and sidecars run together, so they add up. An init container runs before
// the regular ones, beside the sidecars that precede it, so its request is not added: the pod
// requests the larger of both. Pod-level resources (Pod.Spec) replace either. Ephemeral
// containers request nothing.
//
// A pod has a limit only if each of its containers has one. The kubelet writes a limit into the
// pod's cgroup by the same rule.
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

// kindOf returns the index in requestKinds of a metric; -1 if it is not there.
func kindOf(id metric.ID) int {
	for i := range requestKinds {
		if requestKinds[i].id == id {
			return i
		}
	}
	return -1
}

// sum adds up one kind over a pod's containers.
type sum struct {
	together, sidecars, most float64
	containers               int // containers with such a request or limit
}

// add adds a container's amount. Init containers and sidecars must be added in the order they
// run.
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

// add adds o to r. The sum of limits counts only pods that have one.
func (r *resources) add(o *resources) {
	for i := range r {
		r[i].value += o[i].value
		r[i].known = r[i].known || o[i].known
	}
}

// set sets the known amounts in v.
func (r *resources) set(v *metric.Values) {
	for i, k := range requestKinds {
		if r[i].known {
			v.Set(k.id, r[i].value)
		}
	}
}
