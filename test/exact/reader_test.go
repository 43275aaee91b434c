package exact

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/cluster/resourceusage"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/test/simulator"
)

// Between two rounds the served values are read once, as metrics.k8s.io reads
// them: the usage of whole pods, by the rule of package resourceusage, with the
// cluster facts of that moment. Every container that runs then, and every other
// container that is served, is one reading.
//
// A value is right if the CPU rate is what the counter of the right run did in
// its window and the memory is what that run had at its time. Every other value
// is wrong: nothing excuses it. A wrong value counts under the first of these
// that is true:
//
//   - decidable: what was delivered shows the right number, or the API server had
//     named another run in the last round;
//   - ended: the API server names another run since the last round;
//   - doubtful: weir marked it as Ambiguous, which metrics.k8s.io does not show;
//   - undecidable: nothing that was delivered shows that it is wrong.

// tally counts readings.
type tally struct {
	readings  int
	right     int
	wrong     [len(kindsOfWrong)]int
	needless  int // right, and marked as Ambiguous, although something distinguishes the duplicates
	decidable int // of pods whose required containers all run or wait
	absent    int // of those decidable
	peer      int // readings of metrics-server's rule
	peerRight int
	peerWrong int // all of them
}

func (a *tally) add(b tally) {
	a.readings += b.readings
	a.right += b.right
	for i := range a.wrong {
		a.wrong[i] += b.wrong[i]
	}
	a.needless += b.needless
	a.decidable += b.decidable
	a.absent += b.absent
	a.peer += b.peer
	a.peerRight += b.peerRight
	a.peerWrong += b.peerWrong
}

// allWrong returns the number of wrong readings of every kind.
func (a *tally) allWrong() (n int) {
	for _, wrong := range a.wrong {
		n += wrong
	}
	return n
}

// wrongKind is what could be known of a wrong reading.
type wrongKind int

const (
	isDecidable wrongKind = iota
	hasEnded
	isDoubtful
	isUndecidable
)

var kindsOfWrong = [...]string{"decidable", "ended", "doubtful", "undecidable"}

func (k wrongKind) String() string { return kindsOfWrong[k] }

// value is a claim with the memory that is served beside it.
type value struct {
	claim
	memory    float64
	memoryAt  int64
	ambiguous bool
}

// readBetween reads the served values at a random moment between two rounds.
func (p *play) readBetween(after, before time.Time) {
	now := after.Add(time.Duration(1 + p.reads.Int64N(int64(before.Sub(after)))))
	facts := p.factsAt(now, maps.Clone(p.known))
	s := p.sources[0]
	d := delivery{now: now.UnixNano(), facts: facts, interval: s.batch.Interval, cores: int64(s.node.Cores), read: true}
	values := p.served(facts)
	judged := map[string]bool{}
	p.follow(values, now)
	for _, n := range p.fleet.Nodes() {
		for _, pod := range n.Pods() {
			present := p.presentOf(pod, d.now)
			if len(present) == 0 {
				continue
			}
			shift := p.aheadAt(n, d.now)
			podDecidable, why := p.decidable(pod, present, shift, d)
			if podDecidable && facts != nil {
				// weir decided in the last round, with the facts of that time.
				then := d
				then.facts = p.sourceOf(metric.NodeName(n.Name)).word
				podDecidable, why = p.decidable(pod, present, shift, then)
			}
			for _, l := range present {
				decidable := podDecidable
				if podDecidable && !l.Container.Required() {
					decidable, _ = p.isKnown(pod, []*simulator.Life{l}, shift, d)
				}
				p.read.readings++
				if decidable {
					p.read.decidable++
				}
				v, ok := values[nameOf(l)]
				judged[nameOf(l)] = true
				if !ok {
					p.absences = append(p.absences, p.explainAbsence(l, facts, now))
				}
				switch {
				case ok:
					p.judge(&v, l, d)
				case decidable:
					p.read.absent++
					p.absent = append(p.absent, fmt.Sprintf("%s read at %v: absent;%s (%v)", nameOf(l), p.at(d.now), p.reasons(p.sourceOf(metric.NodeName(n.Name)), metric.PodRef{Namespace: metric.Namespace(pod.Namespace), Name: metric.PodName(pod.Name)}), p.schedule))
				}
				if p.reported {
					p.t.Logf("read %s at %v: %v, %.6f cores over %v to %v, decidable %v %s", nameOf(l), p.at(d.now), ok, v.rate/1e9, v.window.Length, p.at(v.window.End), decidable, why)
				}
			}
			p.readPeer(pod, present, d)
		}
	}
	for name, v := range values {
		if !judged[name] {
			p.read.readings++
			p.judge(&v, nil, d)
		}
	}
}

