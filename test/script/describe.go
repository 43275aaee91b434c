package script

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/test/transcript"
)

// describe writes what b holds, a line for each sample with its values and for
// each verdict with its evidence, in the order of entities.
func describe(b *metric.Batch) string {
	type line struct {
		entity metric.Entity
		text   string
	}
	var lines []line
	for i := range b.Samples {
		s := &b.Samples[i]
		lines = append(lines, line{s.Entity, describeSample(s)})
	}
	for i := range b.Verdicts {
		v := &b.Verdicts[i]
		lines = append(lines, line{v.Entity, fmt.Sprintf("    %v %v: %v", v.Entity, v.Group, describeVerdict(v))})
	}
	slices.SortFunc(lines, func(x, y line) int {
		if c := x.entity.Compare(y.entity); c != 0 {
			return c
		}
		// A sample's line before those of its verdicts.
		if indented := strings.HasPrefix(x.text, " "); indented != strings.HasPrefix(y.text, " ") {
			return map[bool]int{true: 1, false: -1}[indented]
		}
		return strings.Compare(x.text, y.text)
	})
	var out strings.Builder
	for _, l := range lines {
		out.WriteString(l.text + "\n")
	}
	if out.Len() == 0 {
		return "nothing\n"
	}
	return out.String()
}

func describeSample(s *metric.Sample) string {
	if s.Rejected() {
		return fmt.Sprintf("%v  rejected", s.Entity)
	}
	text := s.Entity.String()
	for i := range metric.NumGroups {
		g := metric.Group(i)
		var values []string
		for id, v := range s.Values.All() {
			if id.Describe().Group == g {
				values = append(values, name(id)+" "+amount(id, v))
			}
		}
		switch {
		case s.Servable(g):
			if s.Reasons[g] == metric.Ambiguous {
				values = append(values, "(Ambiguous)")
			}
			if w := s.Rates[g]; w.End != 0 {
				values = append(values, fmt.Sprintf("over %v to %v", w.Length, time.Unix(0, w.End).Sub(transcript.Epoch)))
			}
			if s.LastKnown&(1<<g) != 0 {
				values = append(values, "(held)")
			}
		case s.Reasons[g] != metric.Unjudged:
			values = []string{"no " + g.String()}
		case len(values) > 0:
			values = append(values, "(Unjudged)")
		}
		if len(values) > 0 {
			text += "  " + strings.Join(values, " ") + ";"
		}
	}
	return strings.TrimSuffix(text, ";")
}

// name shortens the names that fill these transcripts.
func name(id metric.ID) string {
	switch id {
	case metric.CPUUsageRate:
		return "cpu"
	case metric.MemoryWorkingSet:
		return "memory"
	}
	return id.String()
}

func amount(id metric.ID, v float64) string {
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }
	switch id.Describe().Unit {
	case metric.Nanocores:
		return number(v/1e6) + "m"
	case metric.Nanoseconds:
		return time.Duration(v).String()
	case metric.Bytes:
		if v != 0 && float64(int64(v)>>20<<20) == v {
			return number(v/(1<<20)) + "Mi"
		}
	case metric.Ratio:
		return number(v*100) + "%"
	}
	return number(v)
}

func describeVerdict(v *metric.Verdict) string {
	var why []string
	if v.Evidence.Name != "" {
		why = append(why, v.Evidence.Name)
	}
	if v.Evidence.Cause != metric.Unjudged {
		why = append(why, v.Evidence.Cause.String())
	}
	if v.Evidence.Err != nil {
		why = append(why, v.Evidence.Err.Error())
	}
	if v.Evidence.Rule != "" {
		why = append(why, "rule "+v.Evidence.Rule)
	}
	if id := v.Evidence.Got.ID; id != "" {
		why = append(why, "got "+string(id))
	}
	if id := v.Evidence.Other.ID; id != "" {
		why = append(why, "other "+string(id))
	}
	if v.Evidence.Limit != 0 {
		why = append(why, fmt.Sprintf("bound %v", v.Evidence.Limit))
	}
	if v.Evidence.Due != 0 {
		why = append(why, fmt.Sprintf("next at %v", transcript.Offset(v.Evidence.Due)))
	}
	if len(why) == 0 {
		return v.Reason.String()
	}
	return fmt.Sprintf("%v (%s)", v.Reason, strings.Join(why, ", "))
}
