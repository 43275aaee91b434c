package transcript

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-metrics/weir/metric"
)

// Describe writes what a batch says after its last step, one line a sample,
// then the verdicts of what has no sample.
func Describe(b *metric.Batch) string {
	var out []string
	told := map[metric.Entity]bool{}
	for i := range b.Samples {
		s := &b.Samples[i]
		told[s.Entity] = true
		out = append(out, describeSample(b, s))
	}
	for _, v := range b.Verdicts {
		if !told[v.Entity] {
			out = append(out, fmt.Sprintf("%v  no %v: %v", v.Entity, v.Group, DescribeVerdict(&v)))
		}
	}
	slices.Sort(out)
	if len(out) == 0 {
		return "nothing\n"
	}
	return strings.Join(out, "\n") + "\n"
}

func describeSample(b *metric.Batch, s *metric.Sample) string {
	name := s.Entity.String()
	if id := s.Instance.ID; id != "" {
		name += " " + string(id)
	} else if uid := s.Instance.UID; uid != "" {
		name += " " + string(uid)
	}
	if s.Instance.Path != "" {
		name += " " + string(s.Instance.Path)
	}
	verdict := func(g metric.Group) string {
		for i := range b.Verdicts {
			v := &b.Verdicts[i]
			if v.Entity == s.Entity && v.Group == g && v.Reason == s.Reasons[g] &&
				(v.Instance.ID == s.Instance.ID && v.Instance.Path == s.Instance.Path && v.Instance.Line == s.Instance.Line || v.Instance == metric.Instance{}) {
				return DescribeVerdict(v)
			}
		}
		return s.Reasons[g].String()
	}
	if s.Rejected() {
		return name + "  rejected: " + verdict(metric.CPU)
	}
	var says []string
	for i := range metric.NumGroups {
		g := metric.Group(i)
		switch {
		case s.Reasons[g] == metric.Unjudged && s.Times[g] == 0:
			continue
		case !s.Servable(g):
			says = append(says, fmt.Sprintf("no %v: %s", g, verdict(g)))
			continue
		}
		say := numbers(g, s)
		if s.Reasons[g] == metric.Ambiguous {
			say += " (Ambiguous)"
		}
		if s.LastKnown&(1<<g) != 0 {
			say += " (held)"
		}
		says = append(says, say)
	}
	return name + "  " + strings.Join(says, "; ")
}

func numbers(g metric.Group, s *metric.Sample) string {
	w := s.Rates[g]
	over := ""
	if w.End != 0 {
		over = fmt.Sprintf(" over %v to %v", w.Length, Offset(w.End))
	}
	switch g {
	case metric.CPU:
		if v, ok := s.Values.Get(metric.CPUUsageRate); ok {
			return "cpu " + strconv.FormatFloat(v/1e6, 'g', 6, 64) + "m" + over
		}
		return "cpu"
	case metric.Memory:
		v, ok := s.Values.Get(metric.MemoryWorkingSet)
		if !ok {
			return "memory"
		}
		return "memory " + strconv.FormatFloat(v/(1<<20), 'g', 6, 64) + "Mi"
	case metric.Network:
		if v, ok := s.Values.Get(metric.NetworkRxRate); ok {
			return "rx " + strconv.FormatFloat(v, 'g', 6, 64) + "B/s" + over
		}
		return "network"
	}
	return g.String()
}

func describeReading(s *metric.CounterReading) string {
	var parts []string
	if s.UID != "" {
		parts = append(parts, "uid "+string(s.UID))
	}
	if s.ID != "" {
		parts = append(parts, "id "+string(s.ID))
	}
	if s.Path != "" {
		parts = append(parts, string(s.Path))
	}
	if s.Start != 0 {
		parts = append(parts, "started "+Offset(s.Start).String())
	}
	if s.Value != 0 {
		parts = append(parts, fmt.Sprintf("%v", time.Duration(s.Value)))
	}
	if s.Time != 0 {
		parts = append(parts, "at "+Offset(s.Time).String())
	}
	return strings.Join(parts, " ")
}
