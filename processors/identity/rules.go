package identity

import (
	"strings"
	"time"

	"github.com/weir-metrics/weir/cluster"
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
func (s *Identifier) markUnread(t *track, b *metric.Batch) (any bool) {
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
		restarted := l.start != 0 && sample.Instance.Start > l.time
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
func (s *Identifier) reportUnread(t *track, b *metric.Batch) {
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
					Evidence: metric.Evidence{Got: readingOf(sample, l), Other: metric.CounterReading{Time: l.time, Value: max(l.cpu, 0), Start: l.start}},
				})
			}
		}
	}
}

// applyOldPod rejects containers of a pod of which another container was found to be
// older than one of the pod that has the name now.
func (s *Identifier) applyOldPod(t *track, b *metric.Batch) {
	e := &b.Samples[t.first].Entity
	if !s.hasOldPods || e.Kind != metric.Container {
		return
	}
	past := s.oldPodOf(b, t.first)
	if past == "" {
		return
	}
	for i := range s.candidates {
		c := &s.candidates[i]
		if !c.rejected && t.lines[c.line].uid == past {
			s.reject(t, c, b, metric.OldPod, metric.Evidence{Rule: ruleUID})
		}
	}
}

// remaining counts the candidates that are still in.
func (s *Identifier) remaining() (n int) {
	for _, c := range s.candidates {
		if !c.rejected {
			n++
		}
	}
	return n
}

// applyLife prefers what holds processes to what holds none.
func (s *Identifier) applyLife(t *track, b *metric.Batch) {
	if s.remaining() < 2 {
		return
	}
	alive := -1
	for i, c := range s.candidates {
		if !c.rejected && b.Samples[c.sample].Instance.Processes > 0 {
			alive = i
		}
	}
	if alive < 0 {
		return
	}
	for i := range s.candidates {
		if c := &s.candidates[i]; !c.rejected && b.Samples[c.sample].Instance.Processes == 0 {
			s.rejectFor(t, c, s.candidates[alive], b, metric.DeadCgroup, ruleLife)
		}
	}
}

