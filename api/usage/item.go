package usage

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/metric"
)

// isShown reports whether numbers with this reason may be shown: they are measured, or they are of
// an instance that was chosen among equals. The latter are marked.
func isShown(r metric.Reason) bool {
	return r == metric.Measured || r == metric.Unjudged || r == metric.Ambiguous
}

// nextItem splits rows into the rows of the first item and the rest.
func nextItem(r Resource, rows []listRow) (first, rest []listRow) {
	n := 1
	for n < len(rows) && sameItem(r, &rows[0], &rows[n]) {
		n++
	}
	return rows[:n], rows[n:]
}

func sameItem(r Resource, a, b *listRow) bool {
	if r == Cgroups {
		return a.entity.Node == b.entity.Node && a.name == b.name
	}
	return a.entity == b.entity
}

// fillItem fills the item from its rows.
func fillItem(it *Item, r Resource, rows []listRow, facts *cluster.Facts, c *metricChoice) {
	metrics := it.Metrics
	clear(metrics)
	*it = Item{Metrics: metrics, Reasons: it.Reasons[:0], CPUHistory: it.CPUHistory}
	e := rows[0].entity
	it.Node, it.Namespace, it.Pod = e.Node, e.Namespace, e.Pod
	if e.Kind == metric.Container {
		it.Container = e.Name
	}
	if r == Cgroups {
		it.Cgroup = metric.CgroupPath(rows[0].name)
	}
	if p := facts.Pod(e.PodRef()); p != nil {
		it.Workload = p.Workload()
		it.Restarts = restartCount(p, e)
		if partial, ok := p.Partial(); ok && e.Kind == metric.Pod {
			it.Partial = &Partial{Running: partial.Running, Containers: partial.Of, Stopped: partial.Stopped.Name, Message: partial.String()}
		}
		it.Resize = resizeOf(p, e)
	}

	for g := range metric.Group(metric.NumGroups) {
		if !c.groups[g] && !c.shown[g] {
			continue
		}
		s := bestSample(rows, g)
		if s != nil {
			if it.Started.IsZero() {
				it.Started = s.Instance.StartTime().UTC()
			}
			fillNumbers(it, s, g, c)
		}
		if c.groups[g] {
			addReason(it, rows, g, s)
		}
	}
}

// bestSample returns the sample that an answer shows for group g, or nil. One that has the main
// number of g comes first, then the newest.
func bestSample(rows []listRow, g metric.Group) *metric.Sample {
	var found *metric.Sample
	rank := func(s *metric.Sample) int {
		if g == metric.CPU && !s.Values.Has(metric.CPUUsageRate) ||
			g == metric.Memory && !s.Values.Has(metric.MemoryWorkingSet) {
			return 0
		}
		return 1
	}
	for i := range rows {
		s := rows[i].sample
		if s == nil || !isShown(s.Reasons[g]) || !hasGroup(s, g) {
			continue
		}
		if found == nil || rank(s) > rank(found) || rank(s) == rank(found) && s.Times[g] > found.Times[g] {
			found = s
		}
	}
	return found
}

func hasGroup(s *metric.Sample, g metric.Group) bool {
	for id := range s.Values.All() {
		if metric.Catalogue[id].Group == g {
			return true
		}
	}
	return false
}

// fillNumbers copies the numbers of group g from s to the item.
func fillNumbers(it *Item, s *metric.Sample, g metric.Group, c *metricChoice) {
	lastKnown := s.LastKnown&(1<<g) != 0
	for id, value := range s.Values.All() {
		switch {
		case metric.Catalogue[id].Group != g:
		case id == metric.CPUUsageRate:
			w := s.Rates[g]
			end := cmp.Or(w.End, s.Times[g])
			it.CPU = &CPUUsage{Nanocores: int64(math.Round(value)), Time: timeAt(end), WindowSeconds: w.Length.Seconds(), LastKnown: lastKnown}
		case id == metric.MemoryWorkingSet:
			it.Memory = &MemoryUsage{WorkingSetBytes: int64(math.Round(value)), Time: timeAt(s.Times[g]), LastKnown: lastKnown}
		case c.metrics[id] && !math.IsNaN(value) && !math.IsInf(value, 0): // JSON cannot write those
			if it.Metrics == nil {
				it.Metrics = map[string]float64{}
			}
			it.Metrics[metric.Catalogue[id].Name] = value
		}
	}
}

