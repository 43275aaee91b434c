package rate

import (
	"errors"
	"slices"
	"time"

	"github.com/weir-metrics/weir/metric"
)

// forgetAfter is how long an entity that is not reported, and that nothing says
// is gone, is remembered.
const forgetAfter = 10 * time.Minute

// hold returns how long last numbers stand.
func (s *State) hold(b *metric.Batch) time.Duration {
	if s.options.Hold > 0 {
		return s.options.Hold
	}
	return max(3*b.Interval, time.Minute)
}

// settle marks a group as measured; a choice nothing supports stays marked so.
func settle(sample *metric.Sample, g metric.Group) {
	if sample.Reasons[g] == metric.Unjudged {
		sample.Reasons[g] = metric.Measured
	}
}

// standIn serves the last numbers of the groups that this sample left open: the
// node sent the same reading again, an older one, or zeros for what it could
// not read.
func (s *State) standIn(t *track, sample *metric.Sample, b *metric.Batch) {
	for i := range metric.NumGroups {
		g := metric.Group(i)
		reason := sample.Reasons[g]
		open := reason == metric.Unjudged || reason == metric.Ambiguous && sample.Rates[g].End == 0 && counts(g, &sample.Values) && g != metric.Memory
		if sample.Times[g] == 0 {
			s.miss(t, sample, g, b)
			continue
		}
		if !open && reason != metric.NoData {
			continue
		}
		since := t.since(g)
		switch {
		case t.last.Numbered(g) && s.clock-since <= s.hold(b):
			unread := reason == metric.NoData
			t.lend(sample, g, unread)
			if unread {
				sample.Held |= 1 << g
			}
			sample.Reasons[g] = t.last.Reasons[g]
		case reason == metric.NoData:
		case t.last.Numbered(g):
			s.refuse(sample, g, metric.Stale, b, t)
		default:
			reason := t.last.Reasons[g]
			if reason == metric.Unjudged {
				reason = metric.FirstSample
			}
			s.refuse(sample, g, reason, b, t)
		}
	}
}

// miss lets the last numbers of a group stand that was left out of the report.
func (s *State) miss(t *track, sample *metric.Sample, g metric.Group, b *metric.Batch) {
	if g > metric.Network || t.last.Times[g] == 0 || !t.last.Numbered(g) {
		return
	}
	if s.clock-t.since(g) > s.hold(b) {
		if g == metric.CPU || g == metric.Memory {
			s.refuse(sample, g, metric.NotReported, b, t)
		}
		return
	}
	t.lend(sample, g, true)
	sample.Reasons[g] = t.last.Reasons[g]
	sample.Held |= 1 << g
}

// since returns when group g was last truly read, by our clock.
func (t *track) since(g metric.Group) time.Duration {
	if sr := t.series[g]; sr != nil {
		return sr.since
	}
	return t.read[g]
}

// lend copies the last rates of group g, and if all is set its other values,
// into sample.
func (t *track) lend(sample *metric.Sample, g metric.Group, all bool) {
	for id, value := range t.last.Values.All() {
		d := id.Describe()
		if d.Group == g && (all || d.Shape == metric.Rate) {
			sample.Values.Set(id, value)
		}
	}
	sample.Rates[g] = t.last.Rates[g]
	if all {
		sample.Times[g] = t.last.Times[g]
	}
}

// refuse gives a group its reason and adds the verdict.
func (s *State) refuse(sample *metric.Sample, g metric.Group, reason metric.Reason, b *metric.Batch, t *track) {
	sample.Reasons[g] = reason
	b.Verdicts = append(b.Verdicts, metric.Verdict{
		Entity: sample.Entity, Instance: sample.Instance, Group: g, Reason: reason,
		Evidence: metric.Evidence{Got: sight(g, sample, sample.Times[g]), Other: metric.Sight{Time: t.last.Rates[g].End}},
	})
}

// addMissing lets the last numbers of what was not reported stand, as long as
// nothing says it is gone and they are not too old.
func (s *State) addMissing(facts *metric.Facts, b *metric.Batch) {
	for e, t := range s.tracks {
		if t.round == s.round {
			continue
		}
		if b.Err == nil {
			t.absent++
		}
		away := s.clock - t.seen
		if away > forgetAfter || s.gone(facts, e, t, b) {
			delete(s.tracks, e)
			continue
		}
		var held uint16
		for g := range metric.NumGroups {
			if g := metric.Group(g); t.last.Numbered(g) && s.clock-t.since(g) <= s.hold(b) {
				held |= 1 << g
			}
		}
		s.explainMissing(e, t, b, held)
		if held == 0 {
			continue
		}
		sample := b.Add(e)
		sample.CopyFrom(&t.last)
		sample.Held = held
		for g := range metric.NumGroups {
			if held&(1<<g) == 0 {
				sample.Reasons[g], sample.Times[g] = metric.Unjudged, 0
				for id := range t.last.Values.All() {
					if id.Describe().Group == metric.Group(g) {
						sample.Values.Delete(id)
					}
				}
			}
		}
	}
}

