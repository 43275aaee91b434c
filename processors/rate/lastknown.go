package rate

import (
	"errors"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/metric/run"
)

// forgetAfter is how long rate remembers an entity that is not reported, if nothing reports that
// it has ended.
const forgetAfter = 10 * time.Minute

// mayHold reports whether the last known value of a group may be served although the clock
// stepped since it was measured, and no stored readings are left to compare the new one with: it is
// not too old, the counter did not fall, and neither the start nor the ID reports that another
// instance began.
func (ca *Calculator) mayHold(r *reading) bool {
	if r.batch.NodeTime == 0 || ca.clock-r.series.since > metric.LastKnownFor(r.batch.Interval) {
		return false
	}
	last, _ := r.track.last.get(counters[r.group][0].counter)
	i := &r.sample.Instance
	return r.counters[0] >= last && (r.track.steady || i.Start == 0 || i.ID != "" || i.Inode != 0)
}

// markMeasured gives a group the reason Measured, unless identity marked it Ambiguous.
func markMeasured(sample *metric.Sample, g metric.Group) {
	if sample.Reasons[g] == metric.Unjudged {
		sample.Reasons[g] = metric.Measured
	}
}

// repeatLastKnown serves the last known values of groups for which this sample has no new
// reading: the node sent the same reading again, an older one, a 0 for what it could not read,
// or left the group out.
func (ca *Calculator) repeatLastKnown(t *track, facts *cluster.Facts, sample *metric.Sample, b *metric.Batch) {
	for i := range metric.NumGroups {
		g := metric.Group(i)
		switch reason := sample.Reasons[g]; {
		case sample.Times[g] == 0 && t.used&(1<<g) == 0: // fast path: the entity has no such group
		case sample.Times[g] == 0:
			ca.repeatMissingGroup(t, facts, sample, g, b)
		case reason == metric.NoData:
			if ca.holds(&t.groups[g], b) {
				t.copyLastKnown(sample, g, true)
				sample.LastKnown |= 1 << g
				sample.Reasons[g] = t.groups[g].reason
			}
		case reason == metric.Unjudged, reason == metric.Ambiguous && sample.Rates[g].End == 0 && g != metric.Memory && counts(g, &sample.Values):
			ca.repeatRates(t, sample, g, b)
		}
	}
}

// holds reports whether the last known values of a group are still served.
func (ca *Calculator) holds(last *group, b *metric.Batch) bool {
	return last.hasNumbers() && ca.clock-last.since() <= metric.LastKnownFor(b.Interval)
}

// repeatRates serves the last rates of a group whose reading is not a new one, or rejects the group
// if there are none.
func (ca *Calculator) repeatRates(t *track, sample *metric.Sample, g metric.Group, b *metric.Batch) {
	last := &t.groups[g]
	if ca.holds(last, b) {
		t.copyLastKnown(sample, g, false)
		sample.Reasons[g] = last.reason
		return
	}
	reason := last.reason
	switch {
	case last.hasNumbers() && last.series.stepped:
		reason = metric.ClockStep
	case last.hasNumbers():
		reason = metric.Stale
	case reason != metric.Unjudged && reason != metric.FirstSample: // as before
	case ca.clock-last.since() > max(2*b.Interval, run.OldReading):
		reason = metric.Stale // a second reading was due, and the node sent the first one again
	default:
		reason = metric.FirstSample
	}
	ca.rejectGroup(sample, g, reason, b, t)
}

// repeatMissingGroup serves the last known values of a group that the report left out. Identity
// does not judge a sample without CPU and memory, such as a sandbox's network, so its pod may have
// ended.
func (ca *Calculator) repeatMissingGroup(t *track, facts *cluster.Facts, sample *metric.Sample, g metric.Group, b *metric.Batch) {
	last := &t.groups[g]
	if g > metric.Network || last.time == 0 || !last.hasNumbers() {
		return
	}
	unjudged := sample.Times[metric.CPU] == 0 && sample.Times[metric.Memory] == 0
	if unjudged && isKnown(facts, &sample.Entity) && ca.factsSayEnded(facts, &sample.Entity, t, b) {
		return
	}
	if ca.clock-last.since() > metric.LastKnownFor(b.Interval) {
		if g == metric.CPU || g == metric.Memory {
			ca.rejectGroup(sample, g, metric.NotReported, b, t)
		}
		return
	}
	t.copyLastKnown(sample, g, true)
	sample.Reasons[g] = last.reason
	sample.LastKnown |= 1 << g
}

// copyLastKnown copies the last rates of group g into sample, and its other values if all is
// set.
func (t *track) copyLastKnown(sample *metric.Sample, g metric.Group, all bool) {
	for i, id := range t.last.present.All() {
		d := id.Describe()
		if d.Group == g && (all || d.Type == metric.Rate) {
			sample.Values.Set(id, t.last.dense[i])
		}
	}
	sample.Rates[g] = t.groups[g].window
	if all {
		sample.Times[g] = t.groups[g].time
	}
}

