package resourcemetrics

import (
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// use is what a node or container uses.
type use struct {
	name string // of the container
	// cpu is in nanocores, memory in bytes.
	cpu, memory int64
}

// resources returns u as the API spells it: "1500n", "4Ki".
func (u *use) resources() corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: u.cpuQuantity(), corev1.ResourceMemory: u.memoryQuantity()}
}

func (u *use) cpuQuantity() resource.Quantity {
	return *resource.NewScaledQuantity(u.cpu, resource.Nano)
}

func (u *use) memoryQuantity() resource.Quantity {
	return *resource.NewQuantity(u.memory, resource.BinarySI)
}

// whole returns the whole number nearest to v, within what an int64 holds.
func whole(v float64) int64 {
	v = math.Round(v)
	if v >= math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(v)
}