// applyViews keeps one of several paths under which one container, or one pod,
// is reported: the one in the directory of the pod's QoS class, else the one
// kept before, else the one whose path sorts first.
func (s *Identifier) applyViews(t *track, facts *cluster.Facts, b *metric.Batch) {
	for i := range s.candidates {
		for j := range s.candidates[:i] {
			x, y := &s.candidates[j], &s.candidates[i]
			if x.rejected || y.rejected || !sameThing(&b.Samples[x.sample], &b.Samples[y.sample]) {
				continue
			}
			if s.preferView(t, facts, b, y, x) {
				x, y = y, x
			}
			s.rejectFor(t, y, *x, b, metric.Ambiguous, ruleViews)
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

func (s *Identifier) preferView(t *track, facts *cluster.Facts, b *metric.Batch, y, x *candidate) bool {
	ix, iy := &b.Samples[x.sample].Instance, &b.Samples[y.sample].Instance
	if pod := facts.PodOf(b, int(x.sample)); pod != nil && pod.QoS != "" {
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

// choose leaves at most one candidate in. It reports whether nothing supports
// the choice.
func (s *Identifier) choose(t *track, facts *cluster.Facts, b *metric.Batch) (ambiguous bool) {
	t.guessed = s.remaining() > 1
	switch s.remaining() {
	case 0:
		return false
	case 1:
		s.rejectFormerLoser(t, facts, b)
		return s.stillAmbiguous(t, facts, b)
	}
	winner := -1
	for i, c := range s.candidates {
		switch {
		case c.rejected:
		case t.lines[c.line].id == t.chosen && !s.unread(t, c, b, s.rememberFor(b)):
			winner = i
		case s.unread(t, c, b, 0):
		case winner < 0:
			winner = i
		}
	}
	if winner < 0 { // all unread
		for i, c := range s.candidates {
			if !c.rejected {
				winner = i
				break
			}
		}
	}
	for i := range s.candidates {
		c := &s.candidates[i]
		if c.rejected || i == winner {
			continue
		}
		l := &t.lines[c.line]
		if doubt := l.lost == metric.Ambiguous || l.cpu < 0; b.Samples[c.sample].Reasons[metric.CPU] == metric.NoData {
			s.rejectFor(t, c, s.candidates[winner], b, metric.Discontinuous, ruleContinuity)
			if doubt { // that it cannot be read makes the other no surer
				ambiguous, l.lost = true, metric.Ambiguous
			}
			continue
		}
		ambiguous = true
		s.rejectFor(t, c, s.candidates[winner], b, metric.Ambiguous, ruleContinuity)
	}
	return ambiguous
}

// unread reports whether c's counter is unread, and has been for longer than bear.
func (s *Identifier) unread(t *track, c candidate, b *metric.Batch, bear time.Duration) bool {
	sample := &b.Samples[c.sample]
	return sample.Reasons[metric.CPU] == metric.NoData && (bear == 0 || reportTime(sample)-t.lines[c.line].time > int64(bear))
}

// rejectFormerLoser turns a lone candidate away if it lost to a rival that was seen
// lately: the rival is missed for once, and the number is still not its. What
// the API server says is the present run is never turned away so, nor what was
// turned away for no reason and is now told to be the younger.
func (s *Identifier) rejectFormerLoser(t *track, facts *cluster.Facts, b *metric.Batch) {
	for i := range s.candidates {
		c := &s.candidates[i]
		l := &t.lines[c.line]
		if c.rejected || l.lost == metric.Measured || l.lost.Layer() != metric.LayerIdentity || l.lostTo == 0 {
			continue
		}
		if presentRun(facts, b, int(c.sample)) != nil || b.Exhaustive && l.rule == ruleViews {
			continue // the present run, or the last path to it
		}
		for j := range t.lines {
			r := &t.lines[j]
			switch {
			case r.id != l.lostTo || s.clock-r.seen > s.rememberFor(b):
			case s.taken(j) && r.disproved(): // it is not missed
			case l.lost == metric.Ambiguous && t.younger(c, r, b):
			default:
				s.reject(t, c, b, l.lost, metric.Evidence{Rule: l.rule, Other: metric.CounterReading{Start: r.start, UID: r.uid, ID: r.container}})
				return
			}
		}
	}
}

// stillAmbiguous reports whether the only candidate left was once preferred, for no
// reason, to a rival that is missed now but was seen lately: the choice is no
// better founded for that.
func (s *Identifier) stillAmbiguous(t *track, facts *cluster.Facts, b *metric.Batch) bool {
	if len(t.lines) == 1 {
		return false
	}
	for i := range s.candidates {
		c := &s.candidates[i]
		if c.rejected || presentRun(facts, b, int(c.sample)) != nil {
			continue
		}
		for j := range t.lines {
			r := &t.lines[j]
			if t.younger(c, r, b) {
				continue // its start is known by now
			}
			if r.lost == metric.Ambiguous && r.rule == ruleContinuity && r.lostTo == t.lines[c.line].id && !s.taken(j) && s.clock-r.seen <= s.rememberFor(b) {
				return true
			}
		}
	}
	return false
}

// disproved reports whether the line was turned away last because it is not the
// present run, rather than for being empty or the other of two.
func (l *line) disproved() bool {
	switch l.lost {
	case metric.OtherNode, metric.OldPod, metric.OldContainer, metric.OlderStart:
		return true
	}
	return false
}

// younger reports whether both starts are known, and c's is the later.
func (t *track) younger(c *candidate, r *line, b *metric.Batch) bool {
	start := t.start(*c, b)
	return start != 0 && r.start != 0 && start-r.start-r.shift > int64(startSlack)
}

// rejectFor turns c away in favour of its rival.
func (s *Identifier) rejectFor(t *track, c *candidate, kept candidate, b *metric.Batch, reason metric.Reason, rule string) {
	winner := &t.lines[kept.line]
	t.lines[c.line].lostTo = winner.id
	if old := t.lines[c.line].uid; reason == metric.OlderStart && old != "" && winner.uid != "" && old != winner.uid {
		if k := s.podTrack(b, c.sample); k >= 0 {
			s.openJudged(k).oldPod, s.hasOldPods = old, true
		}
	}
	s.reject(t, c, b, reason, metric.Evidence{Rule: rule, Other: readingOf(&b.Samples[kept.sample], winner)})
}
