package identity_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/processors/identity"
)

// The fast path only saves work: whatever a node reports, its outcome is that of the long way, which
// an empty second read forces.
func TestQuickWayChangesNothing(t *testing.T) {
	quick := 0
	for seed := range uint64(200) {
		w := newFixture(seed)
		long, s := identity.New(), identity.New()
		for round := range 60 {
			w.turn()
			want, wantDoubt := w.judgedBy(long, &metric.Batch{})
			got, doubt := w.judgedBy(s, nil)
			at := fmt.Sprintf("seed %d, round %d", seed, round)
			if doubt != wantDoubt {
				t.Fatalf("%s: wants a second read: %v, the long way %v", at, doubt, wantDoubt)
			}
			compare(t, at, got, want)
			if !doubt && !slices.ContainsFunc(got.Samples, func(s metric.Sample) bool { return s.Rejected() }) {
				quick += len(got.Samples)
			}
		}
	}
	if quick < 20_000 {
		t.Errorf("only %d samples were of answers without doubts, want 20,000: the worlds are too wild to show anything", quick)
	}
}

func compare(t *testing.T, at string, got, want *metric.Batch) {
	t.Helper()
	if len(got.Samples) != len(want.Samples) {
		t.Fatalf("%s: %d samples, the long way leaves %d", at, len(got.Samples), len(want.Samples))
	}
	for i := range want.Samples {
		if !reflect.DeepEqual(got.Samples[i], want.Samples[i]) {
			t.Fatalf("%s: sample %d\n got %+v\nwant %+v", at, i, got.Samples[i], want.Samples[i])
		}
	}
	if len(got.Verdicts)+len(want.Verdicts) > 0 && !reflect.DeepEqual(got.Verdicts, want.Verdicts) {
		t.Fatalf("%s: verdicts\n got %+v\nwant %+v", at, got.Verdicts, want.Verdicts)
	}
}

// fixture is a node on which every fault happens now and then.
type fixture struct {
	*rand.Rand
	named, paths   bool // reports have UIDs and IDs; reports have paths
	partial, parts bool
	faultEvery     int // one event in this many is a fault
	now            time.Time
	step           time.Duration // of the node's clock
	pods           []*pod
	born           int
	facts          *cluster.Facts
	batch          metric.Batch
}

type pod struct {
	name       metric.PodName
	uid        metric.PodUID
	own        run
	runs       []run // of the container app, the present and older ones
	other      run   // of the container side
	isReported bool
	reported   bool
}

type run struct {
	uid   metric.PodUID
	id    metric.ContainerID
	start time.Time
	cpu   float64
	pace  float64
	at    time.Time
	ends  int // rounds until it is no longer reported; negative: it lives
}

func newFixture(seed uint64) *fixture {
	r := rand.New(rand.NewPCG(seed, 7))
	w := &fixture{Rand: r, now: time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC), faultEvery: 10 + r.IntN(200)}
	w.named, w.paths, w.partial, w.parts = r.IntN(2) == 0, r.IntN(4) == 0, r.IntN(3) == 0, r.IntN(2) == 0
	w.batch = metric.Batch{Source: "test", Node: "n1", Interval: 15 * time.Second, Resolution: time.Millisecond, Cores: float64(r.IntN(2) * 4)}
	for i := range 1 + r.IntN(5) {
		p := &pod{name: metric.PodName(fmt.Sprint("web-", i)), reported: true}
		w.begin(p)
		w.pods = append(w.pods, p)
	}
	return w
}

func (w *fixture) wrong() bool { return w.IntN(w.faultEvery) == 0 }

func (w *fixture) run(uid metric.PodUID) run {
	w.born++
	return run{uid: uid, id: metric.ContainerID(fmt.Sprint("c", w.born)), start: w.now.Add(-time.Duration(w.IntN(20)) * time.Second), pace: w.Float64(), ends: -1}
}

// begin replaces p by a new pod of the same name.
func (w *fixture) begin(p *pod) {
	w.born++
	p.uid = metric.PodUID(fmt.Sprint("u", w.born))
	for i := range p.runs {
		p.runs[i].ends = w.IntN(5)
	}
	p.own, p.other, p.isReported = w.run(p.uid), w.run(p.uid), false
	p.runs = append(p.runs, w.run(p.uid))
}

// turn advances by one interval and changes pods, runs and facts at random.
func (w *fixture) turn() {
	w.now = w.now.Add(w.batch.Interval)
	if w.wrong() {
		w.step += time.Duration(w.IntN(200)-100) * time.Second
	}
	change := cluster.FactsChange{Synced: true, At: w.now}
	for _, p := range w.pods {
		if w.wrong() {
			p.reported = !p.reported
		}
		if w.wrong() {
			w.begin(p)
		}
		if w.wrong() {
			last := &p.runs[len(p.runs)-1]
			last.ends = w.IntN(4)
			p.runs, p.isReported = append(p.runs, w.run(p.uid)), false
		}
		p.runs = slices.DeleteFunc(p.runs, func(r run) bool { return r.ends == 0 })
		for i := range p.runs {
			w.live(&p.runs[i])
		}
		w.live(&p.own)
		w.live(&p.other)
		switch {
		case w.wrong():
			change.GonePods, p.isReported = append(change.GonePods, metric.PodRef{Namespace: "shop", Name: p.name}), false
		case !p.isReported && w.IntN(3) == 0, w.wrong():
			change.Pods, p.isReported = append(change.Pods, w.factsOf(p)), true
		}
	}
	if w.facts != nil || w.IntN(4) == 0 {
		w.facts = w.facts.With(change)
	}
	w.report()
}

