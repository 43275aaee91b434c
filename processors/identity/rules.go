package identity

import (
	"strings"
	"time"

	"github.com/weir-metrics/weir/metric"
)

// The names of the rules, as evidence gives them.
const (
	rulePlace       = "place"
	ruleUID         = "uid"
	ruleContainerID = "container id"
	ruleLife        = "life"
	ruleViews       = "two paths, one container"
	ruleStart       = "start"
	ruleMovement    = "movement"
	ruleAge         = "age"
	ruleContinuity  = "continuity"
)

// startSlack allows for clocks of one machine that are cut to whole seconds.
const startSlack = time.Second

// markUnread gives CPU and memory the reason NoData where a kubelet wrote 0 for
// what it could not read: both are 0, or the CPU counter is 0 after it was
// positive. It reports whether any sample had that. A source that names the
// cgroup's inode has read the kernel itself: there an empty cgroup's 0 is 0.
func (s *State) markUnread(t *track, b *metric.Batch) (any bool) {
	for i := range s.candidates {
		sample, l := &b.Samples[s.candidates[i].sample], &t.lines[s.candidates[i].line]
		if k := sample.Entity.Kind; k != metric.Container && k != metric.Pod || sample.Instance.Inode != 0 {
			continue
		}
		cpu, hasCPU := sample.Values.Get(metric.CPUUsage)
		memory, hasMemory := sample.Values.Get(metric.MemoryWorkingSet)
		if !hasCPU || cpu != 0 {
			continue
		}
		both := hasMemory && memory == 0
		restarted := l.instance.Start != 0 && sample.Instance.Start > l.time
		if both || l.cpu > 0 && !restarted {
			sample.Reasons[metric.CPU] = metric.NoData
			if both {
				sample.Reasons[metric.Memory] = metric.NoData
			}
			any = true
		}
	}
	return any
}

// reportUnread adds the verdicts for what markUnread marked and no rule
// rejected.
func (s *State) reportUnread(t *track, b *metric.Batch) {
	for _, c := range s.candidates {
		sample := &b.Samples[c.sample]
		if sample.Rejected() {
			continue
		}
		for _, g := range [...]metric.Group{metric.CPU, metric.Memory} {
			if sample.Reasons[g] == metric.NoData {
				l := &t.lines[c.line]
				b.Verdicts = append(b.Verdicts, metric.Verdict{
					Entity: sample.Entity, Instance: sample.Instance, Group: g, Reason: metric.NoData,
					Evidence: metric.Evidence{Got: sight(sample, l), Other: metric.Sight{Time: l.time, Value: max(l.cpu, 0), Start: l.instance.Start}},
				})
			}
		}
	}
}

// applyFacts rejects what the API server contradicts, even a lone sample.
func (s *State) applyFacts(t *track, facts *metric.Facts, b *metric.Batch) {
	for i := range s.candidates {
		c := &s.candidates[i]
		sample, l := &b.Samples[c.sample], &t.lines[c.line]
		known := l.instance
		if sample.Instance.Start != 0 {
			known.Start = sample.Instance.Start
		}
		if reason, evidence := s.contradicts(facts, b, sample, &known, t); reason != metric.Measured {
			s.condemn(t, c, b, reason, evidence)
			c.denied = true
		}
	}
}