// rejectGroup gives a group a reason and adds the verdict.
func (ca *Calculator) rejectGroup(sample *metric.Sample, g metric.Group, reason metric.Reason, b *metric.Batch, t *track) {
	sample.Reasons[g] = reason
	other, sr := metric.CounterReading{Time: t.groups[g].window.End}, &t.groups[g].series
	switch {
	case sr.n == 0:
	case reason == metric.FirstSample:
		if other.Time = sr.entries[0].time; other.Time == sample.Times[g] {
			other.Time = 0 // it is the only reading
		}
	case other.Time == sr.last().time:
		other.Value = sr.last().counters[0]
	}
	b.Verdicts = append(b.Verdicts, metric.Verdict{
		Entity: sample.Entity, Instance: sample.Instance, Group: g, Reason: reason,
		Evidence: metric.Evidence{Got: readingOf(g, sample, sample.Times[g]), Other: other, Served: t.groups[g].served, Limit: ca.needed(reason, &sample.Instance, b)},
	})
}

// addMissing adds samples with the last known values of entities that were not reported, as
// long as nothing reports that they have ended and the values are not too old.
func (ca *Calculator) addMissing(t *track, facts *cluster.Facts, b *metric.Batch) {
	for slot := range ca.tracks.len() {
		if ca.reported[slot] || ca.tracks.empty(slot) {
			continue
		}
		e := b.Slots.Entity(slot)
		ca.tracks.unpack(slot, t)
		if b.Err == nil && t.absent < maxAbsent {
			t.absent++
			ca.tracks.pack(slot, t)
		}
		away := ca.clock - t.seen
		if away > forgetAfter || ca.hasEnded(facts, e, t, b) {
			ca.tracks.clear(slot)
			continue
		}
		b.Slots.Keep(slot)
		var lastKnown uint16
		for g := range t.groups {
			if ca.holds(&t.groups[g], b) {
				lastKnown |= 1 << g
			}
		}
		ca.explainMissing(e, t, b, lastKnown)
		if lastKnown != 0 {
			t.fillLastKnown(b.AddAt(slot), lastKnown)
		}
	}
}

// fillLastKnown fills sample, which is of an entity that was not reported, with the last known
// values of the groups in lastKnown.
func (t *track) fillLastKnown(sample *metric.Sample, lastKnown uint16) {
	sample.Instance, sample.LastKnown = t.instance, lastKnown
	for g := range t.groups {
		last := &t.groups[g]
		sample.Rates[g] = last.window
		if last.received {
			sample.Received |= 1 << g
		}
		if lastKnown&(1<<g) != 0 {
			sample.Times[g], sample.Reasons[g] = last.time, last.reason
		}
	}
	for i, id := range t.last.present.All() {
		if lastKnown&(1<<id.Describe().Group) != 0 {
			sample.Values.Set(id, t.last.dense[i])
		}
	}
}

// hasEnded reports whether an entity that was not reported has ended. If not, the report only
// missed it.
func (ca *Calculator) hasEnded(facts *cluster.Facts, e *metric.Entity, t *track, b *metric.Batch) bool {
	if b.Exhaustive && b.Err == nil {
		return true
	}
	if !isKnown(facts, e) {
		return t.absent >= 2 && !(facts != nil && facts.Synced && e.Kind == metric.Node)
	}
	return ca.factsSayEnded(facts, e, t, b)
}

// isKnown reports whether the facts are synced and e is a pod or a container: they have only these.
func isKnown(facts *cluster.Facts, e *metric.Entity) bool {
	return facts != nil && facts.Synced && e.Namespace != "" && (e.Kind == metric.Pod || e.Kind == metric.Container)
}

// factsSayEnded reports whether the instance that t follows, of a pod or container, has ended as
// far as the API server knows.
func (ca *Calculator) factsSayEnded(facts *cluster.Facts, e *metric.Entity, t *track, b *metric.Batch) bool {
	pod := facts.Pod(e.PodRef())
	if pod == nil || pod.Phase != cluster.Running || pod.Node != "" && b.Node != "" && pod.Node != b.Node {
		return true
	}
	if t.instance.UID != "" && !pod.HasUID(t.instance.UID) {
		return true
	}
	if t.isOfEarlierPod(pod) {
		return true
	}
	if e.Kind == metric.Pod {
		return false
	}
	c := pod.Container(e.Name)
	if c == nil || c.State != cluster.StateRunning || ca.wasReadBefore(t, c, b) {
		return true
	}
	if t.instance.ID != "" && c.ID != "" {
		return c.ID != t.instance.ID
	}
	return t.isOfEarlierRun(c)
}