func (w *fixture) live(r *run) {
	r.ends--
	switch {
	case w.wrong(): // not read again
		return
	case w.wrong() && w.wrong(): //nolint:staticcheck // two random draws
		r.cpu /= 2
	case w.wrong():
		r.pace = w.Float64()
	case w.wrong():
		r.start = r.start.Add(time.Duration(w.IntN(3)-1) * time.Second)
	}
	r.cpu += r.pace * float64(w.batch.Interval)
	r.at = w.now
}

func (w *fixture) factsOf(p *pod) *cluster.Pod {
	f := &cluster.Pod{PodRef: metric.PodRef{Namespace: "shop", Name: p.name}, UID: p.uid, Node: "n1", Phase: cluster.Running,
		Started: p.own.start, KnownAt: w.now, QoS: "Burstable"}
	if w.wrong() {
		f.Node = "n2"
	}
	r := p.runs[len(p.runs)-1]
	c := cluster.Container{Name: "app", State: cluster.StateRunning, ID: r.id, StartedAt: r.start.Truncate(time.Second)}
	if w.wrong() {
		c.State = cluster.StateTerminated
	}
	f.Containers = append(f.Containers, c, cluster.Container{Name: "side", State: cluster.StateRunning, ID: p.other.id, StartedAt: p.other.start.Truncate(time.Second)})
	return f
}

// report fills the batch with the node's answer.
func (w *fixture) report() {
	b := &w.batch
	b.Reset()
	b.Began, b.Ended = w.now, w.now.Add(5*time.Millisecond)
	b.NodeTime = w.now.Add(w.step).Truncate(time.Second).UnixNano()
	if w.wrong() {
		if w.IntN(2) == 0 {
			b.Err = &metric.ReadError{Reason: metric.NodeTimeout, Err: errors.New("too late")}
		}
		return
	}
	node := run{start: w.now.Add(-time.Hour), cpu: float64(w.now.Unix()) * 1e9, at: w.now}
	w.addReport(b, metric.Entity{Kind: metric.Node, Node: "n1"}, &node)
	for _, p := range w.pods {
		if !p.reported || w.wrong() {
			continue
		}
		e := metric.Entity{Kind: metric.Pod, Node: "n1", Namespace: "shop", Pod: p.name}
		w.addReport(b, e, &p.own)
		if w.partial {
			w.reportPartial(b, e, p)
		}
		if w.parts {
			e.Part = "interface:eth0"
			w.reportPartial(b, e, p)
			e.Part = ""
		}
		e.Kind = metric.Container
		for i := range p.runs {
			e.Name = "app"
			w.addReport(b, e, &p.runs[i])
		}
		if w.parts {
			e.Part = "device:/dev/vda1"
			w.reportPartial(b, e, p)
			e.Part = ""
		}
		e.Name = "side"
		w.addReport(b, e, &p.other)
	}
	if w.wrong() {
		w.Shuffle(len(b.Samples), func(i, j int) { b.Samples[i], b.Samples[j] = b.Samples[j], b.Samples[i] })
	}
	if w.IntN(2) == 0 {
		b.CrossCheck = &metric.Batch{}
		for _, p := range w.pods {
			for _, r := range append([]run{p.other}, p.runs...) {
				e := metric.Entity{Kind: metric.Container, Node: "n1", Namespace: "shop", Pod: p.name, Name: "app"}
				if r.id == p.other.id {
					e.Name = "side"
				}
				s := b.CrossCheck.Add(e)
				s.Instance.UID, s.Instance.Start, s.Instance.Origin = r.uid, r.start.Truncate(time.Second).UnixNano(), metric.StartReported
				s.Values.Set(metric.CPUUsage, r.cpu)
			}
		}
	}
}

func (w *fixture) addReport(b *metric.Batch, e metric.Entity, r *run) {
	if w.wrong() || w.parts && w.wrong() {
		return
	}
	s := b.Add(e)
	in := &s.Instance
	if !w.wrong() {
		in.Start, in.Origin = r.start.UnixNano(), metric.StartReported
	}
	if w.named {
		in.UID = r.uid
		if e.Kind == metric.Container {
			in.ID = r.id
		}
	}
	if w.paths && !w.wrong() {
		in.Path = metric.CgroupPath("/kubepods/" + string(r.id))
	}
	cpu, memory, at := r.cpu, 1e8, r.at.Add(w.step).UnixNano()
	switch {
	case w.wrong():
		cpu = 0
	case w.wrong():
		cpu, memory = 0, 0
	case w.wrong(), w.wrong():
		at -= int64(w.IntN(20)) * int64(time.Second)
	}
	if !w.wrong() {
		s.Values.Set(metric.CPUUsage, cpu)
		s.Times[metric.CPU] = at
	}
	s.Values.Set(metric.MemoryWorkingSet, memory)
	s.Times[metric.Memory] = at
}

func (w *fixture) reportPartial(b *metric.Batch, e metric.Entity, p *pod) {
	s := b.Add(e)
	s.Instance.UID, s.Instance.ID = p.uid, "sandbox"
	s.Values.Set(metric.NetworkRx, 1)
	s.Times[metric.Network] = w.now.UnixNano()
}

// judgedBy returns a copy of the batch after s has processed it, and whether s wanted a second read.
// Without one, s gets the given one.
func (w *fixture) judgedBy(s *identity.Identifier, otherwise *metric.Batch) (*metric.Batch, bool) {
	b := &metric.Batch{}
	b.CopyFrom(&w.batch)
	wanted := s.NeedsCrossCheck(w.facts, b, w.now)
	b.CrossCheck = otherwise
	if wanted && w.batch.CrossCheck != nil {
		b.CrossCheck = w.batch.CrossCheck
	}
	s.Process(w.facts, b, w.now)
	return b, wanted
}
