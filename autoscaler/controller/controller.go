package controller

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/autoscaler/decisionreport"
	"github.com/weir-metrics/weir/autoscaler/selectorindex"
	"github.com/weir-metrics/weir/autoscaler/v1alpha1"
	"github.com/weir-metrics/weir/autoscaler/watcher"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/explain"
)

// Controller decides about every Autoscaler and every shadowed HorizontalPodAutoscaler.
type Controller struct {
	opts      Options
	catalog   *catalog
	selectors *selectorindex.Index[selectorOwner]
	queue     atomic.Pointer[workqueue.TypedDelayingInterface[objectKey]] // Run sets it
	metrics   *metrics
	events    record.EventRecorder // Run sets it

	mu struct {
		sync.Mutex
		entries map[objectKey]*entry
	}
}

// New returns a Controller. It does nothing before Run.
func New(o Options) (*Controller, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	c := &Controller{opts: o, selectors: selectorindex.New[selectorOwner]()}
	c.mu.entries = map[objectKey]*entry{}
	c.catalog = newCatalog(func(k objectKey) {
		if queue := c.queue.Load(); queue != nil && c.handles(k) {
			(*queue).Add(k)
		}
	})
	c.metrics = newMetrics(c)
	c.watch(o.Watcher)
	return c, nil
}

// watch keeps the catalog current. HorizontalPodAutoscalers are watched even if none is shadowed,
// because they can own targets.
func (c *Controller) watch(w *watcher.Watcher) {
	w.HandleHPAs(watcher.Handler[watcher.HPA]{
		Set:    func(h *watcher.HPA) { c.catalog.setObject(newHPAObject(h, c.opts.Shadow)) },
		Delete: func(n types.NamespacedName) { c.catalog.deleteObject(objectKey{hpaKind, n.Namespace, n.Name}) },
		Listed: func() { c.catalog.setListed(hpaKind) },
	})
	if !c.opts.Act {
		return
	}
	w.HandleAutoscalers(watcher.Handler[v1alpha1.Autoscaler]{
		Set:    func(a *v1alpha1.Autoscaler) { c.catalog.setObject(newAutoscalerObject(a)) },
		Delete: func(n types.NamespacedName) { c.catalog.deleteObject(objectKey{v1alpha1.Kind, n.Namespace, n.Name}) },
		Listed: func() { c.catalog.setListed(v1alpha1.Kind) },
	})
}

// handles reports whether weir makes decisions about this object.
func (c *Controller) handles(k objectKey) bool {
	return k.kind == v1alpha1.Kind && c.opts.Act || k.kind == hpaKind && c.opts.Shadow
}

// Run decides and writes until ctx ends, and returns when everything that it started has ended.
// Errors are logged and the work is repeated; they are never returned. Call Run once, and run
// Options.Watcher at the same time.
func (c *Controller) Run(ctx context.Context) error {
	// Client libraries would log each of their own retries.
	quiet := klog.NewContext(ctx, logr.Discard())
	scheme := runtime.NewScheme()
	if err := errors.Join(v1alpha1.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		return fmt.Errorf("register the kind Autoscaler: %w", err)
	}
	broadcaster := record.NewBroadcaster(record.WithContext(quiet))
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: c.opts.Client.CoreV1().Events("")})
	defer broadcaster.Shutdown()
	c.events = broadcaster.NewRecorder(scheme, corev1.EventSource{Component: "weir-autoscaler"})
	queue := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[objectKey]{Name: "autoscalers"})
	c.queue.Store(&queue)
	c.catalog.enqueueAll() // objects that the watcher reported before Run

	var parts sync.WaitGroup
	for range c.opts.Workers {
		parts.Go(func() {
			for c.processNext(ctx, queue) {
			}
		})
	}
	if c.opts.PeekInterval > 0 {
		parts.Go(func() { c.runPeeks(ctx, queue.Add) })
	}
	<-ctx.Done()
	queue.ShutDown()
	parts.Wait()
	return nil
}

// processNext decides about one object. It returns false after the queue was shut down.
func (c *Controller) processNext(ctx context.Context, queue workqueue.TypedDelayingInterface[objectKey]) bool {
	k, end := queue.Get()
	if end {
		return false
	}
	defer queue.Done(k)
	if ctx.Err() == nil {
		if again := c.syncRecovering(ctx, k); again > 0 {
			queue.AddAfter(k, again)
		}
	}
	return true
}

