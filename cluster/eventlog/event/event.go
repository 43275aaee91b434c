// Package event has an Event of the cluster as weir keeps and serves it.
package event

import "time"

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
	// Seen are the times at which weir saw it happen, the oldest first: the last of them, if they are many. The API
	// server only has First and Last.
	Seen []time.Time `json:"-"`
	// UID is that of the Event.
	UID string `json:"-"`
}
