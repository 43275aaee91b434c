package hpaevents

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"

	"github.com/weir-metrics/weir/autoscaler/scaleclient"
	"github.com/weir-metrics/weir/autoscaler/selectorindex"
	"github.com/weir-metrics/weir/autoscaler/watcher"
)

// hpaInfo is the part of a HorizontalPodAutoscaler that is kept. It is immutable.
type hpaInfo struct {
	types.NamespacedName
	uid    types.UID
	target workloadRef
	// resource is set if it uses the pods' CPU or memory from metrics.k8s.io.
	resource bool
	// pods is set if it uses any metric of its pods.
	pods bool
}

// workloadRef is the workload that an autoscaler scales.
type workloadRef struct {
	namespace string
	autoscalingv2.CrossVersionObjectReference
}

// targetSet keeps the autoscalers and the selectors of their workloads. It reads the selectors
// again at intervals. It is safe for concurrent use.
type targetSet struct {
	scales scaleclient.ScaleReader
	queue  workqueue.TypedRateLimitingInterface[workloadRef] // workloads to read
	index  *selectorindex.Index[*hpaInfo]                    // autoscalers with a known selector

	mu struct {
		sync.Mutex
		hpas      map[types.NamespacedName]*hpaInfo
		workloads map[workloadRef]*workload
	}
}

// workload is what is known about a workload. Autoscalers have a generation only since Kubernetes 1.37,
// so what is known is stored by the workload that they name.
type workload struct {
	selector labels.Selector // nil if unknown
	hpas     map[*hpaInfo]bool
}

func newTargetSet(scales scaleclient.ScaleReader) *targetSet {
	t := &targetSet{
		scales: scales, index: selectorindex.New[*hpaInfo](),
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[workloadRef](time.Minute, refreshInterval)),
	}
	t.mu.hpas, t.mu.workloads = map[types.NamespacedName]*hpaInfo{}, map[workloadRef]*workload{}
	return t
}

// setHPA adds or replaces an autoscaler.
func (t *targetSet) setHPA(h *hpaInfo) {
	t.mu.Lock()
	defer t.mu.Unlock()
	old := t.mu.hpas[h.NamespacedName]
	if old != nil && *old == *h {
		return // its status changes every 15 s
	}
	t.mu.hpas[h.NamespacedName] = h
	w := t.mu.workloads[h.target]
	if w == nil {
		w = &workload{hpas: map[*hpaInfo]bool{}}
		t.mu.workloads[h.target] = w
		t.queue.Add(h.target)
	}
	w.hpas[h] = true
	if w.selector != nil {
		t.index.Set(h, h.Namespace, w.selector)
	}
	if old != nil {
		t.releaseTarget(old)
	}
}

// deleteHPA removes an autoscaler.
func (t *targetSet) deleteHPA(key types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if old := t.mu.hpas[key]; old != nil {
		delete(t.mu.hpas, key)
		t.releaseTarget(old)
	}
}

// releaseTarget removes an autoscaler from its workload.
func (t *targetSet) releaseTarget(h *hpaInfo) {
	t.index.Delete(h)
	w := t.mu.workloads[h.target]
	delete(w.hpas, h)
	if len(w.hpas) == 0 {
		delete(t.mu.workloads, h.target)
		t.queue.Forget(h.target)
	}
}

// count returns the number of autoscalers.
func (t *targetSet) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.mu.hpas)
}

// withSelector returns the autoscalers with a known selector.
func (t *targetSet) withSelector() (list []*hpaInfo) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, w := range t.mu.workloads {
		if w.selector != nil {
			list = slices.AppendSeq(list, maps.Keys(w.hpas))
		}
	}
	return list
}

// lookupTimeout bounds one lookup.
const lookupTimeout = 10 * time.Second

// refreshSelectors reads the selectors that are due, at most one in each lookupGap, until ctx ends.
// It calls failed with each error.
func (t *targetSet) refreshSelectors(ctx context.Context, failed func(workloadRef, error)) {
	context.AfterFunc(ctx, t.queue.ShutDown)
	limiter := rate.NewLimiter(rate.Every(lookupGap), 1)
	for {
		w, end := t.queue.Get()
		if end {
			return
		}
		if !t.needsSelector(w) {
			t.queue.Done(w)
			continue
		}
		if limiter.Wait(ctx) != nil {
			return
		}
		selector, err := t.readSelector(ctx, w)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			failed(w, err)
		}
		t.recordLookup(w, selector, err)
		t.queue.Done(w)
	}
}

// needsSelector reports whether an autoscaler scales a workload.
func (t *targetSet) needsSelector(w workloadRef) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.mu.workloads[w] != nil
}

func (t *targetSet) readSelector(ctx context.Context, w workloadRef) (labels.Selector, error) {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	got, _, err := t.scales.Get(ctx, w.namespace, w.CrossVersionObjectReference)
	if err != nil {
		return nil, err
	}
	return scaleclient.Selector(got.Selector)
}

// recordLookup records the result of a lookup.
func (t *targetSet) recordLookup(ref workloadRef, selector labels.Selector, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := t.mu.workloads[ref]
	if w == nil {
		return // no autoscaler scales the workload any more
	}
	if err != nil {
		t.queue.AddRateLimited(ref)
		if !scaleclient.IsPermanent(err) {
			return // keep the last known selector: it rarely changes
		}
	} else {
		t.queue.Forget(ref)
		// The jitter spreads the next reads of workloads that came in one list.
		t.queue.AddAfter(ref, wait.Jitter(refreshInterval*3/4, 1./3))
	}
	w.selector = selector
	for h := range w.hpas {
		if selector == nil {
			t.index.Delete(h)
		} else {
			t.index.Set(h, h.Namespace, selector)
		}
	}
}

// newHPAInfo returns the part of a HorizontalPodAutoscaler that is kept.
func newHPAInfo(h *watcher.HPA) *hpaInfo {
	a := &hpaInfo{
		NamespacedName: types.NamespacedName{Namespace: h.Namespace, Name: h.Name}, uid: h.UID,
		target: workloadRef{h.Namespace, h.Spec.ScaleTargetRef},
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

// isResource reports whether metrics.k8s.io serves the resource.
func isResource(name corev1.ResourceName) bool {
	return name == corev1.ResourceCPU || name == corev1.ResourceMemory
}
