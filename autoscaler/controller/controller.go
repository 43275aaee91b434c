package controller

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/weir-metrics/weir/autoscaler/target"
	"github.com/weir-metrics/weir/autoscaler/v1alpha1"
)

// Controller decides about every Autoscaler and shadowed HorizontalPodAutoscaler.
type Controller struct {
	opts    Options
	catalog *catalog
	rivals  *rivals
	queue   atomic.Pointer[workqueue.TypedDelayingInterface[key]] // set by Run
	metrics *metrics
	events  record.EventRecorder // set by Run

	mu struct {
		sync.Mutex
		entries map[key]*entry
	}
}

// New returns a Controller. It does nothing before Run.
func New(o Options) (*Controller, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	c := &Controller{opts: o, rivals: newRivals()}
	c.mu.entries = map[key]*entry{}
	c.catalog = newCatalog(func(k key) {
		if queue := c.queue.Load(); queue != nil && c.concerns(k) {
			(*queue).Add(k)
		}
	})
	c.metrics = newMetrics(c)
	return c, nil
}

// NewForConfig is New with clients and scales for the API server that config names,
// in place of those of o. How many requests are sent at once is bounded by Workers,
// and by no rate: with one, many autoscalers would wait for it, and late decisions
// are wrong ones.
func NewForConfig(config *rest.Config, o Options) (*Controller, error) {
	config = rest.CopyConfig(config)
	config.UserAgent = "weir"
	config.QPS, config.RateLimiter = -1, nil
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create API client: %w", err)
	}
	scalers, err := v1alpha1.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	scales, err := target.New(config)
	if err != nil {
		return nil, err
	}
	o.Client, o.Autoscalers, o.Scales = client, scalers, scales
	return New(o)
}

// concerns reports whether objects like k are decided about.
func (c *Controller) concerns(k key) bool {
	return k.kind == v1alpha1.Kind && c.opts.Act || k.kind == hpaKind && c.opts.Shadow
}

// Run watches, decides and writes until ctx ends, and returns when everything it
// began has ended. What goes wrong is logged and tried again, never returned. Run
// is called once.
func (c *Controller) Run(ctx context.Context) error {
	// Client libraries log what they cannot do about their own retries. What an
	// operator should know is logged here.
	quiet := klog.NewContext(ctx, logr.Discard())
	scheme := runtime.NewScheme()
	if err := errors.Join(v1alpha1.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		return fmt.Errorf("know the kind Autoscaler: %w", err)
	}
	broadcaster := record.NewBroadcaster(record.WithContext(quiet))
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: c.opts.Client.CoreV1().Events("")})
	defer broadcaster.Shutdown()
	c.events = broadcaster.NewRecorder(scheme, corev1.EventSource{Component: "weir-autoscaler"})
	queue := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[key]{Name: "autoscalers"})
	c.queue.Store(&queue)

	var parts sync.WaitGroup
	for _, r := range c.reflectors() {
		parts.Go(func() { r.RunWithContext(quiet) })
	}
	for range c.opts.Workers {
		parts.Go(func() {
			for c.next(ctx, queue) {
			}
		})
	}
	if c.opts.Peek > 0 {
		parts.Go(func() { c.peeks(ctx, queue.Add) })
	}
	<-ctx.Done()
	queue.ShutDown()
	parts.Wait()
	return nil
}

// next decides about one object. It returns false when there will be no more.
func (c *Controller) next(ctx context.Context, queue workqueue.TypedDelayingInterface[key]) bool {
	k, end := queue.Get()
	if end {
		return false
	}
	defer queue.Done(k)
	if ctx.Err() == nil {
		if again := c.survive(ctx, k); again > 0 {
			queue.AddAfter(k, again)
		}
	}
	return true
}

// survive is sync. A mistake in deciding about one object must not end the process,
// which others have their metrics from.
func (c *Controller) survive(ctx context.Context, k key) (again time.Duration) {
	defer func() {
		if v := recover(); v != nil {
			again = c.wait(k, time.Now())
			c.metrics.failed(failedPanic)
			c.opts.Logger.Error("deciding about an autoscaler panicked", zap.Stringer("autoscaler", k), zap.Any("panic", v), zap.Stack("stack"))
		}
	}()
	return c.sync(ctx, k)
}

// wait returns how long it is to the object's next moment: the same in every
// replica, and spread evenly over the period.
func (c *Controller) wait(k key, now time.Time) time.Duration {
	h := fnv.New64a()
	for _, s := range [...]string{k.kind, k.namespace, k.name} {
		h.Write([]byte(s))
		h.Write([]byte{0})
	}
	period := int64(c.opts.Period)
	place := int64(mix(h.Sum64()) % uint64(period))
	return time.Duration(period - ((now.UnixNano()-place)%period+period)%period)
}

// mix spreads the bits of a hash of names that differ in their last letter: FNV
// leaves their upper halves alike. It is the end of MurmurHash3.
func mix(h uint64) uint64 {
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

// entry returns what is kept of an object; a new one if it is another of its name.
func (c *Controller) entry(o *object) *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.mu.entries[o.key]
	if e == nil || e.uid != o.uid {
		e = &entry{uid: o.uid}
		c.mu.entries[o.key] = e
	}
	return e
}

// forget frees what is kept of an object that is gone.
func (c *Controller) forget(k key) {
	c.mu.Lock()
	e := c.mu.entries[k]
	delete(c.mu.entries, k)
	c.mu.Unlock()
	if e != nil {
		c.unrecord(k, e)
	}
	c.rivals.drop(k)
}
