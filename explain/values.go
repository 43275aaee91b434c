package explain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/metric"
)

// instant returns a time from nanoseconds since the Unix epoch. It is the zero time for 0.
func instant(ns int64) time.Time {
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(0, ns)
}

// value returns a group's number as text, and for CPU and memory also as a number: cores or bytes.
func value(s *metric.Sample, g metric.Group) (string, *float64) {
	switch g {
	case metric.CPU:
		v, _ := s.Values.Get(metric.CPUUsageRate)
		n := v * metric.Nanocores.Prometheus()
		text := humanize.Cores(v)
		if w := s.Rates[g].Length; w > 0 {
			text += " over " + humanize.Duration(w)
		}
		return text, &n
	case metric.Memory:
		v, _ := s.Values.Get(metric.MemoryWorkingSet)
		return humanize.Bytes(v), &v
	}
	var parts []string
	for _, p := range groupMetrics[g] {
		if v, ok := s.Values.Get(p.id); ok {
			parts = append(parts, fmt.Sprintf(p.format, amount(p.id, v)))
		}
	}
	return strings.Join(parts, ", "), nil
}

// groupMetrics are the metrics that describe a group.
var groupMetrics = map[metric.Group][]struct {
	id     metric.ID
	format string
}{
	metric.Network:     {{metric.NetworkRxRate, "%s in"}, {metric.NetworkTxRate, "%s out"}},
	metric.Filesystem:  {{metric.EphemeralStorageUsage, "%s of ephemeral storage"}, {metric.FilesystemUsage, "%s used"}, {metric.FilesystemLimit, "of %s"}},
	metric.IO:          {{metric.DiskReadBytesRate, "%s read"}, {metric.DiskWriteBytesRate, "%s written"}, {metric.IOPressureSomeRate, "waited for %s of the time"}},
	metric.Process:     {{metric.ProcessCount, "%s processes"}, {metric.ProcessThreads, "%s threads"}},
	metric.Accelerator: {{metric.AcceleratorMemoryUsed, "%s of accelerator memory"}, {metric.AcceleratorDutyCycle, "%s busy"}},
}

// noun names a group in a sentence.
func noun(g metric.Group) string {
	if g == metric.CPU {
		return "CPU"
	}
	return g.String()
}

func amount(id metric.ID, v float64) string {
	switch id.Describe().Unit {
	case metric.Bytes:
		return humanize.Bytes(v)
	case metric.BytesPerSecond:
		return humanize.BytesPerSecond(v)
	case metric.Ratio:
		return humanize.Percent(v)
	}
	return humanize.Decimal(v, 3)
}

// summary describes the findings in one or two sentences.
func summary(subject string, findings []Finding) string {
	var served []string
	var remarks, missing []*Finding
	var lacking [][]string // for each finding in missing, the names of its groups
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
		switch at := slices.IndexFunc(missing, f.sameCause); {
		case f.Served:
			served = append(served, name+" "+f.Value)
			if f.Message != "" && !slices.ContainsFunc(remarks, f.sameCause) {
				remarks = append(remarks, f)
			}
		case at < 0:
			missing, lacking = append(missing, f), append(lacking, []string{name})
		default:
			if missing[at].OtherGroup {
				missing[at] = f
			}
			lacking[at] = append(lacking[at], name)
		}
	}
	var all []string
	if len(served) > 0 {
		clause := fmt.Sprintf("%s uses %s", subject, strings.Join(served, " and "))
		for _, f := range remarks {
			clause += "; " + f.Message
		}
		all, subject = append(all, sentence(clause)), "it"
	}
	for i, f := range missing {
		all = append(all, sentence(fmt.Sprintf("%s has no %s: %s", subject, humanize.Or(lacking[i]), f.Message)))
	}
	return strings.Join(all, " ")
}

// sameCause reports whether f and o are missing, or in doubt, because of the same cause.
func (f *Finding) sameCause(o *Finding) bool {
	return f.Reason == o.Reason && f.Container == o.Container && f.Served == o.Served && f.LastKnown == o.LastKnown
}