// presentOf returns the present lives of a pod's containers.
func (p *play) presentOf(pod *simulator.Pod, now int64) (present []*simulator.Life) {
	for _, c := range pod.Containers {
		for _, l := range p.lives[pod.Namespace+"/"+pod.Name+"/"+c.Name] {
			if l.Container == c && l.Present(now) {
				present = append(present, l)
			}
		}
	}
	return present
}

// served returns the values of all containers as metrics.k8s.io serves them.
func (p *play) served(facts *cluster.Facts) map[string]value {
	snapshot := p.sink.Snapshot()
	values := map[string]value{}
	clock := p.sources[0].clock
	for _, s := range p.sources {
		clock = max(clock, s.clock)
	}
	listed := map[metric.PodRef]int{}
	snapshot.EachPodUsage(func(u *resourceusage.PodUsage) bool {
		if facts != nil && !resourceusage.MayServePod(facts.Pod(*u.PodRef), u) {
			return true
		}
		listed[*u.PodRef] = len(u.Containers)
		for _, c := range u.Containers {
			e := metric.Entity{Kind: metric.Container, Node: u.Node, Namespace: u.Namespace, Pod: u.Name, Name: c.Name}
			sample, ok := snapshot.Lookup(e)
			if !ok {
				p.t.Errorf("%v is served, and has no sample (%v)", e, p.schedule)
				continue
			}
			v := value{claim: claim{entity: e, window: sample.Rates[metric.CPU], start: sample.Instance.Start, clock: clock}, memoryAt: sample.Times[metric.Memory], ambiguous: sample.Reasons[metric.CPU] == metric.Ambiguous}
			v.rate, _ = sample.Values.Get(metric.CPUUsageRate)
			v.memory, _ = sample.Values.Get(metric.MemoryWorkingSet)
			if c.CPU != int64(math.Round(v.rate)) {
				p.t.Errorf("%v is served with %d nanocores, its sample has %v (%v)", e, c.CPU, v.rate, p.schedule)
			}
			values[e.String()] = v
		}
		return true
	})
	p.readOneByOne(snapshot, facts, listed)
	return values
}

// podReader is the part of a snapshot that reads one pod.
type podReader interface {
	PodUsage(ref metric.PodRef, u *resourceusage.PodUsage) bool
}

// readOneByOne checks that reading each pod alone gives the pods of the list.
func (p *play) readOneByOne(snapshot podReader, facts *cluster.Facts, listed map[metric.PodRef]int) {
	for _, n := range p.fleet.Nodes() {
		for _, pod := range n.Pods() {
			var u resourceusage.PodUsage
			ref := metric.PodRef{Namespace: metric.Namespace(pod.Namespace), Name: metric.PodName(pod.Name)}
			ok := snapshot.PodUsage(ref, &u) && (facts == nil || resourceusage.MayServePod(facts.Pod(ref), &u))
			if got := len(u.Containers); ok && got != listed[ref] || !ok && listed[ref] > 0 {
				p.t.Errorf("%v has %d containers read alone (%v), %d in the list (%v)", ref, got, ok, listed[ref], p.schedule)
			}
		}
	}
}

// judge counts a served value. l is the container's present life, or nil.
func (p *play) judge(v *value, l *simulator.Life, d delivery) {
	cpu, memory := p.isRight(&v.claim, d, func(l *simulator.Life) bool { return p.hadMemory(l, v) })
	if cpu && memory {
		p.read.right++
		if v.ambiguous && len(p.duplicates(v.entity.String(), d)) == 0 {
			p.read.needless++
		}
		return
	}
	kind := p.kindOf(v, l, d)
	p.read.wrong[kind]++
	what := fmt.Sprintf("%.6f cores over %v to %v", v.rate/1e9, v.window.Length, p.at(v.window.End))
	if cpu {
		what = fmt.Sprintf("memory %.0f of %v", v.memory, p.at(v.memoryAt))
	}
	p.wrong = append(p.wrong, fmt.Sprintf("%v: %v read at %v: %s;%s (%v)", kind, v.entity, p.at(d.now), what, p.reasons(p.sourceOf(v.entity.Node), v.entity.PodRef()), p.schedule))
}

func (p *play) sourceOf(node metric.NodeName) *source {
	for _, s := range p.sources {
		if s.node.Name == string(node) {
			return s
		}
	}
	return p.sources[0]
}

// isRight reports whether the rate is that of a life which it is right to
// serve, and whether the memory is that life's too.
func (p *play) isRight(c *claim, d delivery, hasMemory func(l *simulator.Life) bool) (cpu, memory bool) {
	for _, l := range p.candidates(c.entity) {
		if p.moved(l, l, c) && p.right(l, c.window.End, int64(c.clock), d) {
			if cpu = true; hasMemory(l) {
				return true, true
			}
		}
	}
	return cpu, false
}

