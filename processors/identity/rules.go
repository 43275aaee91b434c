package identity

import (
	"slices"
	"strings"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// The names of the rules in the evidence of a verdict.
const (
	rulePlace       = "place"
	ruleUID         = "uid"
	ruleUnknown     = "unknown"
	ruleContainerID = "container id"
	ruleLife        = "life"
	ruleViews       = "two paths, one container"
	ruleStart       = "start"
	ruleMovement    = "movement"
	ruleAge         = "age"
	ruleContinuity  = "continuity"
)

// startSlack is by how much two times of one machine may differ that are cut to whole seconds.
const startSlack = time.Second

// markUnread gives CPU and memory the reason NoData where a kubelet wrote 0 for what it could
// not read: a CPU counter of 0, as starting a process takes CPU time, and memory of 0 beside it.
// It reports whether it found any. A source that reports the cgroup's inode read the kernel
// itself: there a 0 is a 0.
func (s *Identifier) markUnread(b *metric.Batch) (any bool) {
	for i := range s.candidates {
		sample := &b.Samples[s.candidates[i].sample]
		if k := sample.Entity.Kind; k != metric.Container && k != metric.Pod || sample.Instance.Inode != 0 {
			continue
		}
		cpu, hasCPU := sample.Values.Get(metric.CPUUsage)
		memory, hasMemory := sample.Values.Get(metric.MemoryWorkingSet)
		if !hasCPU || cpu != 0 {
			continue
		}
		sample.Reasons[metric.CPU] = metric.NoData
		if hasMemory && memory == 0 {
			sample.Reasons[metric.Memory] = metric.NoData
		}
		any = true
	}
	return any
}

// reportUnread adds the verdicts for samples that markUnread marked and no rule rejected.
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

// applyOldPods rejects containers of a UID that lost by its start in another container of the
// pod.
func (s *Identifier) applyOldPods(t *track, facts *cluster.Facts, b *metric.Batch) {
	e := &b.Samples[t.first].Entity
	if !s.hasOldPods || e.Kind != metric.Container {
		return
	}
	pod := facts.PodOf(b, int(t.first))
	for _, past := range s.oldPodsOf(b, t.first) {
		if pod != nil && pod.HasUID(past) {
			continue // a static pod has its earlier manifest again
		}
		for i := range s.candidates {
			if c := &s.candidates[i]; !c.rejected && t.lines[c.line].uid == past {
				s.reject(t, c, b, metric.OldPod, metric.Evidence{Rule: ruleUID})
			}
		}
	}
}

// remaining counts the candidates that are not rejected.
func (s *Identifier) remaining() (n int) {
	for _, c := range s.candidates {
		if !c.rejected {
			n++
		}
	}
	return n
}

// applyLife rejects candidates without processes if another candidate has some.
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

// applyViews keeps one of several paths under which one container or pod is reported: the one
// in the directory of the pod's QoS class, else the one chosen before, else the first by name.
// A path in the directory of another class is not the pod's, even alone.
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
	for i := range s.candidates {
		c := &s.candidates[i]
		l := &t.lines[c.line]
		if c.rejected || l.path == "" {
			continue
		}
		pod := facts.PodOf(b, int(c.sample))
		if l.inOtherClass(pod) {
			s.reject(t, c, b, metric.Discontinuous, metric.Evidence{Rule: ruleViews})
		} else if r := s.missingPath(t, c, b); r != nil && (pod == nil || l.class != pod.QoS || r.class == l.class) {
			l.lostTo = r.id
			s.reject(t, c, b, metric.Ambiguous, metric.Evidence{Rule: ruleViews, Other: metric.CounterReading{Start: r.start, UID: r.uid, ID: r.container, Path: r.path}})
		}
	}
}

// missingPath returns the line of the chosen path of the container or pod, if c is a path that
// was not seen before and the chosen one is only missing from this answer; else nil.
func (s *Identifier) missingPath(t *track, c *candidate, b *metric.Batch) *line {
	if !c.newLine || b.Exhaustive {
		return nil
	}
	l := &t.lines[c.line]
	for i := range t.lines {
		r := &t.lines[i]
		same := l.container != "" && r.container == l.container || l.container == "" && l.uid != "" && r.uid == l.uid
		if r.id == t.chosen && same && r.path != "" && r.path != l.path && !s.taken(i) && s.clock-r.seen <= s.rememberFor(b) {
			return r
		}
	}
	return nil
}

// inOtherClass reports whether the line's path lies in the directory of another QoS class than
// pod's, whose class never changes. The class of a static pod is that of its manifest, which the
// API server knows if the hash is the same.
func (l *line) inOtherClass(pod *cluster.Pod) bool {
	return pod != nil && pod.QoS != "" && l.class != "" && l.class != pod.QoS && l.uid != "" && l.uid == pod.ReportedUID()
}

