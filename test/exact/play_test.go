package exact

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/cluster/informer"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/processors"
	"github.com/weir-metrics/weir/sinks/memory"
	"github.com/weir-metrics/weir/sources/kubelet/cadvisor"
	"github.com/weir-metrics/weir/sources/kubelet/payload"
	"github.com/weir-metrics/weir/sources/kubelet/resource"
	"github.com/weir-metrics/weir/sources/kubelet/summary"
	"github.com/weir-metrics/weir/test/simulator"
)

type parser interface {
	Parse(body []byte, req payload.Request, b *metric.Batch) error
}

func parserOf(e simulator.Endpoint) (parser, time.Duration) {
	switch e {
	case simulator.Resource:
		return resource.New(), resource.Clock
	case simulator.CAdvisor:
		return cadvisor.New(), cadvisor.Clock
	default:
		return summary.New(), summary.Clock
	}
}

// play plays one schedule.
type play struct {
	t *testing.T
	schedule
	r        *rand.Rand
	fleet    *simulator.Fleet
	sources  []*source
	lives    map[string][]*simulator.Life // of each container, of all nodes
	sink     *memory.Sink
	known    map[metric.PodUID]time.Time // since when weir's cluster facts have a pod
	podLists []podList                   // by node
	buf      []byte
	reported bool

	absences      []*absence // of containers that run
	reads         *rand.Rand // when the served values are read between rounds
	read          tally
	wrong         []string // values that were read and are wrong
	absent        []string // decidable containers that were read and absent
	metricsServer *metricsServer
}

// podList is a PodList that was parsed, and its text.
type podList struct {
	text []byte
	pods v1.PodList
}

// source is one endpoint of one node with its pipeline.
type source struct {
	node                  *simulator.Node
	endpoint              simulator.Endpoint
	clock                 time.Duration
	parser                parser
	second                parser
	pipeline              *processors.Pipeline
	batch                 metric.Batch
	next                  time.Time
	round                 int
	lives                 []*simulator.Life
	ahead                 int64          // how far the node's clock was ahead at the last answer
	answered              []int64        // when its answers came
	word                  *cluster.Facts // the cluster facts of the last round
	observer              observer
	heard                 []delivery
	lastRead, lastSuccess time.Time
}

func newPlay(t *testing.T, s schedule, err error) *play {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	fleet, err := s.build()
	if err != nil {
		t.Fatalf("%v: %v", s, err)
	}
	p := &play{
		t: t, schedule: s, fleet: fleet, r: rand.New(rand.NewPCG(s.seed, 5)), reads: rand.New(rand.NewPCG(s.seed, 6)),
		lives: map[string][]*simulator.Life{}, known: map[metric.PodUID]time.Time{},
		sink: memory.New(memory.Options{History: time.Minute}),
	}
	if s.views[0] == simulator.Resource && s.options.Nodes == 1 {
		p.metricsServer = &metricsServer{}
	}
	begin := s.options.Start.Add(s.begins)
	for _, n := range fleet.Nodes() {
		lives := n.Lives()
		for _, l := range lives {
			p.lives[nameOf(l)] = append(p.lives[nameOf(l)], l)
		}
		for _, e := range s.views {
			src := &source{
				node: n, endpoint: e, lives: lives, second: summary.New(),
				pipeline: processors.New(processors.Options{}),
				next:     begin.Add(time.Duration(p.r.Int64N(int64(s.interval)))),
				observer: observer{trails: map[*simulator.Life]*trail{}, endpoint: e, slack: s.slack},
			}
			src.parser, src.clock = parserOf(e)
			src.batch = metric.Batch{Source: e.String(), Node: metric.NodeName(n.Name), Interval: s.interval, Resolution: src.clock}
			p.sources = append(p.sources, src)
		}
	}
	return p
}

// nameOf returns the container's name as a reader sees it.
func nameOf(l *simulator.Life) string {
	return l.Container.Pod.Namespace + "/" + l.Container.Pod.Name + "/" + l.Container.Name
}

// endpoints returns the name of the nodes' endpoint, or "mixed".
func (p *play) endpoints() string {
	if len(p.views) > 1 {
		return "mixed"
	}
	return p.views[0].String()
}

// run plays the schedule to its end.
func (p *play) run() {
	if p.reported {
		p.t.Log(p.schedule)
	}
	for {
		s := p.nextSource()
		if s == nil {
			return
		}
		now := s.next
		p.round(s)
		if next := p.nextSource(); next != nil && next.next.After(now) {
			p.readBetween(now, next.next)
		}
	}
}

// nextSource returns the source whose round is next; nil at the end.
func (p *play) nextSource() (s *source) {
	for _, o := range p.sources {
		if o.round < p.rounds && (s == nil || o.next.Before(s.next)) {
			s = o
		}
	}
	return s
}

var (
	errMissed = errors.New("missed")
	errCut    = errors.New("cut")
)

