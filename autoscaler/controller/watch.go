package controller

import (
	"context"
	"errors"
	"sync/atomic"

	"go.uber.org/zap"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/weir-metrics/weir/autoscaler/decisionreport"
	"github.com/weir-metrics/weir/autoscaler/v1alpha1"
)

// ofScaler returns an Autoscaler as the catalog has it. Where nothing is scaled to
// zero, because nothing would be scaled up again, minReplicas of 0 counts as 1.
func ofScaler(a *v1alpha1.Autoscaler, toZero bool) *object {
	v1alpha1.SetDefaults(a)
	a.ManagedFields = nil                                                  // they may be half of it
	a.SetGroupVersionKind(v1alpha1.GroupVersion().WithKind(v1alpha1.Kind)) // lists leave it out, Events need it
	mode := decisionreport.Active
	if a.Spec.Dry() {
		mode = decisionreport.DryRun
	}
	spec, note := a.Spec.HorizontalPodAutoscalerSpec, ""
	if *spec.MinReplicas < 1 && !toZero {
		spec.MinReplicas, note = new(int32(1)), "minReplicas of 0 counts as 1: weir runs without --autoscaler-scale-to-zero."
	}
	return &object{
		key: key{v1alpha1.Kind, a.Namespace, a.Name}, uid: a.UID, created: a.CreationTimestamp.Time, mode: mode,
		spec: &spec, note: note, scaler: a,
	}
}

// ofHPA is the same of a HorizontalPodAutoscaler. Where it is not shadowed only its
// target matters.
func ofHPA(h *autoscalingv2.HorizontalPodAutoscaler, shadow bool) *object {
	h.ManagedFields = nil
	o := &object{key: key{hpaKind, h.Namespace, h.Name}, uid: h.UID, created: h.CreationTimestamp.Time, mode: decisionreport.Shadow}
	if shadow {
		o.spec, o.status = &h.Spec, &h.Status
	} else {
		o.spec = &autoscalingv2.HorizontalPodAutoscalerSpec{ScaleTargetRef: h.Spec.ScaleTargetRef}
	}
	return o
}

// store is what a reflector believes it fills.
type store struct {
	catalog *catalog
	kind    string
	of      func(any) *object // nil if it is something else
}

func (s store) put(obj any) error {
	o := s.of(obj)
	if o == nil {
		return errors.New("keep " + s.kind + ": not what was asked for")
	}
	s.catalog.put(o)
	return nil
}

// Add satisfies cache.ReflectorStore.
func (s store) Add(obj any) error { return s.put(obj) }

// Update satisfies cache.ReflectorStore.
func (s store) Update(obj any) error { return s.put(obj) }

// Delete satisfies cache.ReflectorStore.
func (s store) Delete(obj any) error {
	if o := s.of(obj); o != nil {
		s.catalog.drop(o.key)
	}
	return nil
}

// Replace satisfies cache.ReflectorStore.
func (s store) Replace(objects []any, _ string) error {
	all := make([]*object, 0, len(objects))
	for _, obj := range objects {
		if o := s.of(obj); o != nil {
			all = append(all, o)
		}
	}
	s.catalog.replace(s.kind, all)
	return nil
}

// Resync satisfies cache.ReflectorStore.
func (store) Resync() error { return nil }

// reflectors return what keeps the catalog in step with the API server.
// HorizontalPodAutoscalers are followed even where none is shadowed: they own
// targets.
func (c *Controller) reflectors() (list []*cache.Reflector) {
	hpas := c.opts.Client.AutoscalingV2().HorizontalPodAutoscalers(metav1.NamespaceAll)
	list = append(list, c.reflector(hpaKind, &autoscalingv2.HorizontalPodAutoscaler{}, c.opts.Client,
		func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return hpas.List(ctx, o) },
		hpas.Watch,
		func(obj any) *object {
			if h, ok := obj.(*autoscalingv2.HorizontalPodAutoscaler); ok {
				return ofHPA(h, c.opts.Shadow)
			}
			return nil
		}))
	if c.opts.Act {
		scalers := c.opts.Autoscalers.Autoscalers(metav1.NamespaceAll)
		list = append(list, c.reflector(v1alpha1.Kind, &v1alpha1.Autoscaler{}, c.opts.Autoscalers,
			func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return scalers.List(ctx, o) },
			scalers.Watch,
			func(obj any) *object {
				if a, ok := obj.(*v1alpha1.Autoscaler); ok {
					return ofScaler(a, c.opts.Settings.ScaleToZero)
				}
				return nil
			}))
	}
	return list
}

// reflector returns one for a kind. Reflectors speak of some of their troubles only
// in their own log, so the requests are watched here: one line when they begin to
// fail, one when they succeed again.
func (c *Controller) reflector(kind string, example runtime.Object, client any,
	list func(context.Context, metav1.ListOptions) (runtime.Object, error),
	follow func(context.Context, metav1.ListOptions) (watch.Interface, error), of func(any) *object) *cache.Reflector {
	var failing atomic.Bool
	note := func(ctx context.Context, err error) {
		switch {
		case err == nil && failing.Swap(false):
			c.opts.Logger.Info(kind + "s can be read again")
		case err != nil && ctx.Err() == nil && !failing.Swap(true):
			c.opts.Logger.Warn(kind+"s cannot be read: nothing is scaled before they were; weir needs the kind Autoscaler, and list and watch on it and on HorizontalPodAutoscalers (deploy/kustomize/components/autoscaler)", zap.Error(err))
		}
	}
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			got, err := list(ctx, o)
			if err != nil { // to list alone is not enough
				note(ctx, err)
			}
			return got, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			w, err := follow(ctx, o)
			note(ctx, err)
			return w, patient(err)
		},
	}
	return cache.NewReflectorWithOptions(cache.ToListWatcherWithWatchListSemantics(lw, client), example,
		store{c.catalog, kind, of}, cache.ReflectorOptions{Name: kind})
}

// patient hides from a reflector that a connection was refused or that there
// were too many requests. It would wait these out without looking at its
// context, and hold up the end of the process.
func patient(err error) error {
	if utilnet.IsConnectionRefused(err) || apierrors.IsTooManyRequests(err) {
		return errors.New(err.Error())
	}
	return err
}