// contradicts returns the reason why the facts rule out that an instance of
// sample's pod or container is the present one, or Measured if they do not.
func (s *State) contradicts(facts *metric.Facts, b *metric.Batch, sample *metric.Sample, known *metric.Instance, t *track) (metric.Reason, metric.Evidence) {
	e := &sample.Entity
	if facts == nil || !facts.Synced || e.Kind != metric.Pod && e.Kind != metric.Container || e.Namespace == "" {
		return metric.Measured, metric.Evidence{}
	}
	pod := facts.Pod(e.PodRef())
	if pod == nil {
		return s.unknownPod(facts, b, known, t)
	}
	t.known, t.unknown = true, -1
	// A fact cannot speak of what began after it was learnt, unless time has
	// passed in which the API server would have told us.
	outlived := known.Start > pod.KnownAt.UnixNano() && facts.At.UnixNano()-known.Start < int64(b.Interval)

	if pod.Node != "" && b.Node != "" && pod.Node != b.Node && !outlived {
		return metric.OtherNode, metric.Evidence{Rule: rulePlace, Name: string(pod.Node), Other: metric.Sight{UID: pod.UID}}
	}
	if known.UID != "" && !pod.Is(known.UID) && !outlived {
		return metric.OldPod, metric.Evidence{Rule: ruleUID, Other: metric.Sight{UID: pod.UID, Start: nanos(pod.Started)}}
	}
	if !pod.Mirror && pod.ConfigHash == "" && !pod.Started.IsZero() && !outlived {
		limit := pod.Started.Add(-startSlack).UnixNano()
		if at := reportTime(sample); at != 0 && at < limit-int64(b.Clock) {
			return metric.OldPod, metric.Evidence{Rule: ruleAge, Other: metric.Sight{UID: pod.UID, Start: nanos(pod.Started)}}
		}
		if known.Start != 0 && known.Origin != metric.StartCgroup && known.Start < limit-int64(b.Clock) {
			return metric.OldPod, metric.Evidence{Rule: ruleAge, Other: metric.Sight{UID: pod.UID, Start: nanos(pod.Started)}}
		}
	}
	if e.Kind != metric.Container || known.ID == "" {
		return metric.Measured, metric.Evidence{}
	}
	c := pod.Container(e.Name)
	if c == nil {
		return metric.Measured, metric.Evidence{}
	}
	old := metric.Evidence{Rule: ruleContainerID, Other: metric.Sight{ID: c.ID, UID: pod.UID, Start: nanos(c.StartedAt)}}
	switch c.State {
	case metric.Live:
		started := c.StartedAt.Add(startSlack).UnixNano()
		if c.ID != "" && known.ID != c.ID && (known.ID == c.LastID || known.Start != 0 && known.Start <= started) {
			return metric.OldContainer, old
		}
	case metric.Waiting, metric.Terminated:
		if known.ID == c.ID || known.ID == c.LastID {
			return metric.OldContainer, old
		}
	}
	return metric.Measured, metric.Evidence{}
}

// unknownPod bears with a pod the API server has never known for one resolution,
// since we may hear of it later than its node did. One that it knew has been
// deleted, though its node may go on reporting it.
func (s *State) unknownPod(facts *metric.Facts, b *metric.Batch, known *metric.Instance, t *track) (metric.Reason, metric.Evidence) {
	if t.unknown < 0 {
		t.unknown = s.clock
	}
	if !t.known && (s.clock-t.unknown < b.Interval || known.Start > facts.At.UnixNano()) {
		return metric.Measured, metric.Evidence{}
	}
	return metric.OldPod, metric.Evidence{Rule: ruleUID}
}

// rivals counts the candidates that are still in.
func (s *State) rivals() (n int) {
	for _, c := range s.candidates {
		if !c.out {
			n++
		}
	}
	return n
}

// applyLife prefers what holds processes to what holds none.
func (s *State) applyLife(t *track, b *metric.Batch) {
	if s.rivals() < 2 {
		return
	}
	alive := -1
	for i, c := range s.candidates {
		if !c.out && b.Samples[c.sample].Instance.Processes > 0 {
			alive = i
		}
	}
	if alive < 0 {
		return
	}
	for i := range s.candidates {
		if c := &s.candidates[i]; !c.out && b.Samples[c.sample].Instance.Processes == 0 {
			s.lose(t, c, s.candidates[alive], b, metric.DeadCgroup, ruleLife)
		}
	}
}

// applyViews keeps one of several paths under which one container, or one pod,
// is reported: the one in the directory of the pod's QoS class, else the one
// kept before, else the one whose path sorts first.
func (s *State) applyViews(t *track, facts *metric.Facts, b *metric.Batch) {
	for i := range s.candidates {
		for j := range s.candidates[:i] {
			x, y := &s.candidates[j], &s.candidates[i]
			if x.out || y.out || !sameThing(&b.Samples[x.sample], &b.Samples[y.sample]) {
				continue
			}
			if s.preferView(t, facts, b, y, x) {
				x, y = y, x
			}
			s.lose(t, y, *x, b, metric.Ambiguous, ruleViews)
		}
	}
}

