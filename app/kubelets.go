package app

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/manager"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/kubelet"
	"github.com/weir-metrics/weir/sources/shared"
)

// kubeletPlan is one endpoint that is read of many kubelets.
type kubeletPlan struct {
	kubelet.Options
	Interval time.Duration
}

// kind is the source's name in metrics and samples: "kubelet:summary".
func (p *kubeletPlan) kind() string {
	return "kubelet:" + string(cmp.Or(p.Endpoint, kubelet.Resource))
}

// kubelets provides a source for each kubelet there is.
type kubelets struct {
	plan    kubeletPlan
	scraper *kubelet.Scraper
	shares  *shared.Exchange // nil unless replicas share the reading
	log     *zap.Logger
	targets []kubelet.Target // of the last answer, which was specs
	specs   []manager.Spec
	open    map[metric.NodeName]*addressed
	crowded bool // there are more kubelets than connections that can be kept
}

func openKubelets(p kubeletPlan, shares *shared.Exchange, log *zap.Logger) (*kubelets, error) {
	scraper, err := kubelet.New(p.Options)
	if err != nil {
		return nil, fmt.Errorf("read kubelets: %w", err)
	}
	return &kubelets{plan: p, scraper: scraper, shares: shares, log: log, open: map[metric.NodeName]*addressed{}}, nil
}

// Sources returns a source for each node. It is called by the manager's
// goroutine alone.
func (k *kubelets) Sources(facts *cluster.Facts) []manager.Spec {
	targets := k.scraper.Targets(facts)
	if len(targets) == len(k.targets) && (len(targets) == 0 || &targets[0] == &k.targets[0]) {
		return k.specs // nothing has changed
	}
	k.count(len(targets))
	specs := make([]manager.Spec, 0, len(targets))
	there := make(map[metric.NodeName]*addressed, len(targets))
	for _, t := range targets {
		a := k.open[t.Node]
		if a == nil {
			a = &addressed{scraper: k.scraper, shares: k.shares}
		}
		if a.move(t) && t.PathError != nil {
			k.log.Warn("the node is read at the usual path", zap.String("node", string(t.Node)), zap.Error(t.PathError))
		}
		there[t.Node] = a
		specs = append(specs, manager.Spec{
			Name: k.plan.kind() + "/" + string(t.Node), Kind: k.plan.kind(), Node: t.Node,
			Interval: k.plan.Interval, Timeout: k.plan.Timeout,
			Open: func() (manager.Source, error) { return a.source(), nil },
		})
	}
	k.open, k.targets, k.specs = there, targets, specs
	return specs
}

// count says, when it comes to that, that not every kubelet's connection is kept.
func (k *kubelets) count(targets int) {
	kept := k.plan.MaxIdle
	crowded := kept > 0 && targets > kept
	if crowded && !k.crowded {
		k.log.Warn("not every kubelet's connection can be kept open: each read of the others connects anew, at twice the cost; raise the limit of open files (LimitNOFILE, ulimit -n)",
			zap.Int("kubelets", targets), zap.Int("kept", kept))
	}
	k.crowded = crowded
}

// Close closes the connections to kubelets, which are idle once the manager has
// ended.
func (k *kubelets) Close() error { return k.scraper.Close() }

// addressed is the source of one node wherever the node is: a node that gets
// another address stays the same source, and what was learnt of it stays.
type addressed struct {
	scraper *kubelet.Scraper
	shares  *shared.Exchange // nil unless replicas share the reading
	mu      struct {
		sync.Mutex
		target kubelet.Target
		opened kubelet.Source // nil: to be opened for target
	}
}

// move says where the node is, and reports whether that is news.
func (a *addressed) move(t kubelet.Target) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	was := &a.mu.target
	var wasErr, isErr error
	if was.Err != nil {
		wasErr = was.Err
	}
	if t.Err != nil {
		isErr = t.Err
	}
	if was.Node == t.Node && was.Address == t.Address && was.Path == t.Path && was.Guessed == t.Guessed &&
		sameText(wasErr, isErr) && sameText(was.PathError, t.PathError) {
		return false
	}
	a.mu.target = t
	// A read of the old address may be under way. It is only left without a
	// connection to go back to, and closing says nothing of interest.
	_ = a.shut()
	return true
}

// shut closes what is open, if anything is. a.mu is held.
func (a *addressed) shut() error {
	opened := a.mu.opened
	if a.mu.opened = nil; opened == nil {
		return nil
	}
	return opened.Close()
}

// sameText compares errors that are made anew each time they are met.
func sameText(a, b error) bool {
	return (a == nil) == (b == nil) && (a == nil || a.Error() == b.Error())
}

// now returns the source at the address of the moment.
func (a *addressed) now() kubelet.Source {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.mu.opened == nil {
		a.mu.opened = a.scraper.Open(a.mu.target)
	}
	return a.mu.opened
}

// source returns what the manager reads: a Witness too, if the endpoint has one.
func (a *addressed) source() manager.Source {
	if _, ok := a.now().(manager.Witness); ok {
		return testifying{a}
	}
	return a
}

// Close closes the connection to the node. The manager calls it when it reads the
// node no more; whoever still does gets another one.
func (a *addressed) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.shut()
}

// Read reads the node, or takes what another replica read.
func (a *addressed) Read(ctx context.Context, b *metric.Batch) error {
	if a.shares != nil {
		return a.shares.Read(ctx, b, a.readItself)
	}
	return a.readItself(ctx, b)
}

func (a *addressed) readItself(ctx context.Context, b *metric.Batch) error {
	return a.now().Read(ctx, b)
}

// testifying is a node that has a second, costlier view.
type testifying struct{ *addressed }

// Testify reads the second view.
func (t testifying) Testify(ctx context.Context, b *metric.Batch) error {
	return t.now().(manager.Witness).Testify(ctx, b)
}
