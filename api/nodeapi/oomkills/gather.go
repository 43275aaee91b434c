package oomkills

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/cluster/endlog"
	"github.com/weir-metrics/weir/metric"
)

// The pace of questions.
const (
	// tick is the time between two batches, and so the least time between two questions to an agent.
	tick = time.Second
	// wantedFor is how long an agent is asked after an end: it may need two seconds to decide.
	wantedFor = 3 * time.Second
	// Every agent is asked once in a firstPass, so that a new leader soon knows the last hour, and then
	// once in each pass. With more than 64 x 30 nodes the first pass takes longer than firstPass.
	firstPass = 30 * time.Second
	pass      = 5 * time.Minute
	// maxBatch is how many agents are asked in a batch because of the pass, and as many may be asked because they are
	// wanted. workers is how many are asked at the same time.
	maxBatch = 64
	workers  = 4
	// patience is how long Refresh waits for an agent.
	patience = time.Second
)

// Gatherer asks agents what the kernel killed. Its methods may be called concurrently.
type Gatherer struct {
	// Ask asks the agent of a node.
	Ask func(ctx context.Context, node string) (*endlog.KillReport, error)
	// Ends get what agents know.
	Ends  *endlog.Log
	Facts func() *cluster.Facts
	// Leads reports whether this replica answers for all. Others ask no agent.
	Leads func() bool
	Log   *zap.Logger

	mu     sync.Mutex
	wanted map[metric.NodeName]time.Time // until when to ask
}

// Want has an agent asked soon. It does not wait.
func (g *Gatherer) Want(node metric.NodeName) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.wanted == nil {
		g.wanted = map[metric.NodeName]time.Time{}
	}
	g.wanted[node] = time.Now().Add(wantedFor)
}

// Refresh asks the agent of a node now, for somebody who waits for the answer.
func (g *Gatherer) Refresh(ctx context.Context, node metric.NodeName) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	g.ask(ctx, node)
}

// Run asks agents until ctx ends.
func (g *Gatherer) Run(ctx context.Context) error {
	var r rotation
	_ = wait.PollUntilContextCancel(ctx, tick, false, func(ctx context.Context) (bool, error) {
		if now := time.Now(); g.Leads() {
			g.askAll(ctx, slices.Concat(g.due(now), r.next(g.Facts(), now)))
		} else {
			r = rotation{}
		}
		return false, nil
	})
	return nil
}

// due returns nodes that are wanted, at most maxBatch. A node stays until its time is over, so that it is asked in each
// batch until then that has room for it.
func (g *Gatherer) due(now time.Time) (nodes []metric.NodeName) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for node, until := range g.wanted {
		if len(nodes) == maxBatch {
			break
		}
		nodes = append(nodes, node)
		if !now.Before(until) {
			delete(g.wanted, node)
		}
	}
	return nodes
}

// rotation goes through all nodes.
type rotation struct {
	nodes []metric.NodeName // those that this pass still has
	batch int
	began time.Time // of this pass
}

// next returns the nodes of the next batch.
func (r *rotation) next(facts *cluster.Facts, now time.Time) []metric.NodeName {
	if len(r.nodes) == 0 && (r.began.IsZero() || now.Sub(r.began) >= pass) && facts != nil && facts.Synced {
		for node := range facts.EachNode {
			r.nodes = append(r.nodes, node.Name)
		}
		batches := int(pass / tick)
		if r.began.IsZero() {
			batches = int(firstPass / tick)
		}
		r.batch, r.began = (len(r.nodes)+batches-1)/batches, now
	}
	n := min(r.batch, len(r.nodes), maxBatch)
	next := r.nodes[:n]
	r.nodes = r.nodes[n:]
	return next
}

func (g *Gatherer) askAll(ctx context.Context, nodes []metric.NodeName) {
	slices.Sort(nodes)
	var all errgroup.Group
	all.SetLimit(workers)
	for _, node := range slices.Compact(nodes) {
		all.Go(func() error { g.ask(ctx, node); return nil })
	}
	_ = all.Wait() // ask logs its errors
}

// ask asks one agent. It may have none, so a node that does not answer is not an error.
func (g *Gatherer) ask(ctx context.Context, node metric.NodeName) {
	report, err := g.Ask(ctx, string(node))
	if err != nil {
		g.Log.Debug("agent asked about kills by the kernel", zap.String("node", string(node)), zap.Error(err))
		return
	}
	if len(report.Kills) == 0 {
		return
	}
	facts := g.Facts()
	g.Ends.AddKills(node, report.Kills, facts.PodsByUID(node), endlog.StateOf(facts, node))
}
