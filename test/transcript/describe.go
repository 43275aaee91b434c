package transcript

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-metrics/weir/metric"
)

// Describe returns a batch after its last step as text, in the order of
// entities: a line for each sample with its values, and a line for each verdict
// that is not in the line of a sample.
func Describe(b *metric.Batch) string {
	type line struct {
		entity metric.Entity
		text   string
	}
	var all []line
	shown := make([]bool, len(b.Verdicts))
	for i := range b.Samples {
		all = append(all, line{b.Samples[i].Entity, describeSample(b, &b.Samples[i], shown)})
	}
	for i := range b.Verdicts {
		if v := &b.Verdicts[i]; !shown[i] {
			all = append(all, line{v.Entity, fmt.Sprintf("%v  %v: %s", v.Entity, v.Group, describeVerdict(v))})
		}
	}
	if len(all) == 0 {
		return "nothing\n"
	}
	slices.SortFunc(all, func(x, y line) int {
		if c := x.entity.Compare(y.entity); c != 0 {
			return c
		}
		return strings.Compare(x.text, y.text)
	})
	var out strings.Builder
	for _, l := range all {
		out.WriteString(l.text + "\n")
	}
	return out.String()
}

// describeSample returns a sample as text, and marks in shown the verdicts that
// the text contains.
func describeSample(b *metric.Batch, s *metric.Sample, shown []bool) string {
	name := s.Entity.String()
	if id := s.Instance.ID; id != "" {
		name += " " + string(id)
	} else if uid := s.Instance.UID; uid != "" {
		name += " " + string(uid)
	}
	if s.Instance.Path != "" {
		name += " " + string(s.Instance.Path)
	}
	// describe returns the sample's verdict on g. With all set, it also marks the
	// verdicts on other groups.
	describe := func(g metric.Group, all bool) string {
		text := s.Reasons[g].String()
		for i := range b.Verdicts {
			v := &b.Verdicts[i]
			if v.Entity != s.Entity || v.Reason != s.Reasons[g] || shown[i] || v.Instance != (metric.Instance{}) &&
				(v.Instance.ID != s.Instance.ID || v.Instance.Path != s.Instance.Path || v.Instance.Line != s.Instance.Line) {
				continue
			}
			if v.Group == g {
				text = describeVerdict(v)
			}
			shown[i] = v.Group == g || all
		}
		return text
	}
	if s.Rejected() {
		return name + "  rejected: " + describe(metric.CPU, true)
	}
	var groups []string
	for i := range metric.NumGroups {
		g := metric.Group(i)
		values := describeValues(s, g)
		switch {
		case s.Servable(g):
			if values == "" {
				values = g.String()
			}
			if w := s.Rates[g]; w.End != 0 {
				values += fmt.Sprintf(" over %v to %v", w.Length, Offset(w.End))
			}
			if s.Reasons[g] == metric.Ambiguous {
				values += " (Ambiguous)"
			}
			if s.LastKnown&(1<<g) != 0 {
				values += " (last known)"
			}
			groups = append(groups, values)
		case s.Reasons[g] != metric.Unjudged || s.Times[g] != 0:
			groups = append(groups, fmt.Sprintf("no %v: %s", g, describe(g, false)))
		case values != "":
			groups = append(groups, values+" (Unjudged)")
		}
	}
	return strings.TrimSpace(name + "  " + strings.Join(groups, "; "))
}

// describeValues returns the values of a group, except counters.
func describeValues(s *metric.Sample, g metric.Group) string {
	var values []string
	for id, v := range s.Values.All() {
		if d := id.Describe(); d.Group == g && d.Type != metric.Cumulative {
			values = append(values, describeName(id)+" "+describeAmount(id, v))
		}
	}
	return strings.Join(values, " ")
}

// describeName returns short names for frequent metrics.
func describeName(id metric.ID) string {
	switch id {
	case metric.CPUUsageRate:
		return "cpu"
	case metric.MemoryWorkingSet:
		return "memory"
	}
	return id.String()
}

func describeAmount(id metric.ID, v float64) string {
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

// describeVerdict returns a reason with its evidence.
func describeVerdict(v *metric.Verdict) string {
	e := &v.Evidence
	var parts []string
	add := func(there bool, format string, args ...any) {
		if there {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	add(e.Rule != "", "rule %s", e.Rule)
	add(e.Name != "", "%s", e.Name)
	add(e.Cause != metric.Unjudged, "%v", e.Cause)
	add(e.Other != (metric.CounterReading{}), "other %s", describeReading(&e.Other))
	add(e.Limit != 0 && (v.Reason == metric.OverLimit || e.Cause == metric.OverLimit), "bound %v", e.Limit)
	add(e.Err != nil, "%v", e.Err)
	add(e.Due != 0, "next at %v", Offset(e.Due))
	if len(parts) == 0 {
		return v.Reason.String()
	}
	return fmt.Sprintf("%v (%s)", v.Reason, strings.Join(parts, ", "))
}

func describeReading(r *metric.CounterReading) string {
	var parts []string
	add := func(there bool, format string, args ...any) {
		if there {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	add(r.UID != "", "uid %s", r.UID)
	add(r.ID != "", "id %s", r.ID)
	add(r.Path != "", "%s", r.Path)
	add(r.Start != 0, "started %v", Offset(r.Start))
	add(r.Value != 0, "%v", time.Duration(r.Value))
	add(r.Time != 0, "at %v", Offset(r.Time))
	return strings.Join(parts, " ")
}
