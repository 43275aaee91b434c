package eventsapi

import (
	"context"
	"net/http"
	"net/url"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/cluster/eventlog/event"
)

// listKind is the kind of a List.
const listKind = "EventList"

// List is the answer: Events, the newest first.
type List struct {
	Kind       string        `json:"kind"`
	APIVersion string        `json:"apiVersion"`
	Items      []event.Event `json:"items"`
	// Unread is a sentence that explains why weir cannot read Events now, so that some may be missing. It is
	// empty if weir can.
	Unread string `json:"unread,omitempty"`
}

// EventReader is the memory of Events.
type EventReader interface {
	Of(o event.Object, now time.Time) []event.Event
	In(namespace string, now time.Time) []event.Event
	Unread() string
}

// NewHandler returns a handler for Paths that answers from log, and with 404 if log is nil.
func NewHandler(log EventReader) http.Handler {
	return weirdev.ReadHandler("Events are read-only here", parse, func(_ context.Context, o event.Object) (*List, error) {
		if log == nil {
			return nil, &weirdev.Problem{Status: http.StatusNotFound, Message: "this weir does not keep Events", Hint: "Run it with --events."}
		}
		return listOf(log, o), nil
	})
}

// listOf returns the Events on an object or, if o has no name, in its namespace.
func listOf(log EventReader, o event.Object) *List {
	list := &List{Kind: listKind, APIVersion: weirdev.APIVersion, Unread: log.Unread()}
	if o.Name == "" {
		list.Items = log.In(o.Namespace, time.Now())
	} else {
		list.Items = log.Of(o, time.Now())
	}
	if list.Items == nil {
		list.Items = []event.Event{}
	}
	return list
}

var parameters = []string{"kind", "name"}

var routes = weirdev.Routes{
	{Path: "events", Parameters: parameters},
	{Path: "namespaces/{namespace}/events", Parameters: parameters},
}

// Paths returns the patterns of the API for http.ServeMux.
func Paths() []string { return routes.Patterns() }

// APIResources returns the resources for discovery.
func APIResources() []metav1.APIResource {
	return []metav1.APIResource{{Name: "events", Kind: listKind, Namespaced: true, Verbs: metav1.Verbs{"list"}}}
}

// parse returns the object that r asks for. It has no kind and name if r asks for a whole namespace, and
// no namespace if r asks for all. The error is a *weirdev.Problem.
func parse(r *http.Request) (event.Object, error) {
	request, err := routes.Parse(r)
	if err != nil {
		return event.Object{}, err
	}
	o := event.Object{Namespace: request.Names["namespace"], Kind: request.Values["kind"], Name: request.Values["name"]}
	switch {
	case (o.Kind == "") != (o.Name == ""):
		return o, request.BadParameter("kind and name select one object together: ?kind=Pod&name=web-1")
	case o.Name != "" && o.Namespace == "":
		return o, request.BadParameter("the path of an object has its namespace; nodes are in default")
	}
	return o, nil
}

// Client reads the API of one weir.
type Client struct{ Weir *weirdev.Client }

// Events returns the Events on an object. If the server answers with an error, the error is a
// *weirdev.Problem. A weir without --events answers 404, too.
func (c *Client) Events(ctx context.Context, o event.Object) (*List, error) {
	what := "Events on " + o.Kind + " " + o.Namespace + "/" + o.Name
	return weirdev.Get[List](ctx, c.Weir, what, []string{"namespaces", o.Namespace, "events"}, url.Values{"kind": {o.Kind}, "name": {o.Name}}, listKind)
}
