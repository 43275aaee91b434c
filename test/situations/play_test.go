package situations

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/cluster/informer"
	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/processors"
	"github.com/weir-metrics/weir/sinks/memory"
	"github.com/weir-metrics/weir/sources/kubelet"
	"github.com/weir-metrics/weir/test/background"
	"github.com/weir-metrics/weir/test/simulator"
	"github.com/weir-metrics/weir/test/simulator/seed"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const interval = 15 * time.Second

// stage plays a situation.
type stage struct {
	t       *testing.T
	s       *situation
	fleet   *simulator.Fleet
	now     time.Time
	clock   atomic.Int64 // now, for the server
	port    int
	scraper *kubelet.Scraper
	facts   *cluster.Facts
	sources map[metric.NodeName]*source
	sink    *memory.Sink
}

// source is one node that is read.
type source struct {
	target   kubelet.Target
	read     *kubelet.NodeReader
	pipeline *processors.Pipeline
	status   explain.SourceState
}

// raise returns the stage of a situation: the fleet with its faults, its
// server, and a scraper that trusts the server.
func raise(t *testing.T, s *situation, authority *simulator.Authority) *stage {
	t.Helper()
	g := &stage{t: t, s: s, now: time.Now().Truncate(time.Second), sources: map[metric.NodeName]*source{}, sink: memory.New(s.memory)}
	o := simulator.Options{Nodes: 2, Pods: 6}
	if s.fleet.Nodes > 0 {
		o = s.fleet
	}
	o.Seed, o.Start, o.Fresh = 7, g.now, true
	for _, text := range s.faults {
		f, err := simulator.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		o.Faults = append(o.Faults, f)
	}
	var err error
	if g.fleet, err = simulator.New(o); err != nil {
		t.Fatal(err)
	}
	g.serve(authority)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, authority.PEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	options := s.options
	options.CAFile = ca // only its timeout depends on real time here
	if g.scraper, err = kubelet.New(options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.scraper.Close() })
	return g
}

func (g *stage) serve(authority *simulator.Authority) {
	l, err := net.Listen("tcp4", ":0")
	if err != nil {
		g.t.Fatal(err)
	}
	g.port = l.Addr().(*net.TCPAddr).Port
	g.clock.Store(g.now.UnixNano())
	server := simulator.NewServer(simulator.ServerOptions{
		Fleet: g.fleet, Authority: authority, Grace: time.Millisecond, Now: func() time.Time { return time.Unix(0, g.clock.Load()) },
	})
	background.Run(g.t, func(ctx context.Context) error { return server.Serve(ctx, l) })
}

// play plays the situation, with a round every fifteen seconds, and returns
// what weir says at the end.
func (g *stage) play() string {
	start := g.now
	for at := time.Duration(0); at <= g.s.last; at += interval {
		g.now = start.Add(at)
		g.clock.Store(g.now.UnixNano())
		if !g.s.alone {
			g.facts = g.learn()
		}
		if g.s.unread {
			break
		}
		g.round()
	}
	return g.describeAnswers()
}

// learn returns the facts that the API server has now.
func (g *stage) learn() *cluster.Facts {
	var nodes corev1.NodeList
	var pods corev1.PodList
	for _, n := range g.fleet.Nodes() {
		if n.Listed(g.now) {
			object, err := seed.Node(n, g.port, g.now)
			if err != nil {
				g.t.Fatal(err)
			}
			nodes.Items = append(nodes.Items, *object)
		}
		var list corev1.PodList
		if err := json.Unmarshal(g.fleet.Append(nil, n, simulator.PodList, g.now), &list); err != nil {
			g.t.Fatal(err)
		}
		pods.Items = append(pods.Items, list.Items...)
	}
	return informer.FactsFromList(&nodes, &pods, g.now)
}

// round reads every node once, as the manager does.
func (g *stage) round() {
	targets := map[metric.NodeName]kubelet.Target{}
	var order []metric.NodeName
	var list []kubelet.Target
	if g.s.alone {
		list = g.listed()
	} else {
		list = g.scraper.Targets(g.facts)
	}
	for _, t := range list {
		targets[t.Node] = t
		order = append(order, t.Node)
	}
	for name, src := range g.sources {
		if _, ok := targets[name]; !ok {
			delete(g.sources, name)
			g.sink.Forget(src.status.Name, name)
		}
	}
	for _, name := range order {
		src := g.sources[name]
		if src == nil {
			src = &source{
				pipeline: processors.New(processors.Options{}),
				status:   explain.SourceState{Name: "kubelet:resource", Node: name, Interval: interval},
			}
			g.sources[name] = src
		}
		if target := targets[name]; src.read == nil || target.Address != src.target.Address {
			src.target, src.read = target, g.scraper.Open(target)
		}
		g.read(src)
	}
	g.facts.EachNode(func(n *cluster.Node) bool {
		if !g.scraper.IsSelected(n) { // its labels do not match the selector
			err := &metric.ReadError{Reason: metric.NodeExcluded, Err: fmt.Errorf("its labels do not match the selector")}
			src := &source{pipeline: processors.New(processors.Options{}), status: explain.SourceState{Name: "excluded", Node: n.Name, Interval: interval, Unread: err}}
			b := &metric.Batch{Source: "excluded", Node: n.Name, Interval: interval, Err: err, Began: g.now, Ended: g.now}
			src.pipeline.Process(g.facts, b, g.now)
			g.publish(src, b)
		}
		return true
	})
}

// listed returns the targets for a situation without an API server.
func (g *stage) listed() (targets []kubelet.Target) {
	for _, n := range g.fleet.Nodes() {
		targets = append(targets, kubelet.Target{Node: metric.NodeName(n.Name), Address: fmt.Sprintf("%v:%d", n.Address, g.port)})
	}
	return targets
}

// read reads one node over the network and passes the batch through the
// pipeline.
func (g *stage) read(src *source) {
	b := g.fetch(src, src.read.Read)
	// As in the manager, except in situations without a cross-check.
	if g.scraper.NeedsSecond() && !g.s.noSecondRead && !b.Failed() && src.pipeline.NeedsCrossCheck(g.facts, b, g.now) {
		if w := g.fetch(src, src.read.ReadSecond); w.Err == nil {
			b.CrossCheck = w
		}
	}
	src.pipeline.Process(g.facts, b, g.now)
	g.publish(src, b)
}

func (g *stage) fetch(src *source, read func(context.Context, *metric.Batch) error) *metric.Batch {
	b := &metric.Batch{Source: src.status.Name, Node: src.status.Node, Interval: interval}
	b.Err = read(context.Background(), b)
	b.Began, b.Ended = g.now, g.now // the time of the stage, not the real time
	return b
}

func (g *stage) publish(src *source, b *metric.Batch) {
	if err := g.sink.Write(context.Background(), b); err != nil {
		g.t.Fatal(err)
	}
	src.status.LastRead, src.status.Due, src.status.Err = g.now, g.now.Add(interval), b.Err
	if b.Err == nil {
		src.status.LastSuccess = g.now
	}
	g.sources[b.Node] = src
}

// explainer returns the input of explanations.
func (g *stage) explainer() *explain.Explainer {
	w := &explain.Explainer{Now: g.now, Facts: g.facts}
	if snapshot := g.sink.Snapshot(); snapshot != nil && !snapshot.At().IsZero() {
		w.View = snapshot
	}
	for _, src := range g.sources {
		w.Sources = append(w.Sources, src.status)
	}
	return w
}
