package hpaevents

import (
	"context"
	"errors"
	"sync/atomic"

	"go.uber.org/zap"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/weir-metrics/weir/metric"
)

// autoscalerOf returns what is kept of a HorizontalPodAutoscaler.
func autoscalerOf(h *autoscalingv2.HorizontalPodAutoscaler) *autoscaler {
	ref := h.Spec.ScaleTargetRef
	a := &autoscaler{
		namespace: metric.Namespace(h.Namespace), name: h.Name, uid: h.UID,
		full:   h.Namespace + "/" + h.Name,
		target: target{metric.Namespace(h.Namespace), ref.APIVersion, ref.Kind, ref.Name},
	}
	for i := range h.Spec.Metrics {
		switch m := &h.Spec.Metrics[i]; {
		case m.Resource != nil:
			a.resource = a.resource || isResource(m.Resource.Name)
		case m.ContainerResource != nil:
			a.resource = a.resource || isResource(m.ContainerResource.Name)
		case m.Pods != nil:
			a.pods = true
		}
	}
	a.pods = a.pods || a.resource
	return a
}

// isResource reports whether metrics.k8s.io has the resource.
func isResource(name corev1.ResourceName) bool {
	return name == corev1.ResourceCPU || name == corev1.ResourceMemory
}

// store is what the reflector believes it fills. It keeps a few words of each
// autoscaler.
type store struct{ a *Announcer }

func (s store) put(obj any) error {
	h, ok := obj.(*autoscalingv2.HorizontalPodAutoscaler)
	if !ok {
		return errors.New("keep autoscaler: not what was asked for")
	}
	s.a.targets.put(autoscalerOf(h))
	return nil
}

// Add satisfies cache.ReflectorStore.
func (s store) Add(obj any) error { return s.put(obj) }

// Update satisfies cache.ReflectorStore.
func (s store) Update(obj any) error { return s.put(obj) }

// Delete satisfies cache.ReflectorStore.
func (s store) Delete(obj any) error {
	if h, ok := obj.(*autoscalingv2.HorizontalPodAutoscaler); ok {
		s.a.targets.drop(types.NamespacedName{Namespace: h.Namespace, Name: h.Name})
	}
	return nil
}

// Replace satisfies cache.ReflectorStore.
func (s store) Replace(objects []any, _ string) error {
	all := make([]*autoscaler, 0, len(objects))
	for _, obj := range objects {
		if h, ok := obj.(*autoscalingv2.HorizontalPodAutoscaler); ok {
			all = append(all, autoscalerOf(h))
		}
	}
	s.a.targets.replace(all)
	return nil
}

// Resync satisfies cache.ReflectorStore.
func (store) Resync() error { return nil }

// reflector returns what keeps the autoscalers in step with the API server. It
// speaks of some of its troubles only in its own log, so the requests are watched
// here: one line when they begin to fail, one when they succeed again.
func (a *Announcer) reflector() *cache.Reflector {
	hpas := a.opts.Client.AutoscalingV2().HorizontalPodAutoscalers(metav1.NamespaceAll)
	var failing atomic.Bool
	note := func(ctx context.Context, err error) {
		switch {
		case err == nil && failing.Swap(false):
			a.opts.Logger.Info("HorizontalPodAutoscalers can be read again")
		case err != nil && ctx.Err() == nil && !failing.Swap(true):
			a.opts.Logger.Warn("HorizontalPodAutoscalers cannot be read; weir needs list and watch on them (deploy/kustomize/components/hpa-events)", zap.Error(err))
		}
	}
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list, err := hpas.List(ctx, o)
			note(ctx, err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			w, err := hpas.Watch(ctx, o)
			note(ctx, err)
			return w, patient(err)
		},
	}
	return cache.NewReflectorWithOptions(
		cache.ToListWatcherWithWatchListSemantics(lw, a.opts.Client), &autoscalingv2.HorizontalPodAutoscaler{}, store{a},
		cache.ReflectorOptions{Name: "horizontalpodautoscalers"})
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
