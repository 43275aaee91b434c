package log

import (
	"strconv"

	"github.com/weir-metrics/weir/humanize"
	"github.com/weir-metrics/weir/metric"
)

// clock is how lines begin: RFC 3339 to the millisecond.
const clock = "2006-01-02T15:04:05.000Z07:00"

// appendText appends a batch for people, values in cores, seconds, bytes and
// ratios:
//
//	2026-01-02T03:04:05.000Z kubelet:resource n1: 91 samples, 90 with numbers, 1 rejected in 12ms; missing: 3 FirstSample, 1 NoData
//	  shop/web/app cpu/usage_rate=0.25 memory/working_set=4096; network Unsupported
func appendText(buf []byte, b *metric.Batch, verbose bool) []byte {
	s := summarize(b)
	buf = b.Ended.AppendFormat(buf, clock)
	buf = append(buf, ' ')
	buf = append(buf, b.Source...)
	if b.Node != "" {
		buf = append(buf, ' ')
		buf = append(buf, b.Node...)
	}
	buf = append(buf, ": "...)
	buf = strconv.AppendInt(buf, int64(len(b.Samples)), 10)
	buf = append(buf, " samples, "...)
	buf = strconv.AppendInt(buf, int64(s.measured), 10)
	buf = append(buf, " with numbers"...)
	if s.rejected > 0 {
		buf = append(buf, ", "...)
		buf = strconv.AppendInt(buf, int64(s.rejected), 10)
		buf = append(buf, " rejected"...)
	}
	buf = append(buf, " in "...)
	buf = humanize.AppendDuration(buf, s.took)
	for i, m := range s.missing {
		buf = append(buf, sep(i, "; missing: ", ", ")...)
		buf = strconv.AppendInt(buf, int64(m.n), 10)
		buf = append(buf, ' ')
		buf = append(buf, m.reason.String()...)
	}
	if b.Err != nil {
		buf = append(buf, "; error: "...)
		buf = append(buf, strconv.Quote(b.Err.Error())...)
	}
	buf = append(buf, '\n')
	if !verbose {
		return buf
	}
	for i := range b.Samples {
		buf = appendSampleText(buf, &b.Samples[i])
	}
	return buf
}

func appendSampleText(buf []byte, s *metric.Sample) []byte {
	buf = append(buf, "  "...)
	buf = append(buf, printable(s.Entity.String())...)
	if s.Rejected() {
		buf = append(buf, " rejected: "...)
		buf = append(buf, s.Reasons[metric.CPU].String()...)
		return append(buf, '\n')
	}
	for id, v := range s.Values.All() {
		d := &metric.Catalogue[id]
		if !s.Servable(d.Group) {
			continue
		}
		buf = append(buf, ' ')
		buf = append(buf, d.Name...)
		buf = append(buf, '=')
		buf = strconv.AppendFloat(buf, inBaseUnit(v, d.Unit), 'f', -1, 64)
	}
	n := 0
	for g, r := range s.Reasons {
		if r == metric.Unjudged || r == metric.Measured {
			continue
		}
		buf = append(buf, sep(n, "; ", ", ")...)
		buf = append(buf, metric.Group(g).String()...)
		buf = append(buf, ' ')
		buf = append(buf, r.String()...)
		n++
	}
	return append(buf, '\n')
}

func sep(i int, first, others string) string {
	if i == 0 {
		return first
	}
	return others
}

// printable returns s, quoted if it would break the line or the terminal.
func printable(s string) string {
	for _, r := range s {
		if !strconv.IsPrint(r) {
			return strconv.Quote(s)
		}
	}
	return s
}

// inBaseUnit returns v in cores, seconds, bytes or ratios.
func inBaseUnit(v float64, u metric.Unit) float64 {
	switch u {
	case metric.Nanocores, metric.Nanoseconds:
		return v / 1e9 // the nearest; the factor itself is rounded
	}
	return v * u.Prometheus()
}
