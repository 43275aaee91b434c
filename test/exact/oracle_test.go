package exact

import (
	"fmt"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/test/simulator"
)

// The oracle says what could be known. It hears what weir hears, but is told of
// each line which life of which container it is truly of, and when it was truly
// read; it shares no rule with the processors.
//
// A pod-round is one pod that the API server has bound to a node and that has a
// container running, at one round of that node. It is decidable if each
// container of the pod runs and, of its present life (the run that truly is the
// pod's present one, since its counter last began at 0), in one endpoint's answers
//
//   - two readings were delivered, readable and in order, whose timestamps differ
//     by ten seconds, the shortest window that weir promises (thirty where they are cut to
//     the second, or the cuts alone would be too large an error); the node's clock did not step
//     between them (an answer that shows that it stepped may still hold readings from
//     before, so of these only those count whose time the clock would not have
//     shown without the step); and the later of them was delivered no longer ago than last
//     numbers stand: three intervals, at least a minute;
//   - without an API server, the container was not left out of two answers
//     between them or since: nothing then tells a container that is missed from
//     one that is gone;
//   - what was delivered tells that life from every other life of its name that
//     was delivered (see tells). Lines of /metrics/resource name nothing, so what
//     is known of one is known only as long as its counter can be followed: not
//     beyond an answer in which two counters could as well have changed places;
//   - and the API server's word, where there is one, has arrived: while weir is
//     told of another pod or run, the evidence contradicts itself.
//
// Ambiguous is legitimate while two lives of one name were delivered side by
// side lately and nothing delivered tells them apart. What is then served must
// be true of one of these two.

// least is the shortest window weir promises where e tells time in milliseconds; in
// whole seconds, the ends of a window as short would be off by a tenth of it.
func least(e simulator.Endpoint) time.Duration {
	if e == simulator.Summary {
		return 30 * time.Second
	}
	return 10 * time.Second
}

// hold is how long last numbers stand.
func hold(interval time.Duration) int64 { return int64(max(3*interval, time.Minute)) }

// measurable reports whether a rate of l could have been measured from what was
// delivered, and still stands.
func (e *observer) measurable(l *simulator.Life, shift int64, d delivery) (ok bool, reason string) {
	t, m := e.trails[l], e.mentions[nameOf(l)]
	if t == nil || m == nil {
		return false, "never heard of"
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

// startSlack is by how much starts must differ to say which is later.
const startSlack = 2 * time.Second

// distinguishes reports whether what e delivered tells that l is the present life, and
// rival is not.
func (e *observer) distinguishes(l, other *simulator.Life, facts *cluster.Facts) bool {
	if l.ID == other.ID {
		return true // one container, whose counter was reset
	}
	t, o := e.trails[l], e.trails[other]
	if t == nil || o == nil || e.appeared[pair{l, other}] {
		return true
	}
	if t.minStart != 0 && o.minStart != 0 && t.minStart-o.maxStart > int64(startSlack) {
		return true
	}
	if e.isDistinct(l, other, t, o, facts) {
		return true
	}
	if _, ok := e.together[pair{l, other}]; ok {
		return false
	}
	// One came after the other.
	return t.minStart > o.lastStamp || t.firstCPU < o.lastCPU || e.endpoint == simulator.CAdvisor
}

// isDistinct reports whether the API server's word tells l from rival.
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
	return o.minStart != 0 && started-o.maxStart > int64(startSlack)
}

// duplicates returns the lives of a name that were delivered side by side lately, and
// that nothing tells apart.
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

// confused reports whether two lives were delivered side by side lately by an
// endpoint that does not tell them apart, or by two nodes.
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

// trailOf returns what was heard of a life, from the first endpoint that did.
func (p *play) trailOf(l *simulator.Life) *trail {
	for _, s := range p.sources {
		if t := s.observer.trails[l]; t != nil {
			return t
		}
	}
	return nil
}

// count adds the pod-rounds of a node's round to the shares.
func (p *play) count(s *source, d delivery) {
	snapshot := p.sink.Snapshot()
	for _, pod := range s.node.Pods() {
		var present []*simulator.Life
		for _, l := range s.lives {
			if l.Container.Pod == pod && l.Present(d.now) {
				present = append(present, l)
			}
		}
		if len(present) == 0 {
			continue
		}
		p.shares.asked++
		e := metric.Entity{Kind: metric.Pod, Node: metric.NodeName(s.node.Name), Namespace: metric.Namespace(pod.Namespace), Pod: metric.PodName(pod.Name)}
		sample, ok := snapshot.Lookup(e)
		served := ok && sample.Servable(metric.CPU) && sample.Values.Has(metric.CPUUsageRate)
		if served {
			p.shares.served++
			if sample.Reasons[metric.CPU] == metric.Ambiguous {
				p.shares.ambiguous++
			}
		}
		decidable, reason := p.decidable(pod, present, p.aheadAt(s.node, d.now), d)
		if decidable {
			p.shares.decidable++
			if !served {
				p.shares.unserved++
				p.left = append(p.left, fmt.Sprintf("%v at %v: %s (%v)", e, p.at(d.now), p.reasons(s, e.PodRef()), p.schedule))
			}
		}
		if p.reported {
			p.t.Logf("%v at %v: served %v, decidable %v %s; %s", e, p.at(d.now), served, decidable, reason, p.reasons(s, e.PodRef()))
		}
	}
}

// decidable reports whether what was delivered tells what the pod uses.
func (p *play) decidable(pod *simulator.Pod, present []*simulator.Life, shift int64, d delivery) (ok bool, reason string) {
	if len(present) < len(pod.Containers) {
		return false, "a container does not run"
	}
	if d.facts != nil {
		pf := d.facts.Pod(metric.PodRef{Namespace: metric.Namespace(pod.Namespace), Name: metric.PodName(pod.Name)})
		if pf == nil || pf.UID != metric.PodUID(pod.UID()) {
			return false, "the API server is behind"
		}
		for _, l := range present {
			if c := pf.Container(l.Container.Name); c == nil || c.State != cluster.StateRunning || c.ID != metric.ContainerID(l.ID) {
				return false, "the API server is behind"
			}
		}
	}
sources:
	for _, s := range p.sources {
		if s.node != pod.Node {
			continue
		}
		for _, l := range present {
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

// reasons tells what weir says of a pod and its containers.
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