// round reads a source once.
func (p *play) round(s *source) {
	now := s.next
	if i, ok := p.changes[s.round]; ok {
		s.batch.Interval = i
	}
	s.round++
	s.next = now.Add(s.batch.Interval)
	if p.wobble > 0 {
		s.next = s.next.Add(time.Duration(p.r.Int64N(int64(p.wobble))) - p.wobble/2)
	}
	facts := p.factsAt(now, p.known)
	s.word = facts
	b := &s.batch
	b.Reset()
	b.Began, b.Ended = now, now
	d := delivery{now: now.UnixNano(), facts: facts, interval: b.Interval, cores: int64(s.node.Cores)}
	made := now
	isMissed, isLate, isCut := p.r.Float64() < p.missed, p.r.Float64() < p.late, p.r.Float64() < p.cut
	if isLate {
		// This answer was overtaken by newer ones.
		made = now.Add(-time.Duration(p.r.Int64N(int64(20 * time.Second))))
	}
	switch {
	case isMissed, s.node.Conduct(now).Down, s.node.Conduct(made).Down:
		b.Err = &metric.ReadError{Reason: metric.NodeTimeout, Err: errMissed}
		p.metricsServer.store(nil, b.Interval)
	case !p.parse(s.parser, s, s.endpoint, made, now, b, isCut):
		b.Reset()
		b.Began, b.Ended = now, now
		b.Err = &metric.ReadError{Reason: metric.NodeBadPayload, Err: errCut}
		p.metricsServer.store(nil, b.Interval)
	default:
		if d.ok = !isCut; isCut {
			p.metricsServer.store(nil, b.Interval)
			break // half an answer was taken for a whole one
		}
		if s.endpoint == simulator.Resource {
			p.metricsServer.store(p.buf, b.Interval)
		}
		s.answered = append(s.answered, d.now)
		d.is = p.aheadAt(s.node, d.now)
		if d.was = s.ahead; s.observer.answers == 0 {
			d.was = d.is
		}
		s.ahead = d.is
		d.made, d.reports = made.UnixNano(), s.node.Reports(nil, s.lives, s.endpoint, made.UnixNano())
	}
	if s.endpoint == simulator.Resource && !b.Failed() && s.pipeline.NeedsCrossCheck(facts, b, now) && p.second {
		w := &metric.Batch{Source: b.Source, Node: b.Node, Interval: b.Interval, Resolution: summary.Clock}
		if p.parse(s.second, s, simulator.SummaryCPUMemory, now, now, w, p.r.Float64() < p.cut) {
			b.CrossCheck = w
			d.second = s.node.Reports(nil, s.lives, simulator.SummaryCPUMemory, now.UnixNano())
		}
	}
	s.pipeline.Process(facts, b, now)
	if err := p.sink.Write(p.t.Context(), b); err != nil {
		p.t.Fatal(err)
	}
	if s.lastRead = now; d.ok {
		s.lastSuccess = now
	}
	s.heard = append(s.heard, d)
	s.observer.observe(d)
	p.check(s, d)
}

// parse fills b with the node's answer at a moment, and reports whether it was accepted. If the
// answer is cut, it ends within any of its lines: HTTP shows a cut, but a proxy may hide it.
func (p *play) parse(by parser, s *source, e simulator.Endpoint, at, now time.Time, b *metric.Batch, isCut bool) bool {
	p.buf = p.fleet.Append(p.buf[:0], s.node, e, at)
	if isCut {
		p.buf = p.buf[:p.r.IntN(len(p.buf))]
		p.buf = bytes.TrimRight(p.buf, "\n")
	}
	err := by.Parse(p.buf, payload.Request{Node: b.Node, Received: now.UnixNano()}, b)
	if err != nil && !isCut {
		p.t.Fatalf("%v: %v", p.schedule, err)
	}
	b.Cores = float64(s.node.Cores)
	b.NodeTime = s.node.Clock(now).Truncate(time.Second).UnixNano()
	return err == nil
}

// factsAt returns the cluster facts that weir has at now. They lag behind the
// API server. It returns nil if there is no API server. known says since when
// weir has each pod.
func (p *play) factsAt(now time.Time, known map[metric.PodUID]time.Time) *cluster.Facts {
	if !p.facts {
		return nil
	}
	for i, n := range p.fleet.Nodes() {
		if len(p.podLists) <= i {
			p.podLists = append(p.podLists, podList{})
		}
		list := &p.podLists[i]
		p.buf = p.fleet.Append(p.buf[:0], n, simulator.PodList, p.heard(now))
		if bytes.Equal(p.buf, list.text) {
			continue // most of the time nothing has changed
		}
		list.text, list.pods = bytes.Clone(p.buf), v1.PodList{}
		if err := json.Unmarshal(p.buf, &list.pods); err != nil {
			p.t.Fatal(err)
		}
	}
	var all v1.PodList
	for i := range p.podLists {
		all.Items = append(all.Items, p.podLists[i].pods.Items...)
	}
	facts := informer.FactsFromList(nil, &all, now)
	facts.EachPod(func(pod *cluster.Pod) bool {
		if _, ok := known[pod.UID]; !ok {
			known[pod.UID] = now
		}
		pod.KnownAt = known[pod.UID]
		return true
	})
	return facts
}
