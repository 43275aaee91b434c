package endlog

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// The bounds of a Log. An end takes about a kilobyte, and up to ten with long messages.
const (
	DefaultMaxEnds = 2000
	DefaultMaxAge  = time.Hour
)

// Options configure a Log. The zero Options means the defaults.
type Options struct {
	MaxEnds int
	MaxAge  time.Duration
	// Now returns the time. Default: time.Now.
	Now func() time.Time
	// Killed is called for each new end of a run that the kernel may have caused, of which no agent has
	// reported more yet. It does not wait. Default: nothing.
	Killed func(*End)
}

// Log keeps the newest ends. Its methods may be called by several goroutines.
type Log struct {
	opts Options

	mu      sync.RWMutex
	usage   func(*End) Usage
	ends    map[key]*End
	kills   map[killKey]*Kill
	since   time.Time // when the first pods were seen
	dropped int
}

// key identifies an end: a run of a container or, without a container, a pod.
type key struct {
	uid       metric.PodUID
	container string
	id        metric.ContainerID
	started   int64
}

// New returns an empty Log.
func New(o Options) *Log {
	o.MaxEnds, o.MaxAge = cmp.Or(o.MaxEnds, DefaultMaxEnds), cmp.Or(o.MaxAge, DefaultMaxAge)
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Log{opts: o, ends: map[key]*End{}, kills: map[killKey]*Kill{}}
}

// SetUsage has usage return, for each new end, what was used before it. usage does not wait. It is called
// before the first Changed.
func (l *Log) SetUsage(usage func(*End) Usage) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.usage = usage
}

// Changed records the ends that the change of one pod shows: see Ends. node returns the
// state of a node.
func (l *Log) Changed(before, after, final *cluster.Pod, node func(metric.NodeName) NodeState) {
	if before != nil && after != nil && before.UID != after.UID { // a pod of the same name came in its place
		l.Changed(before, nil, final, node)
		before, final = nil, nil
	}
	now := l.opts.Now()
	for _, e := range Ends(before, after, final, now, l.opts.MaxAge) {
		e.Node = node(e.Pod.Node)
		l.add(e, now)
	}
	if before != nil && after == nil {
		l.markGone(before)
	}
}

// markGone notes that a pod which ended before is gone now.
func (l *Log) markGone(p *cluster.Pod) {
	k := key{uid: p.ReportedUID()}
	l.mu.Lock()
	defer l.mu.Unlock()
	if old := l.ends[k]; old != nil && !old.Gone {
		e := *old // readers may have the old one
		e.Gone = true
		l.ends[k] = &e
	}
}

// Synced records that the pods of the cluster are known from now on.
func (l *Log) Synced() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.since.IsZero() {
		l.since = l.opts.Now()
	}
}

// add adds an end, or what is new about one that is known.
func (l *Log) add(e End, now time.Time) {
	e.clamp(now)
	k := key{uid: e.Pod.ReportedUID(), container: e.Container, id: e.Run.ID}
	switch {
	case e.GoesOn():
		k.started = e.Kill.After.UnixNano()
	case e.Container != "" && !e.Run.Started.IsZero():
		k.started = e.Run.Started.UnixNano()
	}
	l.mu.RLock()
	_, known := l.ends[k]
	usage := l.usage
	l.mu.RUnlock()
	if !known && usage != nil {
		e.Before = usage(&e)
	}
	e = l.keep(k, &e, now)
	if !known && (e.Kill == nil || e.Kill.Doubt == Late) && l.opts.Killed != nil && (e.Run.Reason == "OOMKilled" || e.Run.EndedBySIGKILL()) {
		l.opts.Killed(&e)
	}
}

// keep keeps e, and returns it with its kill.
func (l *Log) keep(k key, e *End, now time.Time) End {
	l.mu.Lock()
	defer l.mu.Unlock()
	if old := l.ends[k]; old != nil {
		e.Before, e.Seen, e.Node, e.Gone, e.Kill = old.Before, old.Seen, old.Node, e.Gone || old.Gone, cmp.Or(e.Kill, old.Kill)
		if old.At.Before(e.At) && !e.GoesOn() {
			e.At = old.At
		}
	}
	l.ends[k] = e
	if !e.GoesOn() { // AddKills matches all that it has
		l.matchKills(map[metric.PodUID]bool{k.uid: true})
	}
	kept := *l.ends[k]
	if len(l.ends) > l.opts.MaxEnds {
		maps.DeleteFunc(l.ends, func(_ key, e *End) bool { return l.isOld(e, now) })
		l.dropped += makeRoom(l.ends, l.opts.MaxEnds, func(e *End) (metric.Namespace, time.Time) { return e.Pod.Namespace, e.At })
	}
	return kept
}

// makeRoom drops the cluster.Surplus of the namespaces, until a tenth of the places is free. It returns how many it
// dropped.
func makeRoom[K comparable, V any](all map[K]V, places int, place func(V) (metric.Namespace, time.Time)) (dropped int) {
	namespaces := map[metric.Namespace][]K{}
	for k, v := range all {
		namespace, _ := place(v)
		namespaces[namespace] = append(namespaces[namespace], k)
	}
	at := func(k K) time.Time { _, at := place(all[k]); return at }
	surplus := cluster.Surplus(namespaces, places-places/10, func(a, b K) int { return at(a).Compare(at(b)) })
	for _, k := range surplus {
		delete(all, k)
	}
	return len(surplus)
}

func (l *Log) isOld(e *End, now time.Time) bool { return now.Sub(e.At) > l.opts.MaxAge }

// In returns the ends in a namespace, or in all if it is empty, the newest first. What they point to
// must not be changed.
func (l *Log) In(namespace metric.Namespace) (ends []*End) {
	now := l.opts.Now()
	l.mu.RLock()
	defer l.mu.RUnlock()
	for _, e := range l.ends {
		if (namespace == "" || e.Pod.Namespace == namespace) && !l.isOld(e, now) && !e.retracted {
			ends = append(ends, e)
		}
	}
	slices.SortFunc(ends, newestFirst)
	return ends
}

func newestFirst(a, b *End) int {
	return cmp.Or(b.At.Compare(a.At), cmp.Compare(a.Pod.Namespace, b.Pod.Namespace), cmp.Compare(a.Pod.Name, b.Pod.Name), cmp.Compare(a.Container, b.Container))
}

// Since returns from when on the Log has all ends: when the pods were first listed, or, later, its age
// before now. It is zero until the pods are listed.
func (l *Log) Since() time.Time {
	now := l.opts.Now()
	l.mu.RLock()
	defer l.mu.RUnlock()
	if oldest := now.Add(-l.opts.MaxAge); !l.since.IsZero() && l.since.Before(oldest) {
		return oldest
	}
	return l.since
}

// Size returns how many ends are kept, and how many were dropped because the Log was full.
func (l *Log) Size() (kept, dropped int) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return len(l.ends), l.dropped
}
