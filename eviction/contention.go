package eviction

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// The node conditions of KEP-5394, by the stalls of the whole node. No release of Kubernetes up to
// 1.37 sets them. The KEP also has two for the cgroup of all pods, and has not decided which
// of the two pairs will be kept.
const (
	NodeSystemMemoryContention corev1.NodeConditionType = "SystemMemoryContentionPressure"
	NodeSystemDiskContention   corev1.NodeConditionType = "SystemDiskContentionPressure"
)

// ContentionTaint returns the key of the taint that belongs to a condition of KEP-5394; empty for
// another condition.
func ContentionTaint(c corev1.NodeConditionType) string {
	switch c {
	case NodeSystemMemoryContention:
		return "node.kubernetes.io/memory-contention-pressure"
	case NodeSystemDiskContention:
		return "node.kubernetes.io/disk-contention-pressure"
	default:
		return ""
	}
}

// ContentionThreshold is the stall from which a condition of KEP-5394 can be set, as a share of the
// time in percent: of "some", the time in which at least one task waits. The KEP does not show which
// share it means.
type ContentionThreshold struct {
	Condition corev1.NodeConditionType
	Percent   float64
}

// ParseContention returns the thresholds of a map from memory and io to percent, or one error that
// joins all mistakes.
func ParseContention(percents map[string]string) (list []ContentionThreshold, err error) {
	for _, resource := range slices.Sorted(maps.Keys(percents)) {
		t := ContentionThreshold{Condition: map[string]corev1.NodeConditionType{"memory": NodeSystemMemoryContention, "io": NodeSystemDiskContention}[resource]}
		var parseErr error
		t.Percent, parseErr = strconv.ParseFloat(percents[resource], 64)
		switch {
		case t.Condition == "":
			err = errors.Join(err, fmt.Errorf("%q is neither memory nor io", resource))
		case parseErr != nil || !(t.Percent > 0 && t.Percent <= 100):
			err = errors.Join(err, fmt.Errorf("%s=%s is not a percentage above 0 and up to 100", resource, percents[resource]))
		default:
			list = append(list, t)
		}
	}
	return list, err
}

// Contention is the state of a condition of KEP-5394.
type Contention struct {
	ContentionThreshold
	// Avg10 and Avg60 are the last known stalls, in percent of the time.
	Avg10, Avg60 float64
	// Unknown is set if the stalls cannot be read now. Reported then stays as it was.
	Unknown bool
	// Reported is set if the condition is true: it begins when both averages have reached the
	// threshold, and ends when Avg60 is below it.
	Reported bool
}

// Trend compares both averages with the threshold. It is high if both have reached it, falling if
// only Avg60 has, rising if only Avg10 has, and else low.
func (c *Contention) Trend() string {
	switch long, short := c.Avg60 >= c.Percent, c.Avg10 >= c.Percent; {
	case long && short:
		return "high"
	case long:
		return "falling"
	case short:
		return "rising"
	default:
		return "low"
	}
}

// compareContention returns the state of each threshold after the states before.
func compareContention(thresholds []ContentionThreshold, before []Contention, node *stats.NodeStats) []Contention {
	var list []Contention
	for _, t := range thresholds {
		c := Contention{ContentionThreshold: t}
		if i := slices.IndexFunc(before, func(b Contention) bool { return b.ContentionThreshold == t }); i >= 0 {
			c = before[i]
		}
		var psi *stats.PSIStats
		switch {
		case t.Condition == NodeSystemMemoryContention && node.Memory != nil:
			psi = node.Memory.PSI
		case t.Condition == NodeSystemDiskContention && node.IO != nil:
			psi = node.IO.PSI
		}
		if c.Unknown = psi == nil || !isShare(psi.Some.Avg10) || !isShare(psi.Some.Avg60); !c.Unknown {
			c.Avg10, c.Avg60 = psi.Some.Avg10, psi.Some.Avg60
			c.Reported = c.Avg60 >= t.Percent && (c.Reported || c.Avg10 >= t.Percent)
		}
		list = append(list, c)
	}
	return list
}

// isShare reports whether a figure can be a share of the time in percent.
func isShare(percent float64) bool { return percent >= 0 && percent <= 100 }