// sameThing reports whether two samples are views of one container or pod under
// two paths.
func sameThing(a, b *metric.Sample) bool {
	x, y := &a.Instance, &b.Instance
	if x.Path == "" || y.Path == "" || x.Path == y.Path {
		return false
	}
	if a.Entity.Kind == metric.Container {
		return x.ID != "" && x.ID == y.ID
	}
	return a.Entity.Kind == metric.Pod && x.UID != "" && x.UID == y.UID
}

func (s *State) preferView(t *track, facts *metric.Facts, b *metric.Batch, y, x *candidate) bool {
	ix, iy := &b.Samples[x.sample].Instance, &b.Samples[y.sample].Instance
	if pod := facts.Pod(b.Samples[x.sample].Entity.PodRef()); pod != nil && pod.QoS != "" {
		inX, inY := inClass(ix.Path, pod.QoS), inClass(iy.Path, pod.QoS)
		if inX != inY {
			return inY
		}
	}
	if t.lines[x.line].id == t.chosen || t.lines[y.line].id == t.chosen {
		return t.lines[y.line].id == t.chosen
	}
	return iy.Path < ix.Path
}

// inClass reports whether a pod's cgroup path lies in the directory of a QoS
// class, in either driver's spelling. Guaranteed pods lie in none.
func inClass(path metric.CgroupPath, qos string) bool {
	p := string(path)
	burstable := strings.Contains(p, "/burstable/") || strings.Contains(p, "-burstable")
	bestEffort := strings.Contains(p, "/besteffort/") || strings.Contains(p, "-besteffort")
	switch qos {
	case "Burstable":
		return burstable
	case "BestEffort":
		return bestEffort
	default:
		return !burstable && !bestEffort
	}
}

// stillness is how many new readings without movement tell a counter that rests
// for good from one that moves.
const stillness = 3

// applyStart prefers the later start, and where starts are known and equal
// the counter that moves. What once won by moving may rest.
func (s *State) applyStart(t *track, b *metric.Batch) {
	if s.rivals() < 2 {
		return
	}
	latest := -1
	for i, c := range s.candidates {
		if c.out || t.start(c, b) == 0 {
			continue
		}
		if latest < 0 || t.start(c, b) > t.start(s.candidates[latest], b) {
			latest = i
		}
	}
	tolerance := int64(max(2*b.Clock, 100*time.Millisecond))
	if latest >= 0 {
		for i := range s.candidates {
			c := &s.candidates[i]
			if start := t.start(*c, b); !c.out && start != 0 && t.start(s.candidates[latest], b)-start > tolerance {
				s.lose(t, c, s.candidates[latest], b, metric.OlderStart, ruleStart)
			}
		}
	}
	moving := -1
	for i, c := range s.candidates {
		if l := &t.lines[c.line]; !c.out && l.still == 0 && l.rate > 0 {
			moving = i
		}
	}
	if moving < 0 {
		return
	}
	for i := range s.candidates {
		c := &s.candidates[i]
		l := &t.lines[c.line]
		known := t.start(*c, b) != 0 && t.start(s.candidates[moving], b) != 0
		if !c.out && l.still >= stillness && known && l.id != t.moved {
			t.moved = t.lines[s.candidates[moving].line].id
			s.lose(t, c, s.candidates[moving], b, metric.OlderStart, ruleMovement)
		}
	}
}

// start returns when the candidate's instance began, if that is known from
// better than a cgroup's modification time; else 0.
func (t *track) start(c candidate, b *metric.Batch) int64 {
	i := t.lines[c.line].instance
	if i.Start == 0 {
		i = b.Samples[c.sample].Instance
	}
	if i.Origin == metric.StartCgroup || i.Origin == metric.StartReported && i.Path != "" && i.ID == "" {
		return 0
	}
	return i.Start
}

