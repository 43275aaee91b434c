package eventlog

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/weir-metrics/weir/cluster"
)

// Log keeps the newest Events. Its methods may be called by several goroutines.
type Log struct {
	max int
	age time.Duration

	mu       sync.RWMutex
	byUID    map[string]*Event
	byObject map[Object][]*Event // in no order
	dropped  int
	// forgotten is, for a namespace, when the newest Event happened that was dropped before its time.
	forgotten map[string]time.Time
}

// maxSeen is how many times of one Event are kept.
const maxSeen = 16

// NewLog returns a Log of at most maxEvents Events that are at most maxAge old.
func NewLog(maxEvents int, maxAge time.Duration) *Log {
	return &Log{max: maxEvents, age: maxAge, byUID: map[string]*Event{}, byObject: map[Object][]*Event{}, forgotten: map[string]time.Time{}}
}

// add adds an Event that arrives now, or replaces its earlier state. It reports whether the Event is new
// or newer. If the Log is full, it makes room.
func (l *Log) add(e *Event, now time.Time) bool {
	future := clamp(e, now)
	if now.Sub(e.Last) > l.age {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if old := l.byUID[e.UID]; old != nil {
		// The time of an Event of the future is that of its arrival: it is not newer because it is
		// read again.
		if e.Count <= old.Count && (future || !e.Last.After(old.Last)) {
			return false
		}
		l.remove(old)
		e.Seen = old.Seen[max(0, len(old.Seen)-maxSeen+1):]
	}
	e.Seen = append(slices.Clip(e.Seen), e.Last)
	l.byUID[e.UID] = e
	l.byObject[e.Object] = append(l.byObject[e.Object], e)
	if len(l.byUID) > l.max {
		l.makeRoom(now)
	}
	return true
}

// makeRoom drops what is too old, and then the Surplus of the namespaces, until a tenth of the places is free.
func (l *Log) makeRoom(now time.Time) {
	namespaces := map[string][]*Event{}
	for _, e := range l.byUID {
		if now.Sub(e.Last) > l.age {
			l.remove(e)
		} else {
			namespaces[e.Namespace] = append(namespaces[e.Namespace], e)
		}
	}
	for _, e := range cluster.Surplus(namespaces, l.max-l.max/10, func(a, b *Event) int { return a.Last.Compare(b.Last) }) {
		l.remove(e)
		l.dropped++
		if e.Last.After(l.forgotten[e.Namespace]) {
			l.forgotten[e.Namespace] = e.Last
		}
	}
	maps.DeleteFunc(l.forgotten, func(_ string, last time.Time) bool { return now.Sub(last) > l.age })
}

// Since returns from when on the Log has all Events on the objects of a namespace that were written.
func (l *Log) Since(namespace string, now time.Time) time.Time {
	l.mu.RLock()
	defer l.mu.RUnlock()
	since := now.Add(-l.age)
	if last := l.forgotten[namespace]; last.After(since) {
		since = last
	}
	return since
}

func (l *Log) remove(e *Event) {
	delete(l.byUID, e.UID)
	rest := slices.DeleteFunc(l.byObject[e.Object], func(other *Event) bool { return other == e })
	if len(rest) == 0 {
		delete(l.byObject, e.Object)
	} else {
		l.byObject[e.Object] = rest
	}
}

// Of returns the Events on one object, the newest first. Those with the same reason, message and source
// are one.
func (l *Log) Of(o Object, now time.Time) []Event {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.merged(l.byObject[o], now)
}

// In returns the Events on the objects of a namespace, or of all if it is empty, the newest first.
func (l *Log) In(namespace string, now time.Time) (all []Event) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	for o, events := range l.byObject {
		if namespace == "" || o.Namespace == namespace {
			all = append(all, l.merged(events, now)...)
		}
	}
	slices.SortFunc(all, newestFirst)
	return all
}

// Size returns how many Events are kept, and how many were dropped because the Log was full.
func (l *Log) Size() (kept, dropped int) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return len(l.byUID), l.dropped
}

// merged returns Events that are not too old, the newest first, with equal ones as one.
func (l *Log) merged(events []*Event, now time.Time) []Event {
	type content struct{ uid, part, reason, message, source string }
	at := map[content]int{}
	var all []Event
	for _, e := range events {
		if now.Sub(e.Last) > l.age {
			continue
		}
		key := content{e.ObjectUID, e.Part, e.Reason, e.Message, e.Source}
		i, seen := at[key]
		if !seen {
			at[key] = len(all)
			all = append(all, *e)
			continue
		}
		one := &all[i]
		one.Count += e.Count
		one.Seen = slices.Concat(one.Seen, e.Seen)
		slices.SortFunc(one.Seen, time.Time.Compare)
		if e.First.Before(one.First) {
			one.First = e.First
		}
		if e.Last.After(one.Last) {
			one.Last = e.Last
		}
	}
	slices.SortFunc(all, newestFirst)
	return all
}

func newestFirst(a, b Event) int {
	return cmp.Or(b.Last.Compare(a.Last), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Part, b.Part), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Message, b.Message))
}
