package controller

import (
	"cmp"
	"slices"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/autoscaler/v1alpha1"
)

// The limits of a memory in a status.
const (
	maxSlices  = 12
	maxChanges = 60
)

// statusMemory returns a memory in the form of a status: the lowest and highest recommendation in
// each tenth of the longest window, and the changes of the longest period. Times are rounded up to
// seconds.
func statusMemory(m autoscaler.Memory, spec *autoscalingv2.HorizontalPodAutoscalerSpec, s *autoscaler.Settings, now time.Time) *v1alpha1.Memory {
	n := &v1alpha1.Memory{Recommendations: summarizeRecommendations(m.Recommendations, autoscaler.LongestWindow(spec, s), now)}
	if b := spec.Behavior; b != nil {
		n.Changes = append(statusChanges(m.Ups, 1, longestPeriod(b.ScaleUp), now), statusChanges(m.Downs, -1, longestPeriod(b.ScaleDown), now)...)
		slices.SortStableFunc(n.Changes, func(a, b v1alpha1.Change) int { return a.Time.Compare(b.Time.Time) })
		n.Changes = mergeChanges(n.Changes)
	}
	return n
}

// summarizeRecommendations returns the lowest and highest recommendation in each slice of a
// window.
func summarizeRecommendations(all []autoscaler.ReplicaRecommendation, window time.Duration, now time.Time) (list []v1alpha1.Recommendations) {
	slice := max(window/10, time.Second)
	all = slices.DeleteFunc(slices.Clone(all), func(r autoscaler.ReplicaRecommendation) bool { return now.Sub(r.At) > window })
	slices.SortStableFunc(all, func(a, b autoscaler.ReplicaRecommendation) int { return a.At.Compare(b.At) })
	var at int64
	for _, r := range all {
		position := r.At.UnixNano() / int64(slice)
		if len(list) == 0 || position != at {
			list = append(list, v1alpha1.Recommendations{Min: r.Replicas, Max: r.Replicas})
			at = position
		}
		last := &list[len(list)-1]
		last.Time, last.Min, last.Max = ceilSecond(r.At), min(last.Min, r.Replicas), max(last.Max, r.Replicas)
	}
	return list[max(0, len(list)-maxSlices):]
}

func statusChanges(all []autoscaler.ReplicaChange, sign int32, period time.Duration, now time.Time) (list []v1alpha1.Change) {
	for _, c := range all {
		if now.Sub(c.At) <= period {
			list = append(list, v1alpha1.Change{Time: ceilSecond(c.At), Replicas: sign * c.Replicas})
		}
	}
	return list
}

// mergeChanges merges the two oldest changes of one direction until at most maxChanges are left.
// The result has the time of the younger change.
func mergeChanges(all []v1alpha1.Change) []v1alpha1.Change {
	for len(all) > maxChanges {
		first := 0 // two of three changes have the same direction
		if up := all[0].Replicas > 0; up != (all[1].Replicas > 0) && up != (all[2].Replicas > 0) {
			first = 1
		}
		up := all[first].Replicas > 0
		next := first + 1 + slices.IndexFunc(all[first+1:], func(c v1alpha1.Change) bool { return up == (c.Replicas > 0) })
		all[next].Replicas += all[first].Replicas
		all = slices.Delete(all, first, first+1)
	}
	return all
}

// memoryFromStatus returns the memory of a status. Times in the future come from a wrong clock and
// count as now; otherwise they could stay in the window for a very long time.
func memoryFromStatus(n *v1alpha1.Memory, now time.Time) (m autoscaler.Memory) {
	if n == nil {
		return m
	}
	past := func(t metav1.Time) time.Time {
		if t.After(now) {
			return now
		}
		return t.Time
	}
	for _, r := range n.Recommendations {
		m.Recommendations = append(m.Recommendations, autoscaler.ReplicaRecommendation{Replicas: r.Max, At: past(r.Time)})
		if r.Min != r.Max {
			m.Recommendations = append(m.Recommendations, autoscaler.ReplicaRecommendation{Replicas: r.Min, At: past(r.Time)})
		}
	}
	for _, c := range n.Changes {
		if c.Replicas > 0 {
			m.Ups = append(m.Ups, autoscaler.ReplicaChange{Replicas: c.Replicas, At: past(c.Time)})
		} else if c.Replicas < 0 {
			m.Downs = append(m.Downs, autoscaler.ReplicaChange{Replicas: -c.Replicas, At: past(c.Time)})
		}
	}
	return m
}

// longestPeriod returns how far back changes in one direction matter.
func longestPeriod(r *autoscalingv2.HPAScalingRules) time.Duration {
	if r == nil || len(r.Policies) == 0 {
		return 0
	}
	longest := slices.MaxFunc(r.Policies, func(a, b autoscalingv2.HPAScalingPolicy) int { return cmp.Compare(a.PeriodSeconds, b.PeriodSeconds) })
	return time.Duration(longest.PeriodSeconds) * time.Second
}

// ceilSecond rounds up to a second: it does no harm if an entry is forgotten slightly later.
func ceilSecond(t time.Time) metav1.Time {
	if whole := t.Truncate(time.Second); whole.Equal(t) {
		return metav1.NewTime(t)
	}
	return metav1.NewTime(t.Truncate(time.Second).Add(time.Second))
}