// gone reports whether an entity that was not reported has ended, rather than
// been missed.
func (s *State) gone(facts *metric.Facts, e metric.Entity, t *track, b *metric.Batch) bool {
	if b.Exhaustive && b.Err == nil {
		return true
	}
	known := facts != nil && facts.Synced && e.Namespace != ""
	if !known || e.Kind != metric.Pod && e.Kind != metric.Container {
		return t.absent >= 2 && !(facts != nil && facts.Synced && e.Kind == metric.Node)
	}
	pod := facts.Pod(e.PodRef())
	if pod == nil || pod.Phase != metric.Running || pod.Node != "" && b.Node != "" && pod.Node != b.Node {
		return true
	}
	if t.instance.UID != "" && !pod.Is(t.instance.UID) {
		return true
	}
	if p := podOf(facts, &e); t.pod != "" && t.pod != p {
		return true
	}
	if e.Kind == metric.Pod {
		return false
	}
	c := pod.Container(e.Name)
	if c == nil || c.State != metric.Live {
		return true
	}
	if t.instance.ID != "" && c.ID != "" {
		return c.ID != t.instance.ID
	}
	return t.run != "" && t.run != c.ID
}

// podOf returns the UID by which a node calls the pod that the API server knows
// under an entity's name: for a static pod, the hash of its manifest.
func podOf(facts *metric.Facts, e *metric.Entity) metric.PodUID {
	if e.Kind != metric.Pod && e.Kind != metric.Container {
		return ""
	}
	if p := facts.Pod(e.PodRef()); p != nil {
		return p.ReportedUID()
	}
	return ""
}

// doubtful reports whether only a start time says that sample begins a new
// instance: its counter did not fall, no name tells them apart, and the API server
// knows of no such start. Starts wander; (start, 0) is not to be used.
func (t *track) doubtful(facts *metric.Facts, sample *metric.Sample, b *metric.Batch) bool {
	p, c := &t.instance, &sample.Instance
	if c.Origin == metric.StartRuntime || p.ID != "" && c.ID != "" || p.UID != "" && c.UID != "" && p.UID != c.UID {
		return false
	}
	was, _ := t.last.Values.Get(metric.CPUUsage)
	if now, ok := sample.Values.Get(metric.CPUUsage); !ok || now < was {
		return false
	}
	f := facts.Pod(sample.Entity.PodRef()).Container(sample.Entity.Name)
	return f == nil || f.State != metric.Live || f.StartedAt.Sub(c.StartTime()).Abs() > time.Second+b.Clock
}

// runOf returns the ID of the run that the API server says is a container's
// present one; empty if it does not say.
func runOf(facts *metric.Facts, sample *metric.Sample) metric.ContainerID {
	e := &sample.Entity
	if e.Kind != metric.Container || e.Part != "" {
		return ""
	}
	if c := facts.Pod(e.PodRef()).Container(e.Name); c != nil && c.State == metric.Live && reportTime(sample) >= c.StartedAt.UnixNano() {
		return c.ID
	}
	return ""
}

// endsBefore reports whether the last reading in store is from before the start
// of the run that the API server says is the present one; what is older than that
// in store is dropped.
func (t *track) endsBefore(facts *metric.Facts, sample *metric.Sample) bool {
	sr := t.series[metric.CPU]
	if sr == nil || len(sr.entries) == 0 {
		return false
	}
	started := facts.Pod(sample.Entity.PodRef()).Container(sample.Entity.Name).StartedAt.UnixNano()
	sr.entries = slices.DeleteFunc(sr.entries, func(e entry) bool { return e.time < started })
	return len(sr.entries) == 0
}

// explainMissing adds the verdicts of an entity that has no sample and whose
// last numbers are no longer served.
func (s *State) explainMissing(e metric.Entity, t *track, b *metric.Batch, held uint16) {
	if e.Part != "" {
		return
	}
	reason := metric.NotReported
	evidence := metric.Evidence{Err: b.Err, Other: metric.Sight{Time: reportTime(&t.last)}}
	if read := (*metric.ReadError)(nil); errors.As(b.Err, &read) {
		reason = read.Reason
	}
	for _, g := range [...]metric.Group{metric.CPU, metric.Memory} {
		if t.last.Times[g] != 0 && held&(1<<g) == 0 {
			b.Verdicts = append(b.Verdicts, metric.Verdict{Entity: e, Instance: t.instance, Group: g, Reason: reason, Evidence: evidence})
		}
	}
}

func reportTime(s *metric.Sample) int64 { return max(s.Times[metric.CPU], s.Times[metric.Memory]) }
