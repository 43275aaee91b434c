package log

import (
	"fmt"
	"strconv"

	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/metric"
)

// clock is the format of the time at the beginning of a line: RFC 3339 to the millisecond.
const clock = "2006-01-02T15:04:05.000Z07:00"

// appendText appends a batch as text for people. Values are in cores, seconds, bytes and
// ratios:
//
//	2026-01-02T03:04:05.000Z kubelet:resource n1: 91 samples, 90 with numbers, 1 rejected in 12ms; missing: 3 FirstSample, 1 NoData
//	  shop/web/app cpu/usage_rate=0.25 memory/working_set=4096; network Unsupported
func appendText(buf []byte, b *metric.Batch, verbose bool) []byte {
	s := summarize(b)
	buf = b.Ended.AppendFormat(buf, clock)
	buf = fmt.Appendf(buf, " %s", b.Source)
	if b.Node != "" {
		buf = fmt.Appendf(buf, " %s", b.Node)
	}
	buf = fmt.Appendf(buf, ": %d samples, %d with numbers", len(b.Samples), s.measured)
	if s.rejected > 0 {
		buf = fmt.Appendf(buf, ", %d rejected", s.rejected)
	}
	buf = append(buf, " in "...)
	buf = append(buf, humanize.Duration(s.duration)...)
	for i, m := range s.missing {
		buf = fmt.Appendf(buf, "%s%d %v", sep(i, "; missing: ", ", "), m.n, m.reason)
	}
	if b.Err != nil {
		buf = fmt.Appendf(buf, "; error: %q", b.Err.Error())
	}
	buf = append(buf, '\n')
	if !verbose {
		return buf
	}
	for i := range b.Samples {
		buf = append(appendSampleText(buf, &b.Samples[i]), '\n')
	}
	return buf
}

func appendSampleText(buf []byte, s *metric.Sample) []byte {
	buf = fmt.Appendf(buf, "  %s", humanize.Printable(s.Entity.String()))
	if s.Rejected() {
		return fmt.Appendf(buf, " rejected: %v", s.Reasons[metric.CPU])
	}
	for id, v := range s.Values.All() {
		if d := &metric.Catalogue[id]; s.Servable(d.Group) {
			buf = fmt.Appendf(buf, " %s=", d.Name)
			buf = strconv.AppendFloat(buf, inBaseUnit(v, d.Unit), 'f', -1, 64)
		}
	}
	n := 0
	for g, r := range s.Reasons {
		if r != metric.Unjudged && r != metric.Measured {
			buf = fmt.Appendf(buf, "%s%v %v", sep(n, "; ", ", "), metric.Group(g), r)
			n++
		}
	}
	return buf
}

func sep(i int, first, others string) string {
	if i == 0 {
		return first
	}
	return others
}

// inBaseUnit returns v in cores, seconds, bytes or ratios.
func inBaseUnit(v float64, u metric.Unit) float64 {
	switch u {
	case metric.Nanocores, metric.Nanoseconds:
		return v / 1e9 // exact to the nearest float64; the factor itself is rounded
	}
	return v * u.Prometheus()
}
