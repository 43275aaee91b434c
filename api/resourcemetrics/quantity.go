package resourcemetrics

import (
	"strconv"

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

// maxQuantity is how many bytes a quantity has at most: the digits of an int64 and a
// suffix.
const maxQuantity = 19 + 2

var (
	// The suffixes of a thousandfold, from nano on, and of 1024-fold, from one on.
	decimalSuffixes = [...]string{"n", "u", "m", "", "k", "M", "G", "T", "P", "E"}
	binarySuffixes  = [...]string{"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"}
)

// ones is the index of the decimal suffix of one.
const ones = 3

// appendCPU appends what cpuQuantity's String returns for so many nanocores, which are
// not negative.
func appendCPU(b []byte, nanocores int64) []byte { return appendDecimal(b, nanocores, 0) }

// appendMemory appends what memoryQuantity's String returns for so many bytes, which
// are not negative. The library spells less than a Ki in decimals: 1000 is "1k".
func appendMemory(b []byte, bytes int64) []byte {
	if bytes < 1024 {
		return appendDecimal(b, bytes, ones)
	}
	suffix := 0
	for bytes%1024 == 0 {
		bytes /= 1024
		suffix++
	}
	b = strconv.AppendInt(b, bytes, 10)
	return append(b, binarySuffixes[suffix]...)
}

// appendDecimal appends v with the largest suffix that leaves it whole; suffix is what
// v counts.
func appendDecimal(b []byte, v int64, suffix int) []byte {
	if v == 0 {
		return append(b, '0')
	}
	for v%1000 == 0 {
		v /= 1000
		suffix++
	}
	b = strconv.AppendInt(b, v, 10)
	return append(b, decimalSuffixes[suffix]...)
}
