package exact

import (
	"math"
	"slices"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/test/simulator"
)

// accuracy is the largest relative error of a rate where the node's timestamps
// are exact. It is far below the one percent that is promised.
const accuracy = 1e-6

// check compares what is served after a round of s with the truth.
func (p *play) check(s *source, d delivery) {
	p.checkPods(s)
	if p.reported {
		p.tellRound(s, d)
	}
}

// claim is a rate that somebody serves for a container. Times are by the node's
// clock.
type claim struct {
	entity metric.Entity
	rate   float64 // nanocores
	window metric.Window
	start  int64         // of the container, as it was reported
	clock  time.Duration // resolution of the window's end
}

// candidates returns the lives that may have an entity's name.
func (p *play) candidates(e metric.Entity) (list []*simulator.Life) {
	for _, l := range p.lives[e.String()] {
		if l.Container.Pod.Node.Name == string(e.Node) {
			list = append(list, l)
		}
	}
	return list
}

// right reports whether it is right to serve l with a window that ends at end.
// The cluster facts decide first: l must not be served if they name another pod
// or run and l is not present now, and it may be served if they name l.
// Otherwise l must have been present at the end of the window, or no later life
// was recently delivered: what was not reported for the hold, or is no longer
// reported by its node, may have ended.
func (p *play) right(l *simulator.Life, end, cut int64, d delivery) bool {
	if p.denied(l, d) && !l.Present(d.now) {
		return false
	}
	if p.named(l, d) {
		return true
	}
	pod := l.Container.Pod
	for _, span := range p.really(pod.Node, end, end+cut) {
		if l.Present(span.from) || l.Present(span.to) {
			return true
		}
	}
	for _, o := range p.lives[nameOf(l)] {
		if o.From > l.From && p.lately(o, d) {
			return false
		}
	}
	return true
}

// factsOf returns the cluster facts by which a value of s is judged at d.
func (s *source) factsOf(d delivery) *cluster.Facts {
	if d.read {
		return d.facts
	}
	return s.word
}

// named reports whether the cluster facts name l. They may be late.
func (p *play) named(l *simulator.Life, d delivery) bool {
	pod := l.Container.Pod
	for _, s := range p.sources {
		pf := s.factsOf(d).Pod(metric.PodRef{Namespace: metric.Namespace(pod.Namespace), Name: metric.PodName(pod.Name)})
		c := pf.Container(l.Container.Name)
		if s.node == pod.Node && c != nil && pf.UID == metric.PodUID(pod.UID()) && c.State == cluster.StateRunning && c.ID == metric.ContainerID(l.ID) {
			return true
		}
	}
	return false
}

// denied reports whether the cluster facts of the last round name another pod
// or run, for every endpoint of the node. Nodes report the hash of its manifest
// as the UID of a static pod. So a mirror pod that was made again, and names no
// run yet, denies none. A read between rounds must also not serve a run whose
// end the facts know.
func (p *play) denied(l *simulator.Life, d delivery) bool {
	pod := l.Container.Pod
	for _, s := range p.sources {
		if s.node != pod.Node {
			continue
		}
		pf := s.factsOf(d).Pod(metric.PodRef{Namespace: metric.Namespace(pod.Namespace), Name: metric.PodName(pod.Name)})
		if pf == nil {
			return false
		}
		c := pf.Container(l.Container.Name)
		if d.read && p.isLaterThanFacts(l, pf, c) {
			return false
		}
		if d.read && c != nil && (c.State == cluster.StateWaiting || c.State == cluster.StateTerminated) {
			return true
		}
		samePod := pf.UID == metric.PodUID(pod.UID()) || string(pf.ReportedUID()) == pod.ReportedUID()
		if samePod && (c == nil || c.State != cluster.StateRunning || c.ID == metric.ContainerID(l.ID)) {
			return false
		}
	}
	return true
}

// isLaterThanFacts reports whether l began after everything that late cluster
// facts know of its container. They do not speak against it.
func (p *play) isLaterThanFacts(l *simulator.Life, pf *cluster.Pod, c *cluster.Container) bool {
	for _, o := range p.lives[nameOf(l)] {
		if o.From < l.From {
			continue
		}
		if c != nil && c.ID != "" && c.ID == metric.ContainerID(o.ID) || (c == nil || c.ID == "") && pf.UID == metric.PodUID(o.Container.Pod.UID()) {
			return false
		}
	}
	return true
}

// lately reports whether a reading of l was delivered within the hold. With
// several nodes, the node's last answer must also contain the name.
func (p *play) lately(l *simulator.Life, d delivery) bool {
	for _, s := range p.sources {
		t, m := s.observer.trails[l], s.observer.mentions[nameOf(l)]
		if t == nil || m == nil || d.now-t.last > hold(d.interval) {
			continue
		}
		if len(p.fleet.Nodes()) == 1 || m.answer == s.observer.answers && s.batch.Err == nil {
			return true
		}
	}
	return false
}

// delivered reports whether any reading of l was delivered.
func (p *play) delivered(l *simulator.Life) bool { return p.trailOf(l) != nil }

