package hpaevents

import (
	"context"
	"hash/fnv"
	"sync"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	scale "github.com/weir-metrics/weir/autoscaler/target"
)

// targets are the autoscalers there are and what is known of their workloads' pods.
// Its methods may be called by several goroutines.
type targets struct {
	refresh time.Duration
	changed chan struct{} // has a value after table has something new to say
	wake    chan struct{} // has a value after a target came that was never looked up

	mu struct {
		sync.Mutex
		hpas    map[types.NamespacedName]*autoscaler
		lookups map[target]*lookup
	}
}

// lookup is what is known of a workload's pods. Autoscalers have no generation to
// tell that they changed: what they name is what is remembered.
type lookup struct {
	selector labels.Selector // nil if unknown
	due      time.Time       // when it is asked next
	failures int             // in a row
	users    int             // autoscalers that scale it
}

func newTargets(refresh time.Duration) *targets {
	t := &targets{refresh: refresh, changed: make(chan struct{}, 1), wake: make(chan struct{}, 1)}
	t.mu.hpas, t.mu.lookups = map[types.NamespacedName]*autoscaler{}, map[target]*lookup{}
	return t
}

func (a *autoscaler) key() types.NamespacedName {
	return types.NamespacedName{Namespace: string(a.namespace), Name: a.name}
}

// put notes a new or changed autoscaler.
func (t *targets) put(h *autoscaler) {
	t.mu.Lock()
	defer t.mu.Unlock()
	old := t.mu.hpas[h.key()]
	if old != nil && *old == *h {
		return // its status changes every quarter of a minute
	}
	t.set(h)
	if old != nil {
		t.leave(old.target)
	}
	signal(t.changed)
}

// drop notes that an autoscaler is gone.
func (t *targets) drop(key types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if old := t.mu.hpas[key]; old != nil {
		delete(t.mu.hpas, key)
		t.leave(old.target)
		signal(t.changed)
	}
}

// replace notes that these are all autoscalers there are.
func (t *targets) replace(all []*autoscaler) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.mu.hpas
	t.mu.hpas = make(map[types.NamespacedName]*autoscaler, len(all))
	for _, h := range all {
		t.set(h)
	}
	for _, old := range before {
		t.leave(old.target)
	}
	signal(t.changed)
}

func (t *targets) set(h *autoscaler) {
	t.mu.hpas[h.key()] = h
	l := t.mu.lookups[h.target]
	if l == nil {
		l = &lookup{}
		t.mu.lookups[h.target] = l
		signal(t.wake)
	}
	l.users++
}

func (t *targets) leave(w target) {
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

// table returns the autoscalers whose pods are known.
func (t *targets) table() *table {
	t.mu.Lock()
	defer t.mu.Unlock()
	table := newTable()
	for _, h := range t.mu.hpas {
		if l := t.mu.lookups[h.target]; l.selector != nil {
			table.add(h, l.selector)
		}
	}
	return table
}

// count returns how many autoscalers there are.
func (t *targets) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.mu.hpas)
}

// next returns the target that has been due longest, or when one will be; zero if
// there is none.
func (t *targets) next(now time.Time) (w target, due bool, at time.Time) {
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

// looked notes what was found out of a target.
func (t *targets) looked(w target, selector labels.Selector, err error, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.mu.lookups[w]
	if l == nil {
		return // nobody scales it any more
	}
	if err != nil {
		l.failures++
		l.due = now.Add(min(time.Minute<<min(l.failures-1, 10), t.refresh))
		if !scale.Final(err) {
			return // what was known stands: it rarely changes
		}
	} else {
		l.failures = 0
		// Spread, so that what came in one list does not come due together.
		l.due = now.Add(t.refresh - time.Duration(spread(w)*float64(t.refresh/4)))
	}
	if !same(l.selector, selector) {
		l.selector = selector
		signal(t.changed)
	}
}

func same(a, b labels.Selector) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return a.String() == b.String()
}

// spread returns a number from 0 to 1 that is always the same for one target.
func spread(w target) float64 {
	h := fnv.New32a()
	for _, s := range [...]string{string(w.namespace), w.apiVersion, w.kind, w.name} {
		h.Write([]byte(s))
		h.Write([]byte{0})
	}
	return float64(h.Sum32()) / (1 << 32)
}

// lookupTimeout bounds one question for a target's pods.
const lookupTimeout = 10 * time.Second

// follow looks targets up, one after another and no faster than one in gap, until
// ctx ends. failed is told what did not work.
func (t *targets) follow(ctx context.Context, s Scales, gap time.Duration, failed func(target, error)) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		wait := gap
		w, due, at := t.next(time.Now())
		switch {
		case due:
			selector, err := t.ask(ctx, s, w)
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				failed(w, err)
			}
			t.looked(w, selector, err, time.Now())
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

func (t *targets) ask(ctx context.Context, s Scales, w target) (labels.Selector, error) {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	got, _, err := s.Get(ctx, string(w.namespace), autoscalingv2.CrossVersionObjectReference{APIVersion: w.apiVersion, Kind: w.kind, Name: w.name})
	if err != nil {
		return nil, err
	}
	return scale.Selector(got.Selector)
}
