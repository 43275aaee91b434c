package aggregate

import "github.com/weir-metrics/weir/metric"

// ratio is one value of a sample divided by another.
type ratio struct {
	id      metric.ID
	part    metric.ID
	whole   metric.ID
	instead metric.ID // used if the sample has no of; 0 for none
	group   metric.Group
}

// A node without a cluster has no allocatable, so its ratios use the capacity.
var ratiosOf = [metric.NumKinds][]ratio{
	metric.Container: useOfRequest,
	metric.Pod:       useOfRequest,
	metric.Node: {
		{metric.CPUNodeUtilization, metric.CPUUsageRate, metric.CPUNodeAllocatable, metric.CPUNodeCapacity, metric.CPU},
		{metric.MemoryNodeUtilization, metric.MemoryWorkingSet, metric.MemoryNodeAllocatable, metric.MemoryNodeCapacity, metric.Memory},
		{metric.EphemeralStorageNodeUtilization, metric.EphemeralStorageUsage, metric.EphemeralStorageNodeAllocatable, metric.EphemeralStorageNodeCapacity, metric.Filesystem},
		{metric.CPUNodeReservation, metric.CPURequest, metric.CPUNodeAllocatable, 0, metric.Spec},
		{metric.MemoryNodeReservation, metric.MemoryRequest, metric.MemoryNodeAllocatable, 0, metric.Spec},
		{metric.EphemeralStorageNodeReservation, metric.EphemeralStorageRequest, metric.EphemeralStorageNodeAllocatable, 0, metric.Spec},
	},
}

var useOfRequest = []ratio{
	{metric.CPUUtilization, metric.CPUUsageRate, metric.CPURequest, 0, metric.CPU},
	{metric.MemoryUtilization, metric.MemoryWorkingSet, metric.MemoryRequest, 0, metric.Memory},
}

// setRatios sets the ratios of every sample that has both numbers and may serve them.
func setRatios(b *metric.Batch) {
	for i := range b.Samples {
		s := &b.Samples[i]
		if s.Rejected() || s.Entity.Part != "" {
			continue
		}
		for j := range ratiosOf[s.Entity.Kind] {
			setRatio(s, &ratiosOf[s.Entity.Kind][j])
		}
	}
}

func setRatio(s *metric.Sample, r *ratio) {
	whole, ok := s.Values.Get(r.whole)
	if !ok && r.instead != 0 {
		whole, ok = s.Values.Get(r.instead)
	}
	if !ok || whole <= 0 {
		return // Fast path: there is no request
	}
	part, ok := s.Values.Get(r.part)
	if !ok || !s.Servable(r.group) {
		return
	}
	s.Values.Set(r.id, part/whole)
	if s.Reasons[metric.Spec] == metric.Unjudged {
		s.Reasons[metric.Spec] = metric.Measured
	}
	if s.Times[metric.Spec] == 0 {
		s.Times[metric.Spec] = s.Times[r.group]
	}
}