// kindOf returns what could be known of a wrong value. l is the container's
// present life; nil if the container does not run.
func (p *play) kindOf(v *value, l *simulator.Life, d delivery) wrongKind {
	var matched []*simulator.Life
	for _, o := range p.candidates(v.entity) {
		if p.moved(o, o, &v.claim) {
			matched = append(matched, o)
		}
	}
	denied := func(d delivery) bool {
		return len(matched) > 0 && !slices.ContainsFunc(matched, func(o *simulator.Life) bool { return !p.denied(o, d) })
	}
	if denied(d) {
		for _, s := range p.sources {
			then := d
			if then.facts = s.word; s.node.Name == string(v.entity.Node) && !denied(then) {
				return hasEnded
			}
		}
		return isDecidable
	}
	if l != nil && (d.facts == nil || p.named(l, d)) && !p.hasHiddenStep(&v.claim) {
		if ok, _ := p.isKnown(l.Container.Pod, []*simulator.Life{l}, p.aheadAt(l.Container.Pod.Node, d.now), d); ok {
			return isDecidable
		}
	}
	if v.ambiguous {
		return isDoubtful
	}
	return isUndecidable
}

// hasHiddenStep reports whether the clock stepped in the window of c, and no
// answer shows it: the step is too small, or the clock was nearly put back
// before the next answer. A reading from in between may have any time that is
// not in the future of its answer. Nobody can know then that the counter moved
// by as much in a longer or shorter time, neither when that is measured nor when
// it is repeated.
func (p *play) hasHiddenStep(c *claim) bool {
	from, cut := c.window.End-int64(c.window.Length), int64(c.clock)
	used := c.rate / float64(time.Second) * float64(c.window.Length)
	for _, l := range p.candidates(c.entity) {
		for _, begin := range p.really(l.Container.Pod.Node, from, from+cut) {
			for _, end := range p.really(l.Container.Pod.Node, c.window.End, c.window.End+cut) {
				low, high := float64(l.CPU(end.from)-l.CPU(begin.to)), float64(l.CPU(end.to)-l.CPU(begin.from))
				slack := accuracy * math.Max(high, 1000)
				if begin.from <= end.to && begin.shift != end.shift && !p.showsStep(l.Container.Pod.Node, begin.to, end.from) && used >= low-slack && used <= high+slack {
					return true
				}
			}
		}
	}
	return false
}

// showsStep reports whether answers of a node show a step of its clock between
// the last answer before from and the first one at to or later.
func (p *play) showsStep(n *simulator.Node, from, to int64) bool {
	answers := p.sourceOf(metric.NodeName(n.Name)).answered
	for i := 1; i < len(answers); i++ {
		by := p.aheadAt(n, answers[i]) - p.aheadAt(n, answers[i-1])
		if answers[i] >= from && answers[i-1] < to && max(by, -by) >= int64(leastStep) {
			return true
		}
	}
	return false
}

// hadMemory reports whether a life had the memory of v at its time.
func (p *play) hadMemory(l *simulator.Life, v *value) bool {
	for _, span := range p.really(l.Container.Pod.Node, v.memoryAt, v.memoryAt+int64(v.clock)) {
		low, high := math.Inf(1), math.Inf(-1)
		// Memory changes by up to 2.5% of the limit a second, and turns. Near its lowest, which is
		// 10% of the limit, the points are thus at most 0.4% from it.
		const points = 32
		for i := range int64(points + 1) {
			had := float64(l.Memory(span.from + (span.to-span.from)*i/points))
			low, high = min(low, had), max(high, had)
		}
		if v.memory >= low*0.99 && v.memory <= high*1.01 {
			return true
		}
	}
	return false
}

// readPeer reads what metrics-server's rule serves for a pod.
func (p *play) readPeer(pod *simulator.Pod, present []*simulator.Life, d delivery) {
	if p.metricsServer == nil {
		return
	}
	usage := p.metricsServer.usage(pod.Namespace + "/" + pod.Name)
	for _, l := range present {
		p.read.peer++
		c, ok := usage[l.Container.Name]
		if !ok {
			continue
		}
		c.entity = metric.Entity{Kind: metric.Container, Node: metric.NodeName(pod.Node.Name), Namespace: metric.Namespace(pod.Namespace), Pod: metric.PodName(pod.Name), Name: l.Container.Name}
		if right, _ := p.isRight(&c, d, func(*simulator.Life) bool { return true }); right {
			p.read.peerRight++
		} else {
			p.read.peerWrong++
		}
	}
}
