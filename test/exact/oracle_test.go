package exact

import (
	"fmt"
	"slices"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/test/simulator"
)

// The oracle says what could be known. It gets what weir gets, and also, for
// each line, which life of which container the line really belongs to and when
// it was really read. It shares no rule with the processors.
//
// A pod is decidable if each of its required containers (regular ones and
// sidecars) runs or waits, one of them runs, and no init container runs. With an
// API server, its facts must say so; without one, roles are unknown, and a
// container that waits must be missing from two answers. For the present life of
// each of these containers that runs (since its counter last began at 0), the
// answers of one endpoint fulfil these conditions:
//
//   - Two readable readings were delivered in order, at least ten seconds apart
//     by their timestamps. Ten seconds is the shortest window that weir promises.
//     Where timestamps are rounded down to seconds, it is thirty, because the
//     rounding would be too large an error of a shorter window.
//   - The node's clock did not step between the two readings, and both are
//     certainly from after its last step (see mayPrecedeStep).
//   - The later reading was delivered within the hold: three intervals, but at
//     least a minute.
//   - Without an API server, no two answers in a row lacked the container between
//     the two readings or later. Otherwise nothing distinguishes a missing
//     container from one that has ended.
//   - What was delivered distinguishes that life from every other life of its
//     name that was delivered (see distinguishes). Lines of /metrics/resource
//     name no instance, so a life is only known while its counter can be
//     followed: not after an answer in which two counters could have been
//     exchanged.
//   - No second cgroup with a counter of its own was delivered under its ID in the
//     last five minutes. With an API server and the cgroup paths of
//     /metrics/cadvisor it does no harm, because the pod's QoS class says which
//     path is right.
//   - With an API server, the cluster facts are up to date. While weir sees facts
//     about another pod or run, its evidence contradicts itself.
//
// Ambiguous is allowed while two lives of one name were recently delivered
// together and nothing that was delivered distinguishes them. The number that
// is then served must be true of one of the two.

// least returns the shortest window that weir promises for an endpoint. It is
// longer where timestamps are whole seconds: the rounding of both ends would be
// a tenth of a window of ten seconds.
func least(e simulator.Endpoint) time.Duration {
	if e == simulator.Summary {
		return 30 * time.Second
	}
	return 10 * time.Second
}

// otherHold is for how long the counter of another cgroup leaves it open which
// is the container's.
const otherHold = 5 * time.Minute

// hold returns how long a last known value is served, in nanoseconds.
func hold(interval time.Duration) int64 { return int64(max(3*interval, time.Minute)) }

// measurable reports whether a rate of l could have been measured from what was
// delivered, not longer ago than the hold.
func (e *observer) measurable(l *simulator.Life, shift int64, d delivery) (ok bool, reason string) {
	t, m := e.trails[l], e.mentions[nameOf(l)]
	if t == nil || m == nil {
		return false, "never heard of"
	}
	if t.other != 0 && d.now-t.other < int64(otherHold) && (e.endpoint != simulator.CAdvisor || d.facts == nil) {
		return false, "two counters have its ID"
	}
	broken := int64(0)
	if d.facts == nil {
		if e.answers-m.answer >= 2 {
			return false, "not heard of for two answers"
		}
		broken = m.broken
	}
	for j := len(t.readings) - 1; j >= 0; j-- {
		cur := t.readings[j]
		if cur.shift != shift || cur.delivered < broken || d.now-cur.delivered > hold(d.interval) {
			break
		}
		for _, prev := range t.readings[:j] {
			if prev.shift == shift && prev.delivered >= broken && cur.stamp-prev.stamp >= int64(least(e.endpoint)) {
				return true, ""
			}
		}
	}
	return false, "no two readings"
}

// startSlack is by how much start times must differ to say which is later, if
// they are wrong by seconds at most.
const startSlack = 2 * time.Second

// distinguishes reports whether what e delivered shows that l is the present
// life and other is not.
func (e *observer) distinguishes(l, other *simulator.Life, facts *cluster.Facts) bool {
	if l.ID == other.ID {
		return true // one container, whose counter was reset
	}
	t, o := e.trails[l], e.trails[other]
	if t == nil || o == nil || e.appeared[pair{l, other}] {
		return true
	}
	if t.minStart != 0 && o.minStart != 0 && t.minStart-o.maxStart > int64(e.slack) {
		return true
	}
	if e.isDistinct(l, other, t, o, facts) {
		return true
	}
	if _, ok := e.together[pair{l, other}]; ok {
		return false
	}
	// They were never delivered together: one came after the other.
	return t.minStart > o.lastStamp || t.firstCPU < o.lastCPU || e.endpoint == simulator.CAdvisor
}

// isDistinct reports whether the cluster facts distinguish l from the other
// life.
func (e *observer) isDistinct(l, isDistinct *simulator.Life, t, o *trail, facts *cluster.Facts) bool {
	pod := l.Container.Pod
	pf := facts.Pod(metric.PodRef{Namespace: metric.Namespace(pod.Namespace), Name: metric.PodName(pod.Name)})
	c := pf.Container(l.Container.Name)
	if c == nil {
		return false
	}
	switch {
	case isDistinct.Container.Pod.Node != pod.Node, e.endpoint == simulator.CAdvisor:
		return true
	case isDistinct.Container.Pod.ReportedUID() != pod.ReportedUID() && t.uid && o.uid:
		return true
	}
	started := c.StartedAt.UnixNano()
	return o.minStart != 0 && started-o.maxStart > int64(e.slack)
}

