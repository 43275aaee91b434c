package resourcemetrics

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/weir-metrics/weir/metric/served"
)

// resources returns u as the API spells it: "1500n", "4Ki".
func resources(u *served.Use) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: cpuQuantity(u), corev1.ResourceMemory: memoryQuantity(u)}
}

func cpuQuantity(u *served.Use) resource.Quantity {
	return *resource.NewScaledQuantity(u.CPU, resource.Nano)
}

func memoryQuantity(u *served.Use) resource.Quantity {
	return *resource.NewQuantity(u.Memory, resource.BinarySI)
}
