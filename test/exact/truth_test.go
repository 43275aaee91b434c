package exact

import (
	"math"
	"slices"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/test/simulator"
)

// accuracy is how far a rate may be off where the node's timestamps are exact,
// relative to the rate: far less than the one percent that is promised.
const accuracy = 1e-6

// check holds what is served after a round of s against the truth, and counts.
func (p *play) check(s *source, d delivery) {
	p.checkContainers(s, d)
	p.checkPods(s, d)
	if s.endpoint == p.views[0] {
		p.count(s, d)
	}
}

// checkContainers checks every rate of a container that is served.
func (p *play) checkContainers(s *source, d delivery) {
	if len(p.fleet.Nodes()) == 1 {
		for i := range s.batch.Samples {
			if sample := &s.batch.Samples[i]; sample.Entity.Kind == metric.Container && sample.Entity.Part == "" && !sample.Rejected() {
				p.checkContainer(sample, s.clock, d)
			}
		}
		return
	}
	// Which node has a pod is settled only where the nodes' batches meet.
	clock := s.clock
	if len(p.views) > 1 {
		clock = time.Second
	}
	p.sink.Snapshot().Each(metric.Container, func(sample *metric.Sample) bool {
		p.checkContainer(sample, clock, d)
		return true
	})
}

func (p *play) checkContainer(sample *metric.Sample, clock time.Duration, d delivery) {
	if !sample.Servable(metric.CPU) || sample.Entity.Part != "" {
		return
	}
	got, ok := sample.Values.Get(metric.CPUUsageRate)
	w := sample.Rates[metric.CPU]
	if !ok || w.Length <= 0 {
		p.failf("%v is measured, and has no rate over a window", sample.Entity)
		return
	}
	name := sample.Entity.String()
	var candidates []*simulator.Life
	for _, l := range p.lives[name] {
		if l.Container.Pod.Node.Name == string(sample.Entity.Node) {
			candidates = append(candidates, l)
		}
	}
	flagged := sample.Reasons[metric.CPU] == metric.Ambiguous
	duplicates := p.duplicates(name, d)
	if flagged && len(duplicates) == 0 {
		p.failf("%v at %v is Ambiguous, and what was delivered tells its instances apart", sample.Entity, p.at(d.now))
	}
	matched := false
	for _, l := range candidates {
		if !p.moved(l, l, sample, got, clock) {
			continue
		}
		matched = true
		if p.right(l, w.End, int64(clock), d) {
			return
		}
		for _, other := range duplicates {
			if flagged && other == l {
				return
			}
		}
	}
	if p.unseen(candidates, sample, got, clock, d) {
		p.shares.unseen++
		return
	}
	reason := "no life of its counter says so"
	if matched {
		reason = "that is another instance's"
	}
	p.failf("%v at %v: %.6f cores over %v to %v (%v), and %s", sample.Entity, p.at(d.now), got/1e9, w.Length, p.at(w.End), sample.Reasons[metric.CPU], reason)
}

