package explain

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/weir-metrics/weir/metric"
)

// instant returns the time of nanoseconds since the Unix epoch; zero for 0.
func instant(ns int64) time.Time {
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(0, ns)
}

// clock writes a time of day, with the date unless it is now's.
func clock(t, now time.Time) string {
	t, now = t.UTC(), now.UTC()
	layout := "15:04:05"
	if t.Nanosecond() >= int(time.Millisecond) {
		layout = "15:04:05.000"
	}
	if t.YearDay() != now.YearDay() || t.Year() != now.Year() {
		layout = "2006-01-02 15:04:05"
	}
	return t.Format(layout) + " UTC"
}

// ago says how long t is past: "3 min ago"; nothing of an unknown time.
func (t *teller) ago(at time.Time) string {
	switch d := t.now.Sub(at); {
	case at.IsZero():
		return ""
	case d < -time.Second:
		return metric.Span(d) + " ahead of weir's clock"
	case d < time.Second:
		return "just now"
	default:
		return metric.Span(d) + " ago"
	}
}

// at says when something was: "at 12:00:05 UTC (3 s ago)".
func (t *teller) at(at time.Time) string {
	if at.IsZero() {
		return "at an unknown time"
	}
	return fmt.Sprintf("at %s (%s)", clock(at, t.now), t.ago(at))
}

// toBe says until when a pod that is being deleted was given: a deletion's time
// is when its grace ends.
func (t *teller) toBe(at time.Time) string {
	if d := at.Sub(t.now); d > 0 {
		return "with " + metric.Span(d) + " of grace left"
	}
	return "its grace ended " + t.ago(at)
}

// value says a group's number in words, and for CPU and memory as a number:
// cores, bytes.
func value(s *metric.Sample, g metric.Group) (string, *float64) {
	get := func(id metric.ID) (float64, bool) { return s.Values.Get(id) }
	switch g {
	case metric.CPU:
		v, _ := get(metric.CPUUsageRate)
		n := v * metric.Nanocores.Prometheus()
		text := millicores(v)
		if w := s.Rates[g].Length; w > 0 {
			text += " over " + window(w)
		}
		return text, &n
	case metric.Memory:
		v, _ := get(metric.MemoryWorkingSet)
		return bytes(v), &v
	}
	var parts []string
	for _, p := range says[g] {
		if v, ok := get(p.id); ok {
			parts = append(parts, fmt.Sprintf(p.format, amount(p.id, v)))
		}
	}
	return strings.Join(parts, ", "), nil
}

// says are the metrics by which a group is told.
var says = map[metric.Group][]struct {
	id     metric.ID
	format string
}{
	metric.Network:     {{metric.NetworkRxRate, "%s in"}, {metric.NetworkTxRate, "%s out"}},
	metric.Filesystem:  {{metric.EphemeralStorageUsage, "%s of ephemeral storage"}, {metric.FilesystemUsage, "%s used"}, {metric.FilesystemLimit, "of %s"}},
	metric.IO:          {{metric.DiskReadBytesRate, "%s read"}, {metric.DiskWriteBytesRate, "%s written"}},
	metric.Process:     {{metric.ProcessCount, "%s processes"}, {metric.ProcessThreads, "%s threads"}},
	metric.Accelerator: {{metric.AcceleratorMemoryUsed, "%s of accelerator memory"}, {metric.AcceleratorDutyCycle, "%s busy"}},
}

func amount(id metric.ID, v float64) string {
	switch id.Describe().Unit {
	case metric.Bytes:
		return bytes(v)
	case metric.BytesPerSecond:
		return bytes(v) + "/s"
	case metric.Ratio:
		return fmt.Sprintf("%.3g%%", v*100)
	}
	return fmt.Sprintf("%.6g", v)
}

// millicores writes CPU as Kubernetes does, with a digit after the point where it
// would otherwise be all that is lost.
func millicores(nanocores float64) string {
	m := nanocores / 1e6
	if m > 0 && m < 10 {
		return fmt.Sprintf("%.2gm", m)
	}
	return fmt.Sprintf("%.0fm", m)
}

// bytes writes an amount as Kubernetes does, in the largest unit that leaves
// something before the point.
func bytes(v float64) string {
	unit := 0
	for math.Abs(v) >= 1024 && unit < 5 {
		v, unit = v/1024, unit+1
	}
	name := [...]string{"", "Ki", "Mi", "Gi", "Ti", "Pi"}[unit]
	if v >= 100 || v == math.Trunc(v) {
		return fmt.Sprintf("%.0f%s", v, name)
	}
	return fmt.Sprintf("%.3g%s", v, name)
}

// window writes the length of a window: "12.4s".
func window(d time.Duration) string { return d.Round(100 * time.Millisecond).String() }

// noun names a group in a sentence.
func noun(g metric.Group) string {
	if g == metric.CPU {
		return "CPU"
	}
	return g.String()
}

// sentence makes a sentence of a clause.
func sentence(s string) string {
	if s == "" {
		return ""
	}
	return strings.ToUpper(s[:1]) + s[1:] + "."
}

// summary says in one or two sentences what was found of something.
func summary(what string, findings []Finding) string {
	var served, beside, missing []string
	reasons := map[string][]string{}
	for i := range findings {
		f := &findings[i]
		name := f.Group
		switch name {
		case metric.CPU.String():
			name = noun(metric.CPU)
		case metric.Memory.String():
		default:
			continue
		}
		switch {
		case !f.Served:
			if reasons[f.Message] == nil {
				missing = append(missing, f.Message)
			}
			reasons[f.Message] = append(reasons[f.Message], name)
		default:
			served = append(served, name+" "+f.Value)
			if f.Message != "" && !slices.Contains(beside, f.Message) {
				beside = append(beside, f.Message)
			}
		}
	}
	var all []string
	if len(served) > 0 {
		all = append(all, sentence(strings.Join(append([]string{fmt.Sprintf("%s uses %s", what, strings.Join(served, " and "))}, beside...), "; ")))
	}
	if len(missing) == 2 && strings.TrimPrefix(missing[1], wholes) == missing[0] {
		// One group is missing for the other's sake: nothing more to say.
		reasons[missing[0]] = append(reasons[missing[0]], reasons[missing[1]]...)
		missing = missing[:1]
	}
	if len(served) > 0 {
		what = "it"
	}
	for _, m := range missing {
		all = append(all, sentence(fmt.Sprintf("%s has no %s: %s", what, strings.Join(reasons[m], " or "), m)))
	}
	return strings.Join(all, " ")
}

// wholes begins the message of a group that is missing for another's sake.
const wholes = "a pod is served whole, and "