// joinPaths finds the paths of one container or pod that show one cgroup: their counters are
// equal. For rate they are one line, so it goes on where the one path is missing. Paths whose
// counters differ are two cgroups, and two lines.
func (s *Identifier) joinPaths(t *track, b *metric.Batch) {
	for i := range s.candidates {
		for j := range s.candidates[:i] {
			x, y := &s.candidates[j], &s.candidates[i]
			if !sameThing(&b.Samples[x.sample], &b.Samples[y.sample]) {
				continue
			}
			lx, ly := &t.lines[x.line], &t.lines[y.line]
			if ly.id == t.chosen { // its number is kept
				lx, ly = ly, lx
			}
			cpuX, _ := b.Samples[x.sample].Values.Get(metric.CPUUsage)
			cpuY, _ := b.Samples[y.sample].Values.Get(metric.CPUUsage)
			joined := lx.number() == ly.number()
			switch {
			case cpuX == 0 || cpuY == 0:
			case cpuX == cpuY && !joined:
				ly.joined = lx.number()
			case cpuX != cpuY && joined:
				s.lastID++
				ly.joined = s.lastID
			}
		}
	}
}

// number returns the line's number for the later steps.
func (l *line) number() uint32 {
	if l.joined != 0 {
		return l.joined
	}
	return l.id
}

// sameThing reports whether two samples are one container or pod under two paths.
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
	lx, ly := &t.lines[x.line], &t.lines[y.line]
	if pod := facts.PodOf(b, int(x.sample)); pod != nil && pod.QoS != "" {
		inX, inY := lx.class == pod.QoS, ly.class == pod.QoS
		if inX != inY {
			return inY
		}
	}
	if lx.id == t.chosen || ly.id == t.chosen {
		return ly.id == t.chosen
	}
	return b.Samples[y.sample].Instance.Path < b.Samples[x.sample].Instance.Path
}

// classOf returns the QoS class in whose directory a pod's cgroup path lies, as the cgroupfs or
// the systemd driver names it. Guaranteed pods lie beside these directories. It returns "" for a
// path outside the kubelet's cgroups.
func classOf(path metric.CgroupPath) string {
	p := string(path)
	switch {
	case strings.Contains(p, "/burstable/") || strings.Contains(p, "-burstable"):
		return "Burstable"
	case strings.Contains(p, "/besteffort/") || strings.Contains(p, "-besteffort"):
		return "BestEffort"
	case strings.Contains(p, "kubepods"):
		return "Guaranteed"
	}
	return ""
}

// choose leaves at most one candidate. It reports whether the choice has no evidence.
func (s *Identifier) choose(t *track, facts *cluster.Facts, b *metric.Batch) (ambiguous bool) {
	t.guessed = s.remaining() > 1
	switch s.remaining() {
	case 0:
		return false
	case 1:
		s.rejectFormerLoser(t, b)
		return s.stillAmbiguous(t, facts, b)
	}
	winner, appeared := -1, -1
	for i, c := range s.candidates {
		switch {
		case c.rejected || appeared >= 0:
		case t.appeared(c, b, s.rememberFor(b)):
			winner, appeared = i, i // it appeared beside the others, so it may be the younger
		case t.lines[c.line].id == t.chosen && !s.unread(t, c, b, s.rememberFor(b)):
			winner = i
		case s.unread(t, c, b, 0):
		case winner < 0:
			winner = i
		}
	}
	if winner < 0 { // no counter could be read
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
			if doubt { // a counter that cannot be read is no evidence for the other one
				ambiguous, l.lost = true, metric.Ambiguous
			}
			continue
		}
		ambiguous = true
		s.rejectFor(t, c, s.candidates[winner], b, metric.Ambiguous, ruleContinuity)
	}
	return ambiguous
}

// appeared reports whether c appeared beside the other candidates, within the given time, and its
// counter was never read.
func (t *track) appeared(c candidate, b *metric.Batch, within time.Duration) bool {
	l, sample := &t.lines[c.line], &b.Samples[c.sample]
	return l.unreadSince != 0 && l.cpu < 0 && unreadCPU(sample) && reportTime(sample)-l.unreadSince <= int64(within)
}

// unread reports whether the counter of c could not be read, and, unless bear is 0, was last
// read longer ago than bear.
func (s *Identifier) unread(t *track, c candidate, b *metric.Batch, bear time.Duration) bool {
	sample := &b.Samples[c.sample]
	return sample.Reasons[metric.CPU] == metric.NoData && (bear == 0 || reportTime(sample)-t.lines[c.line].time > int64(bear))
}

