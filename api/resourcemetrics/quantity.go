package resourcemetrics

import (
	"math/bits"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/weir-metrics/weir/cluster/resourceusage"
)

// resourceSwap is the name of swap in use, by which "kubectl top --show-swap" asks for it.
const resourceSwap = corev1.ResourceName("swap")

// resourceList returns u in the API's form: "1500n", "4Ki". It has swap if swap is set and u reports it.
func resourceList(u *resourceusage.Usage, swap bool) corev1.ResourceList {
	list := corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewScaledQuantity(u.CPU, resource.Nano),
		corev1.ResourceMemory: *resource.NewQuantity(u.Memory, resource.BinarySI),
	}
	if swap && u.Swap >= 0 {
		list[resourceSwap] = *resource.NewQuantity(u.Swap, resource.BinarySI)
	}
	return list
}

// quantityText is a quantity as text: a number and a suffix. The zero quantityText is none.
type quantityText struct {
	value  uint64
	digits uint8 // how many digits value has
	suffix uint8
}

// The suffixes of powers of 1000, from nano on, and of powers of 1024.
var suffixes = [...]string{"n", "u", "m", "", "k", "M", "G", "T", "P", "E", "", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"}

// The indexes in suffixes of 1000^0 and 1024^0.
const (
	decimalOne = 3
	binaryOne  = 10
)

// cpuText returns the text of nanocores, which must not be negative.
func cpuText(nanocores int64) quantityText { return decimalText(uint64(nanocores), 0) }

// memoryText returns the text of bytes, which must not be negative. The
// library writes less than 1 Ki in decimals: 1000 is "1k".
func memoryText(bytes int64) quantityText {
	v := uint64(bytes)
	if v < 1024 {
		return decimalText(v, decimalOne)
	}
	thousands := uint8(bits.TrailingZeros64(v) / 10)
	v >>= 10 * thousands
	return quantityText{v, countDigits(v), binaryOne + thousands}
}

// decimalText returns v with the largest suffix that leaves an integer. suffix is the unit of
// v.
func decimalText(v uint64, suffix uint8) quantityText {
	if v == 0 {
		return quantityText{0, 1, decimalOne}
	}
	for v%1000 == 0 {
		v /= 1000
		suffix++
	}
	return quantityText{v, countDigits(v), suffix}
}

// isKnown reports whether q is a quantity.
func (q quantityText) isKnown() bool { return q.digits > 0 }

// size returns the length of q in bytes.
func (q quantityText) size() int { return int(q.digits) + len(suffixes[q.suffix]) }

// append appends q to b.
func (q quantityText) append(b []byte) []byte {
	return append(strconv.AppendUint(b, q.value, 10), suffixes[q.suffix]...)
}

var powersOfTen = func() (tens [20]uint64) {
	tens[0] = 1
	for i := 1; i < len(tens); i++ {
		tens[i] = 10 * tens[i-1]
	}
	return tens
}()

// countDigits returns how many decimal digits v has.
func countDigits(v uint64) uint8 {
	n := bits.Len64(v) * 1233 >> 12 // the number of digits, or one less: 1233/4096 is about log10 of 2
	if v >= powersOfTen[n] {
		n++
	}
	return uint8(max(n, 1))
}
