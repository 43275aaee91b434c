package eventlog

import (
	"cmp"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
)

// Object is what an Event is about. Events on nodes have the namespace "default".
type Object struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// Event is one Event, with what people read of it.
type Event struct {
	Object
	// ObjectUID distinguishes objects of one name.
	ObjectUID string `json:"objectUID,omitempty"`
	// Part is the container of a pod; empty for the whole object.
	Part string `json:"part,omitempty"`
	// Type is Normal or Warning.
	Type    string `json:"type"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// Source is the component that reports it, such as kubelet.
	Source string `json:"source,omitempty"`
	// Count is how often it happened, from First to Last.
	Count int       `json:"count"`
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
	// UID is that of the Event.
	UID string `json:"-"`
}

// maxMessage limits a message in bytes. The API server accepts 1,024.
const maxMessage = 1024

// convert returns the Event of an object of the API server. Series of events.k8s.io and counts of the
// core group are both read: each client fills one of them.
func convert(e *v1.Event) *Event {
	of := e.InvolvedObject
	own := &Event{
		Object:    Object{Kind: strings.Clone(of.Kind), Namespace: cmp.Or(of.Namespace, e.Namespace), Name: of.Name},
		ObjectUID: string(of.UID), Part: container(of.FieldPath), Type: e.Type, Reason: e.Reason, Message: strings.TrimSpace(e.Message),
		Source: cmp.Or(e.ReportingController, e.Source.Component), Count: max(int(e.Count), 1),
		First: cmp.Or(e.FirstTimestamp.Time, e.EventTime.Time, e.CreationTimestamp.Time), UID: string(e.UID),
	}
	own.Last = cmp.Or(e.LastTimestamp.Time, e.EventTime.Time, own.First)
	if s := e.Series; s != nil {
		own.Count, own.Last = max(int(s.Count), own.Count), cmp.Or(s.LastObservedTime.Time, own.Last)
	}
	if len(own.Message) > maxMessage {
		own.Message = strings.ToValidUTF8(own.Message[:maxMessage], "")
	}
	return own
}

// container returns the container that a field path names: spec.containers{app}.
func container(path string) string {
	_, name, ok := strings.Cut(path, "{")
	if !ok || !strings.HasPrefix(path, "spec.") {
		return ""
	}
	return strings.TrimSuffix(name, "}")
}