// addReason adds the reason why g has no number, or what the reader must know about the number in
// s.
func addReason(it *Item, rows []listRow, g metric.Group, s *metric.Sample) {
	missing := g == metric.CPU && it.CPU == nil || g == metric.Memory && it.Memory == nil
	reason := metric.Unjudged
	if s != nil && s.Reasons[g] == metric.Ambiguous {
		reason = metric.Ambiguous
	}
	if s == nil || missing {
		reason = absenceReason(reason, rows, g)
	}
	verdict, since := verdictBehind(rows, g, s, reason)
	if reason == metric.Unjudged && verdict != nil && s != nil && s.LastKnown&(1<<g) != 0 {
		reason = verdict.Evidence.Cause // the number is the last known value
	}
	if reason == metric.Unjudged {
		if !missing {
			return
		}
		reason = metric.NotReported
	}
	var evidence metric.Evidence
	if verdict != nil {
		evidence = verdict.Evidence
	}
	answer := GroupReason{Group: g.String(), Reason: reason.String(), Message: explain.Message(reason, g, evidence), Due: timeAt(evidence.Due)}
	if !since.IsZero() {
		answer.Since = since.UTC()
	}
	it.Reasons = append(it.Reasons, answer)
}

// absenceReason returns the outermost reason in rows why g has no number, or reason.
func absenceReason(reason metric.Reason, rows []listRow, g metric.Group) metric.Reason {
	for i := range rows {
		switch w := &rows[i]; {
		case w.sample != nil && w.sample.Rejected() && hasAcceptedSample(rows):
			// This is another instance: its reason does not apply here.
		case w.sample != nil:
			reason = outermostReason(reason, w.sample.Reasons[g])
		case w.verdict.Group == g && rows[0].sample == nil:
			// If there is a sample, it is the first row, and its reason applies. A verdict may be about
			// another instance of the same name.
			reason = outermostReason(reason, w.verdict.Reason)
		}
	}
	return reason
}

// outermostReason returns the reason of the outer layer, or a if both are in the same layer.
func outermostReason(a, b metric.Reason) metric.Reason {
	if b.Precedes(a) {
		return b
	}
	return a
}

// hasAcceptedSample reports whether any sample is of the instance that identity accepted for the
// name.
func hasAcceptedSample(rows []listRow) bool {
	return slices.ContainsFunc(rows, func(r listRow) bool { return r.sample != nil && !r.sample.Rejected() })
}

// verdictBehind returns the verdict with this reason, and the time since when it is true. For
// Unjudged it returns the verdict that belongs to a last known value.
func verdictBehind(rows []listRow, g metric.Group, s *metric.Sample, reason metric.Reason) (*metric.Verdict, time.Time) {
	for i := range rows {
		v := rows[i].verdict
		if v == nil || v.Group != g {
			continue
		}
		if v.Reason == reason || reason == metric.Unjudged && s != nil && v.Evidence.Cause != metric.Unjudged {
			return v, rows[i].since
		}
	}
	return nil, time.Time{}
}

// readingsOf returns the last n readings of an item that are remembered, the oldest first.
func readingsOf(view SampleReader, rows []listRow, n int) *Readings {
	var last int64
	for i := range rows {
		if s := rows[i].sample; s != nil {
			last = max(last, s.Times[metric.CPU], s.Rates[metric.CPU].End, s.Times[metric.Memory])
		}
	}
	to := time.Unix(0, last)
	remembered := func(id metric.ID) (readings []Reading) {
		for at, v := range view.Points(rows[0].entity, id, to.Add(-metric.DefaultHistory), to) {
			readings = append(readings, Reading{at.UTC(), math.Round(v)})
		}
		return slices.Delete(readings, 0, max(0, len(readings)-n))
	}
	return &Readings{remembered(metric.CPUUsageRate), remembered(metric.MemoryWorkingSet)}
}

// restartCount returns the restarts of a container or of the whole pod p as the API server counts
// them, or nil if they are unknown.
func restartCount(p *cluster.Pod, e metric.Entity) *int32 {
	var n int32
	if e.Kind == metric.Container {
		c := p.Container(e.Name)
		if c == nil {
			return nil
		}
		n = c.Restarts
	} else {
		for i := range p.Containers {
			n += p.Containers[i].Restarts
		}
	}
	return &n
}

// resizeOf returns what a resize of a container or of the whole pod p has not applied, or nil.
func resizeOf(p *cluster.Pod, e metric.Entity) *Resize {
	r := p.Resize
	if e.Kind == metric.Container {
		r = r.Of(e.Name)
	}
	if r == nil {
		return nil
	}
	out := &Resize{State: r.StateOrPending(), Message: r.Describe(e.Kind == metric.Pod), NodeMessage: r.Message}
	for _, a := range r.Applied {
		item := Applied{Container: a.Container, Metric: a.ID.String(), Spec: a.Spec}
		if a.Value >= 0 {
			item.Applied = &a.Value
		}
		out.Applied = append(out.Applied, item)
	}
	return out
}

func timeAt(nanoseconds int64) time.Time {
	if nanoseconds == 0 {
		return time.Time{}
	}
	return time.Unix(0, nanoseconds).UTC()
}
