package enrich

import "github.com/weir-metrics/weir/metric"

// resources is an amount of everything that can be asked for. What is not known
// was not asked for, or has no limit.
type resources [len(kinds)]amount

type amount struct {
	value float64
	known bool
}

// kind is one thing that can be asked for.
type kind struct {
	id    metric.ID
	limit bool
}

var kinds = [...]kind{
	{id: metric.CPURequest},
	{id: metric.MemoryRequest},
	{id: metric.EphemeralStorageRequest},
	{id: metric.AcceleratorRequest},
	{id: metric.CPULimit, limit: true},
	{id: metric.MemoryLimit, limit: true},
	{id: metric.EphemeralStorageLimit, limit: true},
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
func resourcesOf(pod *metric.PodFacts) resources {
	var total resources
	for i, k := range kinds {
		if v, ok := pod.Spec.Get(k.id); ok {
			total[i] = amount{v, true}
		} else {
			total[i] = k.of(pod)
		}
	}
	return total
}

// of returns the amount of one kind that pod's containers ask for.
func (k kind) of(pod *metric.PodFacts) amount {
	var together, sidecars, most float64
	any, all := false, true
	for i := range pod.Containers {
		c := &pod.Containers[i]
		if c.Role == metric.Ephemeral {
			continue
		}
		v, ok := c.Spec.Get(k.id)
		any, all = any || ok, all && ok
		switch c.Role {
		case metric.Init: // in the order they run
			most = max(most, v+sidecars)
		case metric.Sidecar:
			sidecars += v
			most = max(most, sidecars)
			together += v
		default:
			together += v
		}
	}
	if !any || k.limit && !all {
		return amount{}
	}
	return amount{max(together, most), true}
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
	for i, k := range kinds {
		if r[i].known {
			v.Set(k.id, r[i].value)
		}
	}
}