// moved reports whether the counter moved at that rate in the window of c, if
// it was l's at the beginning and is's at the end. Timestamps are rounded down
// to the clock, so each true end is up to one clock tick later. The rate must
// be between the smallest and the largest that these ends allow.
func (p *play) moved(l, is *simulator.Life, c *claim) bool {
	w := c.window
	from, cut := w.End-int64(w.Length), int64(c.clock)
	cutStart := cut
	if apart := from - c.start; max(apart, -apart) <= int64(w.Length)/200 {
		if from%int64(time.Second) == 0 {
			cutStart = int64(time.Second) // the window begins at a start that the node rounds down to seconds
		} else {
			// Starts jitter by milliseconds. That is allowed up to half of the promised
			// error.
			from, cutStart = from-int64(w.Length)/200, int64(w.Length)/100
		}
	}
	node := l.Container.Pod.Node
	for _, end := range p.really(node, w.End, w.End+cut) {
		for _, begin := range p.really(node, from, from+cutStart) {
			if end.to < begin.from || end.from > is.Until || end.to < is.From {
				continue
			}
			length := float64(w.Length)
			if begin.shift != end.shift {
				length = float64(end.from - begin.from)
			}
			low, high := float64(is.CPU(end.from)-l.CPU(begin.to)), float64(is.CPU(end.to)-l.CPU(begin.from))
			used := c.rate / float64(time.Second) * length
			if slack := accuracy * math.Max(high, 1000); used >= low-slack && used <= high+slack {
				return true
			}
		}
	}
	return false
}

// span is an interval of true time in which a node's clock was ahead by shift.
type span struct{ from, to, shift int64 }

// really returns the intervals of true time in which a node's clock showed from
// to to. After steps of the clock, there may be several or none.
func (p *play) really(n *simulator.Node, from, to int64) (spans []span) {
	seg := span{from: math.MinInt64 / 2}
	for _, next := range append(p.stepsOf(n), span{from: math.MaxInt64 / 2}) {
		begin, end := max(from-seg.shift, seg.from), min(to-seg.shift, next.from)
		if begin <= end {
			spans = append(spans, span{begin, end, seg.shift})
		}
		seg = next
	}
	return spans
}

// stepsOf returns the steps of a node's clock in order: when it stepped, and
// how far it was ahead from then on.
func (p *play) stepsOf(n *simulator.Node) (steps []span) {
	for _, f := range p.options.Faults {
		if f.Kind == simulator.ClockStep && f.Node == n.Name {
			steps = append(steps, span{from: p.options.Start.Add(f.At).UnixNano(), shift: int64(f.By)})
		}
	}
	for i := range steps { // there are few, so sort by insertion
		for j := i; j > 0 && steps[j].from < steps[j-1].from; j-- {
			steps[j], steps[j-1] = steps[j-1], steps[j]
		}
	}
	for i := 1; i < len(steps); i++ {
		steps[i].shift += steps[i-1].shift
	}
	return steps
}

// aheadAt returns how far a node's clock is ahead at a moment.
func (p *play) aheadAt(n *simulator.Node, now int64) (shift int64) {
	for _, step := range p.stepsOf(n) {
		if step.from <= now {
			shift = step.shift
		}
	}
	return shift
}

// checkPods checks that a served pod is the sum of its containers.
func (p *play) checkPods(s *source) {
	sums := map[metric.PodRef]float64{}
	for i := range s.batch.Samples {
		sample := &s.batch.Samples[i]
		if v, ok := sample.Values.Get(metric.CPUUsageRate); ok && sample.Entity.Kind == metric.Container && sample.Entity.Part == "" && sample.Servable(metric.CPU) {
			sums[sample.Entity.PodRef()] += v
		}
	}
	for i := range s.batch.Samples {
		sample := &s.batch.Samples[i]
		if sample.Entity.Kind != metric.Pod || sample.Entity.Part != "" || !sample.Servable(metric.CPU) {
			continue
		}
		got, ok := sample.Values.Get(metric.CPUUsageRate)
		if !slices.ContainsFunc(s.batch.Samples, func(c metric.Sample) bool {
			return c.Entity.Kind == metric.Container && c.Entity.PodRef() == sample.Entity.PodRef() && !c.Rejected()
		}) {
			continue // only the pod's own cgroup is known
		}
		if pod := s.word.Pod(sample.Entity.PodRef()); pod != nil && sample.Instance.UID != "" && !pod.HasUID(sample.Instance.UID) {
			continue // the API server still names an earlier pod, so no API serves this one
		}
		if want := sums[sample.Entity.PodRef()]; !ok || math.Abs(got-want) > 1e-9*math.Max(want, 1) {
			p.t.Errorf("%v uses %v nanocores, its containers %v (%v)", sample.Entity, got, want, p.schedule)
		}
	}
}

// at returns a moment as its distance from the fleet's start.
func (p *play) at(ns int64) string {
	return time.Unix(0, ns).Sub(p.options.Start).Round(time.Millisecond).String()
}
