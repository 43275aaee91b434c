package app

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/cluster/accounttoken"
	"github.com/weir-metrics/weir/internal/feature"
	"github.com/weir-metrics/weir/manager"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/kubelet"
	"github.com/weir-metrics/weir/sources/shared"
)

// kubelets provides a source for each kubelet.
type kubelets struct {
	plan    kubeletPlan
	scraper *kubelet.Scraper
	shares  *shared.Exchange // nil unless replicas share the reads
	log     *zap.Logger
	facts   *cluster.Facts // of the last answer, which is specs
	specs   []manager.Spec
	open    map[metric.NodeName]*kubelet.NodeReader
	crowded bool // there are more kubelets than connections can be kept open
}

// kubeletReaders is what all endpoints of the kubelets share.
type kubeletReaders struct {
	scrapers []*kubelet.Scraper   // one for each endpoint
	tokens   *accounttoken.Source // nil if no account is named that reads kubelets
	shares   *shared.Exchange     // nil unless replicas share the reads
}

// openKubelets opens one endpoint of all kubelets.
func openKubelets(w *weirProcess, p kubeletPlan) (err error) {
	if len(p.Targets) == 0 { // our credentials are not for a list of targets, which can contain any address
		if p.Identity, err = w.plan.kubeletIdentity(); err != nil {
			return err
		}
		token, err := w.kubeletToken()
		if err != nil {
			return err
		}
		if token != nil {
			p.Token, p.RefuseToken = token.Token, token.Refuse
		}
	}
	p.MaxIdle = kubelet.MaxConnections() / len(w.plan.Kubelets)
	scraper, err := kubelet.New(p.Options)
	if err != nil {
		return fmt.Errorf("read kubelets: %w", err)
	}
	w.kubelets.scrapers = append(w.kubelets.scrapers, scraper)
	w.pipeline.providers = append(w.pipeline.providers, &kubelets{plan: p, scraper: scraper, shares: w.kubelets.shares, log: w.Log, open: map[metric.NodeName]*kubelet.NodeReader{}})
	w.Add(feature.Part{Name: p.kind(), Close: scraper.Close})
	return nil
}

// Sources returns a source for each node. Only the manager's goroutine calls it.
func (k *kubelets) Sources(facts *cluster.Facts) []manager.Spec {
	targets := k.scraper.Targets(facts) // the scraper needs every change of pods
	same := k.specs != nil && facts.SameNodes(k.facts)
	if k.facts = facts; same {
		return k.specs
	}
	k.warnIfCrowded(len(targets))
	specs := make([]manager.Spec, 0, len(targets))
	open := make(map[metric.NodeName]*kubelet.NodeReader, len(targets))
	for _, t := range targets {
		node, known := k.open[t.Node]
		if !known {
			node = k.scraper.Open(t)
		}
		if (!known || node.Move(t)) && t.PathError != nil {
			k.log.Warn("the node is read at the default path", zap.String("node", string(t.Node)), zap.Error(t.PathError))
		}
		open[t.Node] = node
		specs = append(specs, k.spec(t.Node, node))
	}
	k.open, k.specs = open, specs
	return specs
}

// spec returns the source that reads a node, or receives what another replica read.
func (k *kubelets) spec(name metric.NodeName, node *kubelet.NodeReader) manager.Spec {
	spec := manager.Spec{
		Name: k.plan.kind() + "/" + string(name), Kind: k.plan.kind(), Node: name,
		Interval: k.plan.Interval, Timeout: k.plan.Timeout,
		Open: func() (manager.Source, error) {
			if k.shares == nil {
				return node, nil
			}
			k.shares.Expect(k.plan.kind(), name)
			return sharedNode{node, name, k.shares}, nil
		},
	}
	if k.scraper.NeedsSecond() {
		spec.ReadSecond = node.ReadSecond
	}
	return spec
}

// warnIfCrowded logs, each time this begins, that not every kubelet's connection can be kept open.
func (k *kubelets) warnIfCrowded(targets int) {
	kept := k.plan.MaxIdle
	crowded := kept > 0 && targets > kept
	if crowded && !k.crowded {
		k.log.Warn("not every kubelet's connection can be kept open: each read of the others opens a new connection, at twice the cost; raise the limit of open files (LimitNOFILE, ulimit -n)",
			zap.Int("kubelets", targets), zap.Int("kept", kept))
	}
	k.crowded = crowded
}

// sharedNode is a node that one of several replicas reads.
type sharedNode struct {
	*kubelet.NodeReader
	node   metric.NodeName
	shares *shared.Exchange
}

// Read implements manager.Source.
func (s sharedNode) Read(ctx context.Context, b *metric.Batch) error {
	return s.shares.Read(ctx, b, s.NodeReader.Read)
}

// Close implements io.Closer.
func (s sharedNode) Close() error {
	s.shares.Forget(s.node)
	return s.NodeReader.Close()
}

// kindExcluded is the source of the batches of excluded nodes.
const kindExcluded = "excluded"

// excludedNodes provides a source that is never read for each node that every node selector
// excludes. It gives a reason to the missing numbers of the node and its pods.
type excludedNodes struct {
	plan     *plan
	scrapers []*kubelet.Scraper
	specs    []manager.Spec // the last answer
	facts    *cluster.Facts // those of the last answer
}

// Sources returns a source for each excluded node. Only the manager's goroutine calls it, after
// each change of a pod.
func (e *excludedNodes) Sources(facts *cluster.Facts) []manager.Spec {
	if facts.SameNodes(e.facts) {
		e.facts = facts
		return e.specs
	}
	var host metric.NodeName
	if e.plan.Host != nil {
		host = e.plan.Host.Node
	}
	nodes, reason := kubelet.Excluded(e.scrapers, facts, host)
	e.facts, e.specs = facts, nil
	for _, n := range nodes {
		e.specs = append(e.specs, manager.Spec{
			Name: kindExcluded + "/" + string(n), Kind: kindExcluded, Node: n, Interval: e.plan.excludedInterval(), Unread: reason,
		})
	}
	return e.specs
}

// excludedInterval is the interval of the first endpoint that has a node selector.
func (p *plan) excludedInterval() time.Duration {
	for i := range p.Kubelets {
		if p.Kubelets[i].Selector != nil {
			return p.Kubelets[i].Interval
		}
	}
	return p.Resolution
}
