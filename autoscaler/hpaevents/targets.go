package hpaevents

import (
	"context"
	"hash/fnv"
	"sync"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-metrics/weir/autoscaler/scaleclient"
	"github.com/weir-metrics/weir/autoscaler/watcher"
	"github.com/weir-metrics/weir/metric"
)

// targetSet keeps the autoscalers and the selectors of their workloads. It is safe for concurrent
// use.
type targetSet struct {
	refresh time.Duration
	changed chan struct{} // receives a value when buildIndex would return another index
	wake    chan struct{} // receives a value when a new target was added

	mu struct {
		sync.Mutex
		hpas    map[types.NamespacedName]*hpaInfo
		lookups map[workloadRef]*selectorLookup
	}
}

// selectorLookup is what is known of a workload's selector. Autoscalers have no generation that
// says that they changed, so the workload they name is the key.
type selectorLookup struct {
	selector labels.Selector // nil if unknown
	due      time.Time       // when it is read next
	failures int             // in a row
	users    int             // autoscalers that scale the workload
}

func newTargetSet(refresh time.Duration) *targetSet {
	t := &targetSet{refresh: refresh, changed: make(chan struct{}, 1), wake: make(chan struct{}, 1)}
	t.mu.hpas, t.mu.lookups = map[types.NamespacedName]*hpaInfo{}, map[workloadRef]*selectorLookup{}
	return t
}

func (a *hpaInfo) key() types.NamespacedName {
	return types.NamespacedName{Namespace: string(a.namespace), Name: a.name}
}

// setHPA adds or replaces an autoscaler.
func (t *targetSet) setHPA(h *hpaInfo) {
	t.mu.Lock()
	defer t.mu.Unlock()
	old := t.mu.hpas[h.key()]
	if old != nil && *old == *h {
		return // its status changes every quarter of a minute
	}
	t.addLocked(h)
	if old != nil {
		t.releaseTarget(old.target)
	}
	signal(t.changed)
}

// deleteHPA removes an autoscaler.
func (t *targetSet) deleteHPA(key types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if old := t.mu.hpas[key]; old != nil {
		delete(t.mu.hpas, key)
		t.releaseTarget(old.target)
		signal(t.changed)
	}
}

// replaceHPAs replaces all autoscalers.
func (t *targetSet) replaceHPAs(all []*hpaInfo) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.mu.hpas
	t.mu.hpas = make(map[types.NamespacedName]*hpaInfo, len(all))
	for _, h := range all {
		t.addLocked(h)
	}
	for _, old := range before {
		t.releaseTarget(old.target)
	}
	signal(t.changed)
}

func (t *targetSet) addLocked(h *hpaInfo) {
	t.mu.hpas[h.key()] = h
	l := t.mu.lookups[h.target]
	if l == nil {
		l = &selectorLookup{}
		t.mu.lookups[h.target] = l
		signal(t.wake)
	}
	l.users++
}

func (t *targetSet) releaseTarget(w workloadRef) {
	l := t.mu.lookups[w]
	if l.users--; l.users == 0 {
		delete(t.mu.lookups, w)
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // the last signal has not been read yet: it will do for both
	}
}

// buildIndex returns the index of the autoscalers whose selector is known.
func (t *targetSet) buildIndex() *podIndex {
	t.mu.Lock()
	defer t.mu.Unlock()
	table := newPodIndex()
	for _, h := range t.mu.hpas {
		if l := t.mu.lookups[h.target]; l.selector != nil {
			table.add(h, l.selector)
		}
	}
	return table
}

// count returns the number of autoscalers.
func (t *targetSet) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.mu.hpas)
}

// nextDue returns the target that has been due longest, or when one will be due; zero if there is
// none.
func (t *targetSet) nextDue(now time.Time) (w workloadRef, due bool, at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	first := true
	for other, l := range t.mu.lookups {
		if first || l.due.Before(at) {
			w, at, first = other, l.due, false
		}
	}
	return w, !first && !at.After(now), at
}

// recordLookup records the result of a lookup.
func (t *targetSet) recordLookup(w workloadRef, selector labels.Selector, err error, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.mu.lookups[w]
	if l == nil {
		return // no autoscaler scales it any more
	}
	if err != nil {
		l.failures++
		l.due = now.Add(min(time.Minute<<min(l.failures-1, 10), t.refresh))
		if !scaleclient.IsPermanent(err) {
			return // keep the last known selector: it rarely changes
		}
	} else {
		l.failures = 0
		// Spread, so that what came in one list does not come due together.
		l.due = now.Add(t.refresh - time.Duration(spread(w)*float64(t.refresh/4)))
	}
	if !sameSelector(l.selector, selector) {
		l.selector = selector
		signal(t.changed)
	}
}

func sameSelector(a, b labels.Selector) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return a.String() == b.String()
}

// spread returns a number from 0 to 1, always the same for one target.
func spread(w workloadRef) float64 {
	h := fnv.New32a()
	for _, s := range [...]string{string(w.namespace), w.apiVersion, w.kind, w.name} {
		h.Write([]byte(s))
		h.Write([]byte{0})
	}
	return float64(h.Sum32()) / (1 << 32)
}

// lookupTimeout bounds one lookup.
const lookupTimeout = 10 * time.Second

// refreshSelectors reads the selectors that are due, one after another with a pause of gap, until
// ctx ends. failed receives errors.
func (t *targetSet) refreshSelectors(ctx context.Context, s Scales, gap time.Duration, failed func(workloadRef, error)) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		wait := gap
		w, due, at := t.nextDue(time.Now())
		switch {
		case due:
			selector, err := t.readSelector(ctx, s, w)
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				failed(w, err)
			}
			t.recordLookup(w, selector, err, time.Now())
		case at.IsZero():
			wait = t.refresh
		default:
			wait = max(gap, time.Until(at))
		}
		wake := t.wake
		if due {
			wake = nil // it may wait for the gap
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-wake:
		}
	}
}

func (t *targetSet) readSelector(ctx context.Context, s Scales, w workloadRef) (labels.Selector, error) {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	got, _, err := s.Get(ctx, string(w.namespace), autoscalingv2.CrossVersionObjectReference{APIVersion: w.apiVersion, Kind: w.kind, Name: w.name})
	if err != nil {
		return nil, err
	}
	return scaleclient.Selector(got.Selector)
}

// newHPAInfo returns what is kept of a HorizontalPodAutoscaler.
func newHPAInfo(h *watcher.HPA) *hpaInfo {
	ref := h.Spec.ScaleTargetRef
	a := &hpaInfo{
		namespace: metric.Namespace(h.Namespace), name: h.Name, uid: h.UID,
		full:   h.Namespace + "/" + h.Name,
		target: workloadRef{metric.Namespace(h.Namespace), ref.APIVersion, ref.Kind, ref.Name},
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