// duplicates returns the lives of a name that were recently delivered together
// and that nothing distinguishes.
func (p *play) duplicates(name string, d delivery) (list []*simulator.Life) {
	lives := p.lives[name]
	for _, l := range lives {
		for _, other := range lives {
			if l.From > other.From && p.confused(l, other, d) {
				list = append(list, l, other)
			}
		}
	}
	return list
}

// confused reports whether two lives were recently delivered together by an
// endpoint that does not distinguish them, or were delivered by two nodes.
func (p *play) confused(l, other *simulator.Life, d delivery) bool {
	for _, s := range p.sources {
		if at, ok := s.observer.together[pair{l, other}]; ok && d.now-at <= 2*hold(d.interval) && !s.observer.distinguishes(l, other, d.facts) {
			return true
		}
	}
	if l.Container.Pod.Node != other.Container.Pod.Node && p.delivered(l) && p.delivered(other) {
		if d.facts != nil {
			return false
		}
		a, b := p.trailOf(l), p.trailOf(other)
		return a == nil || b == nil || a.minStart == 0 || b.minStart == 0 || a.minStart-b.maxStart <= int64(startSlack)
	}
	return false
}

// trailOf returns the trail of a life from the first endpoint that has one.
func (p *play) trailOf(l *simulator.Life) *trail {
	for _, s := range p.sources {
		if t := s.observer.trails[l]; t != nil {
			return t
		}
	}
	return nil
}

// tellRound logs weir's reasons after a round of s.
func (p *play) tellRound(s *source, d delivery) {
	for _, pod := range s.node.Pods() {
		if len(p.presentOf(pod, d.now)) > 0 {
			ref := metric.PodRef{Namespace: metric.Namespace(pod.Namespace), Name: metric.PodName(pod.Name)}
			p.t.Logf("%v at %v: %s", ref, p.at(d.now), p.reasons(s, ref))
		}
	}
}

// decidable reports whether what was delivered shows what the pod uses.
func (p *play) decidable(pod *simulator.Pod, present []*simulator.Life, shift int64, d delivery) (ok bool, reason string) {
	required := present
	if d.facts != nil {
		required = slices.DeleteFunc(slices.Clone(present), func(l *simulator.Life) bool { return !l.Container.Required() })
	}
	if len(required) == 0 {
		return false, "no required container runs"
	}
	var pf *cluster.Pod
	if d.facts != nil {
		if pf = d.facts.Pod(metric.PodRef{Namespace: metric.Namespace(pod.Namespace), Name: metric.PodName(pod.Name)}); pf == nil || pf.UID != metric.PodUID(pod.UID()) {
			return false, "the API server is behind"
		}
	}
	for _, c := range pod.Containers {
		i := slices.IndexFunc(present, func(l *simulator.Life) bool { return l.Container == c })
		switch {
		case d.facts == nil && i < 0 && p.recentlyReported(pod, c, d):
			return false, "a container does not run, and was just reported"
		case d.facts == nil || c.Role() == simulator.Ephemeral:
		case c.Role() == simulator.Init && i >= 0:
			return false, "an init container runs"
		case c.Role() == simulator.Init:
		default:
			f := pf.Container(c.Name)
			runs := f != nil && f.State == cluster.StateRunning
			if f == nil || runs != (i >= 0) || runs && f.ID != metric.ContainerID(present[i].ID) {
				return false, "the API server is behind"
			}
		}
	}
	return p.isKnown(pod, required, shift, d)
}

// recentlyReported reports whether one of the last two answers of an endpoint had a
// container.
func (p *play) recentlyReported(pod *simulator.Pod, c *simulator.Container, d delivery) bool {
	for _, s := range p.sources {
		m := s.observer.mentions[pod.Namespace+"/"+pod.Name+"/"+c.Name]
		if s.node == pod.Node && m != nil && s.observer.answers-m.answer < 2 {
			return true
		}
	}
	return false
}

// isKnown reports whether the answers of one endpoint show what all these lives
// of a pod's containers use.
func (p *play) isKnown(pod *simulator.Pod, lives []*simulator.Life, shift int64, d delivery) (ok bool, reason string) {
sources:
	for _, s := range p.sources {
		if s.node != pod.Node {
			continue
		}
		for _, l := range lives {
			if ok, reason = s.observer.measurable(l, shift, d); !ok {
				continue sources
			}
			for _, other := range p.lives[nameOf(l)] {
				if other == l {
					continue
				}
				elsewhere := other.Container.Pod.Node != pod.Node && p.confused(l, other, d)
				if elsewhere || !s.observer.distinguishes(l, other, d.facts) {
					reason = "not told from " + other.ID[:8]
					continue sources
				}
			}
		}
		return true, ""
	}
	return false, reason
}

// reasons returns weir's reasons for a pod and its containers, as text.
func (p *play) reasons(s *source, ref metric.PodRef) (text string) {
	for i := range s.batch.Samples {
		sample := &s.batch.Samples[i]
		if sample.Entity.PodRef() == ref && sample.Entity.Part == "" {
			text += fmt.Sprintf(" %s%v", sample.Entity.Name, sample.Reasons[metric.CPU])
			if p.reported {
				cpu, _ := sample.Values.Get(metric.CPUUsage)
				in := &sample.Instance
				text += fmt.Sprintf("[line %d, %.3fs at %s, start %s, uid %.4s, id %.4s, held %v, window %v]", in.Line, cpu/1e9, p.at(sample.Times[metric.CPU]), p.at(in.Start), in.UID, in.ID, sample.LastKnown&1 != 0, sample.Rates[metric.CPU].Length)
			}
		}
	}
	return text
}
