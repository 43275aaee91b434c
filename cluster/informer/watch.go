package informer

import (
	"context"
	"sync/atomic"

	"go.uber.org/zap"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/cluster/access"
)

// reflectors returns the two reflectors that fill the queue.
func (c *Cluster) reflectors() []*cache.Reflector {
	core := c.client.CoreV1()
	nodes := &store[*v1.Node, *cluster.Node]{
		queue:   c.queue,
		convert: nodeFacts,
		set:     func(p *pending, n *cluster.Node) { p.nodes[n.Name] = n },
		del:     func(p *pending, n *cluster.Node) { p.nodes[n.Name] = nil },
		all:     (*pending).onlyNewNodes,
	}
	pods := &store[*v1.Pod, podView]{
		now: c.opts.Now, queue: c.queue,
		convert: c.converter(),
		set:     (*pending).setPod,
		del:     (*pending).dropPod,
		all:     (*pending).onlyNewPods,
	}
	everywhere := core.Pods(metav1.NamespaceAll)
	return []*cache.Reflector{
		c.reflector("nodes", &v1.Node{}, nodes,
			func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				return core.Nodes().List(ctx, c.only("metadata.name", o))
			},
			func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				return core.Nodes().Watch(ctx, c.only("metadata.name", o))
			}),
		c.reflector("pods", &v1.Pod{}, pods,
			func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				return everywhere.List(ctx, c.only("spec.nodeName", o))
			},
			func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				return everywhere.Watch(ctx, c.only("spec.nodeName", o))
			}),
	}
}

// converter returns a function that converts pods. Only one goroutine may call it.
func (c *Cluster) converter() func(*v1.Pod) podView {
	shared := newPool()
	shared.pods = func() int { return c.facts.Load().Pods() }
	return func(p *v1.Pod) podView {
		view := podView{facts: podFacts(p, c.opts.Now(), shared)}
		if c.opts.Node != "" {
			p.ManagedFields = nil // not needed, and often half of a pod
			view.whole = p
		}
		return view
	}
}

// only limits a request to Options.Node, by the field with this name.
func (c *Cluster) only(field string, o metav1.ListOptions) metav1.ListOptions {
	if c.opts.Node != "" {
		o.FieldSelector = fields.OneTermEqualSelector(field, string(c.opts.Node)).String()
	}
	return o
}

// reflector returns a reflector that keeps into equal to the API server's objects of one kind. A
// reflector reports some errors only in its own log, so the requests are checked here: one line
// when they begin to fail, and one when they succeed again.
func (c *Cluster) reflector(
	name string, kind any, into cache.ReflectorStore,
	list func(context.Context, metav1.ListOptions) (runtime.Object, error),
	follow func(context.Context, metav1.ListOptions) (watch.Interface, error),
) *cache.Reflector {
	var failing atomic.Bool
	addError := func(ctx context.Context, err error) {
		switch {
		case err == nil && failing.Swap(false):
			c.opts.Logger.Info("API server answers again", zap.String("resource", name))
		case err != nil && ctx.Err() == nil && !failing.Swap(true):
			c.opts.Logger.Warn("the API server cannot be read; weir keeps serving with the last known facts",
				zap.String("resource", name), zap.Error(err))
		}
	}
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			objects, err := list(ctx, o)
			addError(ctx, err)
			return objects, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			w, err := follow(ctx, o)
			addError(ctx, err)
			return w, access.HideRetryable(err)
		},
	}
	return cache.NewReflectorWithOptions(
		cache.ToListWatcherWithWatchListSemantics(lw, c.client), kind, into, cache.ReflectorOptions{Name: name})
}
