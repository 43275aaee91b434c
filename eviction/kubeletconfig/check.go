package kubeletconfig

import (
	"fmt"
	"math"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/weir-metrics/weir/eviction"
	"github.com/weir-metrics/weir/eviction/execute"
)

// Check returns a sentence for each threshold for which the kubelet would act before weir or at the
// same time. The sentence says what to change. capacity returns the capacity of a signal (bytes,
// inodes, process ids; 0 if not known). It is called if an amount is compared with a percentage,
// and may be nil. In mode observe weir evicts no pod, and the result is empty.
func Check(kubelet *Kubelet, own []eviction.Threshold, mode execute.Mode, capacity func(eviction.Signal) int64) []string {
	if mode == execute.Observe {
		return nil
	}
	if capacity == nil {
		capacity = func(eviction.Signal) int64 { return 0 }
	}
	var list []string
	for i := range kubelet.Thresholds {
		t := &kubelet.Thresholds[i]
		switch t.Signal {
		case eviction.ContainerFsAvailable, eviction.ContainerFsInodesFree:
			continue // they always equal those of the file system that containers are on
		}
		if words := compareWithOwn(kubelet, t, own, capacity(t.Signal)); words != "" {
			list = append(list, words)
		}
	}
	return list
}

// compareWithOwn looks for a threshold of weir that is in force before the kubelet's threshold t,
// with a large enough margin. If there is none, it returns the problem of the best one.
func compareWithOwn(kubelet *Kubelet, t *eviction.Threshold, own []eviction.Threshold, capacity int64) string {
	words, least := "", math.MaxInt
	for i := range own {
		o := &own[i]
		if o.Signal != t.Signal {
			continue
		}
		problem, size := thresholdProblem(kubelet, t, o, capacity)
		if size < least {
			words, least = problem, size
		}
	}
	if least == math.MaxInt {
		return fmt.Sprintf("the kubelet evicts for %s, and weir has no threshold of it, so the kubelet acts alone there: for weir to act first, add %s", t, suggestedThreshold(t))
	}
	return words
}

// thresholdProblem returns the problem with a threshold of weir, and the size of the problem.
func thresholdProblem(kubelet *Kubelet, t, o *eviction.Threshold, capacity int64) (problem string, size int) {
	theirs, ours, ok := comparableAmounts(t, o, capacity)
	switch {
	case !ok:
		return fmt.Sprintf("weir's %s cannot be compared with the kubelet's %s, as the capacity is not known: write both as a percentage or both as an amount", o, t), 3
	case ours < theirs, ours == theirs && o.Grace >= t.Grace:
		return fmt.Sprintf("weir's %s is not above the kubelet's %s: the kubelet acts first, or both take a pod at the same time. Set weir's to %s or more", o, t, suggestedThreshold(t)), 4
	case o.Grace > t.Grace && t.Hard():
		return fmt.Sprintf("weir's %s waits and the kubelet's %s does not, so the kubelet acts first: add a hard threshold, %s", o, t, suggestedThreshold(t)), 2
	case o.Grace > t.Grace:
		return fmt.Sprintf("weir's %s waits longer than the kubelet's %s, so the kubelet acts first: set a grace period of %s or less", o, t, t.Grace), 2
	case ours < theirs*(1+minMargin(t.Signal))*(1-rounding) && o.Grace == t.Grace:
		reason := ""
		if kubelet.KernelMemcgNotification && t.Signal.Resource() == "memory" {
			reason = ", which the kernel wakes as well (kernelMemcgNotification)"
		}
		return fmt.Sprintf("weir's %s is close above the kubelet's %s%s: that may be crossed as well before a pod is gone. Set weir's to %s or more", o, t, reason, suggestedThreshold(t)), 1
	}
	return "", 0
}

// rounding is the error of percentages, because they are 32-bit floats.
const rounding = 1e-6

// minMargin returns how far weir's threshold should be above the kubelet's, as a share of the
// kubelet's. Memory is used up within seconds, disks within minutes.
func minMargin(s eviction.Signal) float64 {
	switch s {
	case eviction.MemoryAvailable, eviction.AllocatableMemoryAvailable, eviction.PIDAvailable:
		return 0.5
	default:
		return 0.2
	}
}

// comparableAmounts converts two thresholds to the same unit: the signal's unit, or a share of the
// capacity. It returns false if it needs the capacity and the capacity is not known.
func comparableAmounts(t, o *eviction.Threshold, capacity int64) (theirs, ours float64, ok bool) {
	if (t.Value.Quantity == nil) == (o.Value.Quantity == nil) {
		capacity = 1
	}
	amount := func(v *eviction.ThresholdValue) float64 {
		if v.Quantity != nil {
			q := v.Quantity.DeepCopy()
			return q.AsApproximateFloat64()
		}
		return float64(v.Fraction) * float64(capacity)
	}
	return amount(&t.Value), amount(&o.Value), capacity > 0
}

// suggestedThreshold returns a threshold with enough margin above t.
func suggestedThreshold(t *eviction.Threshold) string {
	b := eviction.Threshold{Signal: t.Signal, Value: t.Value, Grace: t.Grace}
	more := 1 + minMargin(t.Signal)
	if q := t.Value.Quantity; q != nil {
		// Whole mebibytes are easy to read.
		const whole = 1 << 20
		n := q.AsApproximateFloat64() * more
		if q.Format == resource.BinarySI && n > whole {
			n = math.Ceil(n/whole) * whole
		}
		b.Value.Quantity = resource.NewQuantity(int64(min(n, math.MaxInt64/2)), q.Format)
	} else {
		b.Value.Fraction = float32(min(1, math.Ceil(float64(t.Value.Fraction)*more*1000-0.001)/1000))
	}
	return b.String()
}