// syncRecovering calls sync and recovers from a panic: a bug in one decision must not end the
// process that serves metrics.
func (c *Controller) syncRecovering(ctx context.Context, k objectKey) (again time.Duration) {
	defer func() {
		if v := recover(); v != nil {
			again = c.untilNext(k, time.Now())
			c.metrics.countError(failedPanic)
			c.opts.Logger.Error("deciding about an autoscaler panicked", zap.Stringer("autoscaler", k), zap.Any("panic", v), zap.Stack("stack"))
		}
	}()
	return c.sync(ctx, k)
}

// untilNext returns the time until the object's next decision. All replicas decide at the same
// times. Objects are spread evenly over the period.
func (c *Controller) untilNext(k objectKey, now time.Time) time.Duration {
	hash := sha256.Sum256([]byte(k.String()))
	period := int64(c.opts.Period)
	position := int64(binary.BigEndian.Uint64(hash[:]) % uint64(period))
	return time.Duration(period - ((now.UnixNano()-position)%period+period)%period)
}

// getEntry returns the entry of an object. A new object with the name of a deleted one gets a new
// entry.
func (c *Controller) getEntry(o *scalingObject) *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.mu.entries[o.objectKey]
	if e == nil || e.uid != o.uid {
		if e != nil { // the object was created again, perhaps with another target
			c.selectors.Delete(e.selectorOwner)
		}
		e = &entry{uid: o.uid}
		c.mu.entries[o.objectKey] = e
	}
	return e
}

// deleteEntry frees the entry of a deleted object.
func (c *Controller) deleteEntry(k objectKey) {
	c.mu.Lock()
	e := c.mu.entries[k]
	delete(c.mu.entries, k)
	c.mu.Unlock()
	if e != nil {
		c.recordGone(k, e)
		c.selectors.Delete(e.selectorOwner)
	}
}

// Explain returns the report of the last decision about an object. It returns false if there is
// none. kind is Autoscaler or HorizontalPodAutoscaler.
func (c *Controller) Explain(kind, namespace, name string) (*decisionreport.DecisionReport, bool) {
	t := c.lastDecision(objectKey{kind, namespace, name})
	if t == nil {
		return nil, false
	}
	return t.report(), true
}

// Memory returns the memory after the last decision about an object. It returns false if there is
// none.
func (c *Controller) Memory(kind, namespace, name string) (autoscaler.Memory, bool) {
	t := c.lastDecision(objectKey{kind, namespace, name})
	if t == nil {
		return autoscaler.Memory{}, false
	}
	return t.memory, true
}

// Summaries returns the last decision about each object in one line, sorted by namespace, name and
// kind.
func (c *Controller) Summaries() []decisionreport.DecisionSummary {
	last := c.lastDecisions()
	all := make([]decisionreport.DecisionSummary, 0, len(last))
	for _, t := range last {
		all = append(all, decisionreport.Summarize(t.decision, t.context))
	}
	slices.SortFunc(all, func(a, b decisionreport.DecisionSummary) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind))
	})
	return all
}

// Autoscalers returns the names of the objects that the controller decides about and that scale the
// workload of a pod, sorted, in the form of explain.AutoscalerName. An object is known once its workload
// was read.
func (c *Controller) Autoscalers(p *cluster.Pod) (names []string) {
	for owner := range c.selectors.Matching(string(p.Namespace), p.Labels) {
		names = append(names, explain.AutoscalerName(owner.kind == v1alpha1.Kind, owner.namespace, owner.name))
	}
	slices.Sort(names)
	return names
}

func (c *Controller) lastDecision(k objectKey) *decisionRecord {
	c.mu.Lock()
	e := c.mu.entries[k]
	c.mu.Unlock()
	if e == nil {
		return nil
	}
	return e.lastDecision.Load()
}

// lastDecisions returns the last decision about each object.
func (c *Controller) lastDecisions() map[objectKey]*decisionRecord {
	c.mu.Lock()
	defer c.mu.Unlock()
	last := make(map[objectKey]*decisionRecord, len(c.mu.entries))
	for k, e := range c.mu.entries {
		if t := e.lastDecision.Load(); t != nil {
			last[k] = t
		}
	}
	return last
}