// isOfEarlierPod reports whether the API server named another pod than this one when the
// instance was last read, and the instance did not begin with this one.
func (t *track) isOfEarlierPod(pod *cluster.Pod) bool {
	return t.pod != nil && t.pod != pod && t.pod.ReportedUID() != pod.ReportedUID() && !t.beganSince(pod.Started)
}

// isOfEarlierRun reports whether the API server named another run than this one when the
// instance was last read, and the instance did not begin with this one. A cgroup that was made
// after the run before had ended is of this run, although its process started later.
func (t *track) isOfEarlierRun(run *cluster.Container) bool {
	return t.run != nil && t.run != run && t.run.ID != run.ID && !t.beganSince(run.StartedAt) && !t.beganSince(run.EndedAt())
}

// beganSince reports whether the instance began at a time that the API server reports or later.
// The API server may say so later than the node reports the instance. Both times are by the
// node's clock, and the API server's is cut to the second. A start after its own reading is by a
// clock that was put back since, and reports nothing.
func (t *track) beganSince(at time.Time) bool {
	i := &t.instance
	return !at.IsZero() && i.Start != 0 && i.Origin != metric.StartCgroup && i.Start >= at.UnixNano() && !run.IsAfterReading(i.Start, t.lastTime(), 0)
}

// startIsDoubtful reports whether only a start time reports that sample begins a new instance: no
// name differs, the counter did not fall, and the API server does not know the start. Reported
// starts jitter, so no rate is measured from such a start. The second path of a container does
// not begin with the container.
func (t *track) startIsDoubtful(pod *cluster.Pod, sample *metric.Sample, b *metric.Batch) bool {
	p, c := &t.instance, &sample.Instance
	if p.ID == c.ID && isOtherPath(p, c) {
		return true
	}
	if c.Origin == metric.StartRuntime || p.ID != "" && c.ID != "" || p.UID != "" && c.UID != "" && p.UID != c.UID {
		return false
	}
	last, _ := t.last.get(metric.CPUUsage)
	if now, ok := sample.Values.Get(metric.CPUUsage); !ok || now < last {
		return false
	}
	return !isStartOfRun(pod.Container(sample.Entity.Name), c.Start, b)
}

// presentRun returns the container as the API server reports it, if it runs and began before
// the sample was taken; else nil.
func presentRun(pod *cluster.Pod, sample *metric.Sample) *cluster.Container {
	e := &sample.Entity
	if pod == nil || e.Kind != metric.Container || e.Part != "" {
		return nil
	}
	c := pod.Container(e.Name)
	if c == nil || c.State != cluster.StateRunning || c.ID == "" || newestTime(sample) < c.StartedAt.UnixNano() {
		return nil
	}
	return c
}

// wasReadBefore reports whether the last reading of an instance without an ID is from before the
// present run of c. If the instance has the start of that run, the node's clock was put back.
func (ca *Calculator) wasReadBefore(t *track, c *cluster.Container, b *metric.Batch) bool {
	if t.instance.ID != "" || t.groups[metric.CPU].received {
		return false
	}
	if isStartOfRun(c, t.instance.Start, b) || t.beganSince(c.EndedAt()) {
		return false
	}
	return run.ReadBefore(t.lastTime(), c.StartedAt, &run.Limits{Resolution: b.Resolution, Now: ca.node.Latest(ca.now)})
}

// endsBefore reports whether the stored CPU readings are all from before the start of run, or
// were dropped when the clock stepped. It drops the readings that are.
func (t *track) endsBefore(run *cluster.Container) bool {
	sr := &t.groups[metric.CPU].series
	if sr.n == 0 {
		return sr.stepped // the last known value may be of the earlier run
	}
	started, older := run.StartedAt.UnixNano(), 0
	for older < sr.n && sr.entries[older].time < started {
		older++
	}
	sr.dropOldest(older)
	return sr.n == 0
}

// explainMissing adds the verdicts of an entity without a sample, for groups with no last known
// value to serve.
func (ca *Calculator) explainMissing(e *metric.Entity, t *track, b *metric.Batch, lastKnown uint16) {
	if e.Part != "" {
		return
	}
	reason := metric.NotReported
	evidence := metric.Evidence{Err: b.Err, Other: metric.CounterReading{Time: t.lastTime()}}
	if read := (*metric.ReadError)(nil); errors.As(b.Err, &read) {
		reason = read.Reason
	}
	for _, g := range [...]metric.Group{metric.CPU, metric.Memory} {
		if t.groups[g].time != 0 && lastKnown&(1<<g) == 0 {
			evidence.Served = t.groups[g].served
			b.Verdicts = append(b.Verdicts, metric.Verdict{Entity: *e, Instance: t.instance, Group: g, Reason: reason, Evidence: evidence})
		}
	}
}

// newestTime returns when the newer one of CPU and memory was read; 0 if neither was.
func newestTime(s *metric.Sample) int64 { return max(s.Times[metric.CPU], s.Times[metric.Memory]) }
