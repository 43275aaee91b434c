package decisionreport

import (
	"math"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// unit is how the thousandths of a metric are written.
type unit uint8

// The units.
const (
	plainNumber unit = iota // of nothing in particular
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

// exact writes thousandths as a Kubernetes quantity, without rounding.
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

// display writes thousandths for people.
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
		return decimal(size, 1) + suffixes[i]
	}
	return decimal(float64(milli)/1000, 3)
}

// ratio writes a ratio with as many digits as tell how it was rounded up.
func ratio(r float64) string { return decimal(r, 4) }

// decimal writes a number with at most so many digits after the point.
func decimal(v float64, digits int) string {
	s := strconv.FormatFloat(v, 'f', digits, 64)
	if strings.ContainsRune(s, '.') {
		s = strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
	}
	return s
}

// lasting writes a length of time as people do: "5m", "1m30s", "12.4s".
func lasting(d time.Duration) string {
	if d >= time.Minute {
		d = d.Round(time.Second)
	} else {
		d = d.Round(100 * time.Millisecond)
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// clock writes a time of the day of a decision, and the date where it is another.
func clock(at, now time.Time) string {
	at, now = at.UTC(), now.UTC()
	if y, m, d := now.Date(); at.Year() == y && at.Month() == m && at.Day() == d {
		return at.Format("15:04:05")
	}
	return at.Format("2006-01-02 15:04:05")
}

// plural writes a count with its noun: "1 pod", "3 pods".
func plural[N int | int32](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.FormatInt(int64(n), 10) + " " + noun + "s"
}
