// Package watcher is the only package that lists and watches HorizontalPodAutoscalers and
// Autoscalers. It keeps no objects: each handler keeps what it needs. Packages controller and
// hpaevents register handlers.
package watcher

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	"go.uber.org/zap"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/weir-metrics/weir/autoscaler/v1alpha1"
	"github.com/weir-metrics/weir/cluster/access"
)

// HPA is a HorizontalPodAutoscaler as the API server returns it.
type HPA = autoscalingv2.HorizontalPodAutoscaler

// Handler receives the objects of one kind. One goroutine calls its functions, in the order of the
// changes. All handlers share the objects and must not change them.
type Handler[T any] struct {
	// Set receives a new or changed object.
	Set func(*T)
	// Delete receives the name of a deleted object.
	Delete func(types.NamespacedName)
	// Listed is called after each list of all objects. May be nil.
	Listed func()
}

// Options configures a Watcher.
type Options struct {
	// Client lists and watches HorizontalPodAutoscalers. Required.
	Client kubernetes.Interface
	// Autoscalers lists and watches Autoscalers. If it is nil, Autoscalers are not watched.
	Autoscalers v1alpha1.Getter
	// Logger gets one line when a kind cannot be read and one when it can be read again.
	// Default: no log.
	Logger *zap.Logger
}

// Watcher watches the autoscalers of a cluster.
type Watcher struct {
	options     Options
	unread      sync.Map // the kinds that cannot be read: string → what they need
	hpas        []Handler[HPA]
	autoscalers []Handler[v1alpha1.Autoscaler]
}

// New returns a Watcher. It does nothing before Run.
func New(o Options) (*Watcher, error) {
	if o.Client == nil {
		return nil, errors.New("watching autoscalers needs an API client")
	}
	o.Logger = cmp.Or(o.Logger, zap.NewNop())
	return &Watcher{options: o}, nil
}

// Unread returns in sentences which kinds cannot be read, and what weir needs to read them. It is empty
// if all can. It may be called at any time.
func (w *Watcher) Unread() string {
	var all []string
	w.unread.Range(func(kind, needs any) bool {
		all = append(all, fmt.Sprintf("%ss cannot be read: %s. weir's log has the error.", kind, needs))
		return true
	})
	slices.Sort(all)
	return strings.Join(all, " ")
}

// HandleHPAs registers a handler of HorizontalPodAutoscalers. Call it before Run.
func (w *Watcher) HandleHPAs(h Handler[HPA]) { w.hpas = append(w.hpas, h) }

// HandleAutoscalers registers a handler of Autoscalers. Call it before Run. The objects have their
// defaults and their kind, which a list of the API server may not have.
func (w *Watcher) HandleAutoscalers(h Handler[v1alpha1.Autoscaler]) {
	w.autoscalers = append(w.autoscalers, h)
}

// Run watches until ctx ends, and returns when everything that it started has ended. Failed
// requests are logged and repeated; their errors are never returned. Call Run once.
func (w *Watcher) Run(ctx context.Context) error {
	// Client libraries would log each of their own retries.
	quiet := klog.NewContext(ctx, logr.Discard())
	var parts sync.WaitGroup
	hpas := w.options.Client.AutoscalingV2().HorizontalPodAutoscalers(metav1.NamespaceAll)
	hpaReflector := newReflector(w, "HorizontalPodAutoscaler", "deploy/kustomize/components/hpa-events or components/autoscaler",
		&HPA{}, w.options.Client, hpas.List, hpas.Watch, newStore(w.hpas, func(h *HPA) { h.ManagedFields = nil }))
	parts.Go(func() { hpaReflector.RunWithContext(quiet) })
	if w.options.Autoscalers != nil {
		autoscalers := w.options.Autoscalers.Autoscalers(metav1.NamespaceAll)
		reflector := newReflector(w, v1alpha1.Kind, "deploy/kustomize/components/autoscaler",
			&v1alpha1.Autoscaler{}, w.options.Autoscalers, autoscalers.List, autoscalers.Watch, newStore(w.autoscalers, prepareAutoscaler))
		parts.Go(func() { reflector.RunWithContext(quiet) })
	}
	parts.Wait()
	return nil
}

