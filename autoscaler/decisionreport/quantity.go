package decisionreport

import (
	"math"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/weir-metrics/weir/internal/humanize"
)

// unit describes how to format the thousandths of a metric.
type unit uint8

// The units.
const (
	plainNumber unit = iota // a number without a unit
	millicores
	byteCount
)

// unitOf returns the unit of a resource.
func unitOf(name corev1.ResourceName) unit {
	switch name {
	case corev1.ResourceCPU:
		return millicores
	case corev1.ResourceMemory, corev1.ResourceEphemeralStorage, corev1.ResourceStorage:
		return byteCount
	}
	return plainNumber
}

// exact formats thousandths as a Kubernetes quantity, without rounding.
func (u unit) exact(milli int64) string {
	format := resource.DecimalSI
	if u == byteCount {
		format = resource.BinarySI
		if milli%1000 == 0 {
			return resource.NewQuantity(milli/1000, format).String()
		}
	}
	return resource.NewMilliQuantity(milli, format).String()
}

// display formats thousandths for people: millicores, bytes in a binary unit with one digit after
// the point, other numbers with three digits. Package humanize rounds CPU and bytes to three
// digits, which is too few to check a ratio.
func (u unit) display(milli int64) string {
	switch u {
	case millicores:
		return strconv.FormatInt(milli, 10) + "m"
	case byteCount:
		size, suffixes := float64(milli)/1000, [...]string{"", "Ki", "Mi", "Gi", "Ti", "Pi"}
		i := 0
		for math.Abs(size) >= 1024 && i < len(suffixes)-1 {
			size /= 1024
			i++
		}
		return humanize.Decimal(size, 1) + suffixes[i]
	}
	return humanize.Decimal(float64(milli)/1000, 3)
}

// formatRatio formats a ratio with four digits after the point, which is enough to check how it was
// rounded up.
func formatRatio(r float64) string { return humanize.Decimal(r, 4) }