// right reports whether l is the instance to serve with a window that ended
// then: it was the present one at that time, or nothing that was delivered lately
// tells of a later one, or the API server's word as it was delivered is about it (what is not reported for as long as last numbers stand, or by
// a node that no longer reports it, may be gone). A number that the API server's word, as it was delivered,
// calls another's must not stand.
func (p *play) right(l *simulator.Life, end, cut int64, d delivery) bool {
	if p.denied(l) && !l.Present(d.now) {
		return false
	}
	if p.named(l) {
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

// named reports whether the API server's word, late as it may be, is about l.
func (p *play) named(l *simulator.Life) bool {
	pod := l.Container.Pod
	for _, s := range p.sources {
		pf := s.word.Pod(metric.PodRef{Namespace: metric.Namespace(pod.Namespace), Name: metric.PodName(pod.Name)})
		c := pf.Container(l.Container.Name)
		if s.node == pod.Node && c != nil && pf.UID == metric.PodUID(pod.UID()) && c.State == cluster.StateRunning && c.ID == metric.ContainerID(l.ID) {
			return true
		}
	}
	return false
}

// denied reports whether the API server's word, as it was at the last round of
// each endpoint of the node, was about another pod or run.
func (p *play) denied(l *simulator.Life) bool {
	pod := l.Container.Pod
	for _, s := range p.sources {
		if s.node != pod.Node {
			continue
		}
		pf := s.word.Pod(metric.PodRef{Namespace: metric.Namespace(pod.Namespace), Name: metric.PodName(pod.Name)})
		if pf == nil {
			return false
		}
		c := pf.Container(l.Container.Name)
		if pf.UID == metric.PodUID(pod.UID()) && (c == nil || c.State != cluster.StateRunning || c.ID == metric.ContainerID(l.ID)) {
			return false
		}
	}
	return true
}

// lately reports whether a reading of l has reached weir, and its node has not
// been silent of it since.
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

// delivered reports whether any reading of l has reached weir.
func (p *play) delivered(l *simulator.Life) bool {
	for _, s := range p.sources {
		if s.observer.trails[l] != nil {
			return true
		}
	}
	return false
}

// unseen reports whether the counter began again in the window and nothing that
// was delivered could show it: it has passed where it was, under the same start and
// name or under none, and the API server's word has not come yet. No reader of that
// endpoint can know.
func (p *play) unseen(lives []*simulator.Life, sample *metric.Sample, rate float64, clock time.Duration, d delivery) bool {
	for _, was := range lives {
		for _, is := range lives {
			if was.From >= is.From || !p.moved(was, is, sample, rate, clock) {
				continue
			}
			if was.ID == is.ID {
				return true
			}
			t := p.trailOf(is)
			if t != nil && t.minStart == 0 && !t.uid && !p.named(is) {
				return true
			}
		}
	}
	return false
}

// moved reports whether a counter that was l's at the window's begin and is's at its
// end moved at that rate in the window of sample.
// Timestamps were cut to clock, so the true ends lie in a clock's tick behind
// them, and the rate between what the counter says at either end of the ticks.
func (p *play) moved(l, is *simulator.Life, sample *metric.Sample, rate float64, clock time.Duration) bool {
	w := sample.Rates[metric.CPU]
	from, cut := w.End-int64(w.Length), int64(clock)
	cutStart := cut
	if apart := from - sample.Instance.Start; max(apart, -apart) <= int64(w.Length)/200 {
		if from%int64(time.Second) == 0 {
			cutStart = int64(time.Second) // measured from a start that the node cuts
		} else {
			// Starts jitter by milliseconds; within half of what is promised, they may.
			from, cutStart = from-int64(w.Length)/200, int64(w.Length)/100
		}
	}
	node := l.Container.Pod.Node
	for _, end := range p.really(node, w.End, w.End+cut) {
		for _, begin := range p.really(node, from, from+cutStart) {
			if end.to < begin.from || end.from > is.Until {
				continue
			}
			length := float64(w.Length)
			if begin.shift != end.shift {
				length = float64(end.from - begin.from)
			}
			low, high := float64(is.CPU(end.from)-l.CPU(begin.to)), float64(is.CPU(end.to)-l.CPU(begin.from))
			used := rate / float64(time.Second) * length
			if slack := accuracy * math.Max(high, 1000); used >= low-slack && used <= high+slack {
				return true
			}
		}
	}
	return false
}

// span is a stretch of true time in which a node's clock was ahead by shift.
type span struct{ from, to, shift int64 }

// really returns when a node's clock showed from to to: more than once, or
// never, if it was put back or forward.
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

// stepsOf returns when a node's clock stepped, and by how much it was ahead
// from then on, in order.
func (p *play) stepsOf(n *simulator.Node) (steps []span) {
	for _, f := range p.options.Faults {
		if f.Kind == simulator.ClockStep && f.Node == n.Name {
			steps = append(steps, span{from: p.options.Start.Add(f.At).UnixNano(), shift: int64(f.By)})
		}
	}
	for i := range steps { // few: sort by insertion
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

// checkPods checks that a pod that is served is the sum of its containers, of all
// that the node has just reported.
func (p *play) checkPods(s *source, d delivery) {
	sums := map[metric.PodRef]float64{}
	names := map[string]bool{}
	for i := range s.batch.Samples {
		sample := &s.batch.Samples[i]
		if v, ok := sample.Values.Get(metric.CPUUsageRate); ok && sample.Entity.Kind == metric.Container && sample.Entity.Part == "" && sample.Servable(metric.CPU) {
			sums[sample.Entity.PodRef()] += v
			names[sample.Entity.String()] = true
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
			continue // only its own cgroup is known
		}
		if want := sums[sample.Entity.PodRef()]; !ok || math.Abs(got-want) > 1e-9*math.Max(want, 1) {
			p.failf("%v uses %v nanocores, its containers %v", sample.Entity, got, want)
		}
		for name, lives := range p.lives {
			c := lives[0].Container
			if c.Pod.Namespace == string(sample.Entity.Namespace) && c.Pod.Name == string(sample.Entity.Pod) && !names[name] && justReported(name, d) {
				p.failf("%v is served without %s, which was just reported", sample.Entity, name)
			}
		}
	}
}

// at tells a moment by its distance from the fleet's start.
func (p *play) at(ns int64) string {
	return time.Unix(0, ns).Sub(p.options.Start).Round(time.Millisecond).String()
}
