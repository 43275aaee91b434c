package eventlog

import (
	"cmp"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/weir-metrics/weir/cluster/eventlog/event"
)

// Object is what an Event is about.
type Object = event.Object

// Event is one Event.
type Event = event.Event

// maxMessage and maxName limit the texts of an Event in bytes. The API server limits a message to 1,024
// bytes only if the Event is made by events.k8s.io, and limits no name of an involved object. Names of
// objects have at most 253.
const (
	maxMessage = 1024
	maxName    = 253
)

// convert returns the Event of an object of the API server. Series of events.k8s.io and counts of the
// core group are both read: each client fills one of them. The namespace is that of the Event itself,
// because the right to read an Event is one in that namespace.
func convert(e *v1.Event) *Event {
	object := e.InvolvedObject
	own := &Event{
		Object:    Object{Kind: bounded(object.Kind, maxName), Namespace: e.Namespace, Name: bounded(object.Name, maxName)},
		ObjectUID: bounded(string(object.UID), maxName), Part: bounded(container(object.FieldPath), maxName),
		Type: bounded(e.Type, maxName), Reason: bounded(e.Reason, maxName), Message: bounded(strings.TrimSpace(e.Message), maxMessage),
		Source: bounded(cmp.Or(e.ReportingController, e.Source.Component), maxName), Count: max(int(e.Count), 1),
		First: cmp.Or(e.FirstTimestamp.Time, e.EventTime.Time, e.CreationTimestamp.Time), UID: string(e.UID),
	}
	own.Last = cmp.Or(e.LastTimestamp.Time, e.EventTime.Time, own.First)
	if s := e.Series; s != nil {
		own.Count, own.Last = max(int(s.Count), own.Count), cmp.Or(s.LastObservedTime.Time, own.Last)
	}
	return own
}

// clamp moves times that cannot be to when the Event arrived: it did not happen later than that, and did
// not begin after it happened last. Whoever may create Events writes any time into them, also one of a
// year that JSON has no form for. It reports whether the Event claims to happen in the future.
func clamp(e *Event, arrival time.Time) (future bool) {
	if future = e.Last.After(arrival); future {
		e.Last = arrival
	}
	if e.First.After(e.Last) || e.First.Year() < 1 {
		e.First = e.Last
	}
	return future
}

// bounded returns a copy of a text with at most limit bytes, as UTF-8. The text itself may be a small
// part of a long one, which would stay in memory with it.
func bounded(text string, limit int) string {
	return strings.ToValidUTF8(strings.Clone(text[:min(len(text), limit)]), "")
}

// container returns the container that a field path names: spec.containers{app}.
func container(path string) string {
	_, name, ok := strings.Cut(path, "{")
	if !ok || !strings.HasPrefix(path, "spec.") {
		return ""
	}
	return strings.TrimSuffix(name, "}")
}