// prepareAutoscaler sets the defaults and the kind. Events need the kind, and lists do not have it.
// It removes the managed fields, because they may be half of the object.
func prepareAutoscaler(a *v1alpha1.Autoscaler) {
	v1alpha1.SetDefaults(a)
	a.ManagedFields = nil
	a.SetGroupVersionKind(v1alpha1.GroupVersion().WithKind(v1alpha1.Kind))
}

// newReflector returns the list and watch of one kind. Reflectors report some failures only in their
// own log, so the requests are observed here: there is one line when they begin to fail, and one
// when they succeed again. A list without a watch is not a success.
func newReflector[L runtime.Object](w *Watcher, kind, component string, example runtime.Object, client any,
	list func(context.Context, metav1.ListOptions) (L, error),
	watchKind func(context.Context, metav1.ListOptions) (watch.Interface, error), to cache.ReflectorStore) *cache.Reflector {
	needs := "weir needs the kind " + kind + " and the rights list and watch on it (" + component + ")"
	observe := func(ctx context.Context, err error) {
		if err != nil && ctx.Err() != nil {
			return
		}
		if err == nil {
			if _, failed := w.unread.LoadAndDelete(kind); failed {
				w.options.Logger.Info(kind + "s can be read again")
			}
			return
		}
		if _, failed := w.unread.Swap(kind, needs); !failed {
			w.options.Logger.Warn(kind+"s cannot be read; until they can, weir does not scale and writes no Events about them. "+needs, zap.Error(err))
		}
	}
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			got, err := list(ctx, o)
			if err != nil {
				observe(ctx, err)
			}
			return got, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			got, err := watchKind(ctx, o)
			observe(ctx, err)
			return got, access.HideRetryable(err)
		},
	}
	return cache.NewReflectorWithOptions(cache.ToListWatcherWithWatchListSemantics(lw, client), example, to, cache.ReflectorOptions{Name: kind})
}

// store passes the changes that a reflector reports to the handlers. It implements
// cache.ReflectorStore. It keeps the names of the objects, to find those that are missing in a new
// list.
type store[T any] struct {
	handlers []Handler[T]
	prepare  func(*T) // it is called once for each object, before the handlers
	names    map[types.NamespacedName]bool
}

func newStore[T any](handlers []Handler[T], prepare func(*T)) *store[T] {
	return &store[T]{handlers, prepare, map[types.NamespacedName]bool{}}
}

// Add implements cache.ReflectorStore.
func (s *store[T]) Add(obj any) error {
	name, err := cache.ObjectToName(obj)
	o, ok := obj.(*T)
	if err != nil || !ok {
		return fmt.Errorf("watch autoscalers: got a %T", obj)
	}
	s.names[name.AsNamespacedName()] = true
	s.prepare(o)
	for _, h := range s.handlers {
		h.Set(o)
	}
	return nil
}

// Update implements cache.ReflectorStore.
func (s *store[T]) Update(obj any) error { return s.Add(obj) }

// Delete implements cache.ReflectorStore.
func (s *store[T]) Delete(obj any) error {
	name, err := cache.ObjectToName(obj)
	if err != nil {
		return fmt.Errorf("watch autoscalers: got a %T", obj)
	}
	s.delete(name.AsNamespacedName())
	return nil
}

func (s *store[T]) delete(name types.NamespacedName) {
	delete(s.names, name)
	for _, h := range s.handlers {
		h.Delete(name)
	}
}

// Replace implements cache.ReflectorStore.
func (s *store[T]) Replace(objects []any, _ string) error {
	before := s.names
	s.names = make(map[types.NamespacedName]bool, len(objects))
	for _, obj := range objects {
		if err := s.Add(obj); err != nil {
			return err
		}
	}
	for name := range before {
		if !s.names[name] {
			s.delete(name)
		}
	}
	for _, h := range s.handlers {
		if h.Listed != nil {
			h.Listed()
		}
	}
	return nil
}

// Resync implements cache.ReflectorStore. It does nothing, because the handlers keep the objects.
func (*store[T]) Resync() error { return nil }