// rejectFormerLoser rejects the only remaining candidate if it lost to a line that was seen
// lately: that line is missing from this answer, but is still the living instance. It does not
// reject the present run that the API server reports, nor a candidate that lost without
// evidence and is now known to have the later start. A second path of one container may have
// any start, so neither helps it; but it may be the last path, or show the same cgroup. It stays
// rejected for as long as it is alone if it was made long after the run that has its ID.
func (s *Identifier) rejectFormerLoser(t *track, b *metric.Batch) {
	for i := range s.candidates {
		c := &s.candidates[i]
		l := &t.lines[c.line]
		if c.rejected || l.lost == metric.Measured || l.lost.Layer() != metric.LayerIdentity || l.lostTo == 0 {
			continue
		}
		secondPath := l.rule == ruleViews
		if secondPath && b.Exhaustive || !secondPath && c.run != nil {
			continue // the only path that is left, or the present run
		}
		for j := range t.lines {
			r := &t.lines[j]
			switch {
			case r.id != l.lostTo || r.seen < 0:
			case s.taken(j) && r.disproved(): // it is reported, and is not the living instance either
			case secondPath && r.number() == l.number():
			case l.lost == metric.Ambiguous && !secondPath && t.younger(c, r, b):
			default:
				s.reject(t, c, b, l.lost, metric.Evidence{Rule: l.rule, Other: metric.CounterReading{Start: r.start, UID: r.uid, ID: r.container}})
				return
			}
		}
		if secondPath && l.number() != l.lostTo && c.run != nil && madeLater(&b.Samples[c.sample].Instance, c.run) {
			s.reject(t, c, b, l.lost, metric.Evidence{Rule: l.rule})
		}
	}
}

// madeLater reports whether an instance has the ID of the present run by the API server, and a start
// long after it: the run began in another cgroup.
func madeLater(is *metric.Instance, run *cluster.Container) bool {
	return is.ID != "" && run.ID == is.ID && is.Start != 0 && is.Origin != metric.StartCgroup && is.StartTime().Sub(run.StartedAt) > startJitter
}

// stillAmbiguous reports whether the only remaining candidate was once preferred without
// evidence to a line that is missing now and was seen lately. The choice still has no evidence
// then.
func (s *Identifier) stillAmbiguous(t *track, facts *cluster.Facts, b *metric.Batch) bool {
	if len(t.lines) == 1 {
		return false
	}
	for i := range s.candidates {
		c := &s.candidates[i]
		if c.rejected || s.showsPresentRun(t, c, facts, b) {
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

// showsPresentRun reports whether the candidate is the present run by the API server: by its report,
// or by the start that a second read gave its line.
func (s *Identifier) showsPresentRun(t *track, c *candidate, facts *cluster.Facts, b *metric.Batch) bool {
	sample, l := &b.Samples[c.sample], &t.lines[c.line]
	return sample.Entity.Kind == metric.Container && factsCover(facts, &sample.Entity) &&
		isPresentRun(facts.PodOf(b, int(c.sample)).Container(sample.Entity.Name), l.container, startOf(sample, &l.core), b)
}

// disproved reports whether the line was last rejected because it is not the present run. A
// line without processes, or the second path of one container, is not disproved.
func (l *line) disproved() bool {
	switch l.lost {
	case metric.OtherNode, metric.OldPod, metric.OldContainer, metric.OlderStart:
		return true
	}
	return false
}

// younger reports whether both starts are known, and that of c is later by more than
// startSlack, or by whole seconds if both are cut to seconds.
func (t *track) younger(c *candidate, r *line, b *metric.Batch) bool {
	start := t.start(*c, b)
	return start != 0 && r.start != 0 && isLater(start, r.start+r.shift, int64(startSlack))
}

// rejectFor rejects c in favour of kept.
func (s *Identifier) rejectFor(t *track, c *candidate, kept candidate, b *metric.Batch, reason metric.Reason, rule string) {
	winner := &t.lines[kept.line]
	t.lines[c.line].lostTo = winner.id
	if old := t.lines[c.line].uid; reason == metric.OlderStart && old != "" && winner.uid != "" && old != winner.uid {
		if k := s.podTrack(b, c.sample); k >= 0 {
			pod := s.openJudged(k)
			if pod.oldPods = slices.DeleteFunc(pod.oldPods, func(uid metric.PodUID) bool { return uid == winner.uid }); !slices.Contains(pod.oldPods, old) {
				pod.oldPods = append(pod.oldPods, old)
			}
			s.hasOldPods = true
		}
	}
	s.reject(t, c, b, reason, metric.Evidence{Rule: rule, Other: readingOf(&b.Samples[kept.sample], winner)})
}
