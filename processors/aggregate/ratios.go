package aggregate

import "github.com/weir-metrics/weir/metric"

// ratio is a share of something that a sample has too.
type ratio struct {
	id      metric.ID
	part    metric.ID
	of      metric.ID
	instead metric.ID // of this, where there is none of the former; 0 for nothing
	group   metric.Group
}

// Of a node without a cluster nothing is set aside: what it has is what there is
// for use.
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

// setRatios sets the ratios of every sample that has both numbers, and may
// serve them.
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
	of, ok := s.Values.Get(r.of)
	if !ok && r.instead != 0 {
		of, ok = s.Values.Get(r.instead)
	}
	if !ok || of <= 0 {
		return // Fast path: nothing was asked for
	}
	part, ok := s.Values.Get(r.part)
	if !ok || !s.Servable(r.group) {
		return
	}
	s.Values.Set(r.id, part/of)
	if s.Reasons[metric.Spec] == metric.Unjudged {
		s.Reasons[metric.Spec] = metric.Measured
	}
	if s.Times[metric.Spec] == 0 {
		s.Times[metric.Spec] = s.Times[r.group]
	}
}