// choose leaves at most one candidate in. It reports whether nothing supports
// the choice.
func (s *State) choose(t *track, facts *metric.Facts, b *metric.Batch) (ambiguous bool) {
	switch s.rivals() {
	case 0:
		return false
	case 1:
		s.rememberLoser(t, facts, b)
		return false
	}
	winner := -1
	for i, c := range s.candidates {
		switch {
		case c.out:
		case t.lines[c.line].id == t.chosen && !s.unread(t, c, b, s.memory(b)):
			winner = i
		case s.unread(t, c, b, 0):
		case winner < 0:
			winner = i
		}
	}
	if winner < 0 { // all unread
		for i, c := range s.candidates {
			if !c.out {
				winner = i
				break
			}
		}
	}
	for i := range s.candidates {
		c := &s.candidates[i]
		if c.out || i == winner {
			continue
		}
		if b.Samples[c.sample].Reasons[metric.CPU] == metric.NoData {
			s.lose(t, c, s.candidates[winner], b, metric.Discontinuous, ruleContinuity)
			continue
		}
		ambiguous = true
		s.lose(t, c, s.candidates[winner], b, metric.Ambiguous, ruleContinuity)
	}
	return ambiguous
}

// unread reports whether c's counter is unread, and has been for longer than bear.
func (s *State) unread(t *track, c candidate, b *metric.Batch, bear time.Duration) bool {
	sample := &b.Samples[c.sample]
	return sample.Reasons[metric.CPU] == metric.NoData && (bear == 0 || reportTime(sample)-t.lines[c.line].time > int64(bear))
}

// denied reports whether the facts rule out, in this round, the line's report.
func (s *State) denied(line int) bool {
	for i := range s.candidates {
		if s.candidates[i].line == line && s.candidates[i].denied {
			return true
		}
	}
	return false
}

// rememberLoser turns a lone candidate away if it lost to a rival that was seen
// lately: the rival is missed for once, and the number is still not its. What
// the API server says is the present run is never turned away so.
func (s *State) rememberLoser(t *track, facts *metric.Facts, b *metric.Batch) {
	for i := range s.candidates {
		c := &s.candidates[i]
		l := &t.lines[c.line]
		if present(facts, &b.Samples[c.sample], b.Clock) || b.Exhaustive && l.rule == ruleViews {
			continue // the present run, or the last path to it
		}
		if c.out || l.lost == metric.Measured || l.lost.Layer() != metric.LayerIdentity || l.lostTo == 0 {
			continue
		}
		for j := range t.lines {
			if t.lines[j].id == l.lostTo && t.lines[j].seen != s.clock && !s.denied(j) && s.clock-t.lines[j].seen <= s.memory(b) {
				s.condemn(t, c, b, l.lost, metric.Evidence{Rule: l.rule, Other: metric.Sight{Start: t.lines[j].instance.Start, UID: t.lines[j].instance.UID, ID: t.lines[j].instance.ID}})
				return
			}
		}
	}
}

// present reports whether a sample's start is that of the run which the API
// server says is the container's present one.
func present(facts *metric.Facts, sample *metric.Sample, clock time.Duration) bool {
	e, start := &sample.Entity, sample.Instance.Start
	if e.Kind != metric.Container || start == 0 {
		return false
	}
	c := facts.Pod(e.PodRef()).Container(e.Name)
	if c == nil || c.State != metric.Live {
		return false
	}
	apart := c.StartedAt.Sub(time.Unix(0, start)).Abs()
	return apart <= startSlack+clock
}

// lose turns c away in favour of its rival.
func (s *State) lose(t *track, c *candidate, rival candidate, b *metric.Batch, reason metric.Reason, rule string) {
	winner := &t.lines[rival.line]
	t.lines[c.line].lostTo = winner.id
	s.condemn(t, c, b, reason, metric.Evidence{Rule: rule, Other: sight(&b.Samples[rival.sample], winner)})
}

func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}
