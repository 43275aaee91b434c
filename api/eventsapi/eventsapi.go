package eventsapi

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/cluster/eventlog"
)

// listKind is the kind of a List.
const listKind = "EventList"

// List is the answer: Events, the newest first.
type List struct {
	Kind       string           `json:"kind"`
	APIVersion string           `json:"apiVersion"`
	Items      []eventlog.Event `json:"items"`
	// Unread says in a sentence why weir cannot read Events now, so that some may be missing. It is
	// empty if weir can.
	Unread string `json:"unread,omitempty"`
}

// EventReader is the memory of Events.
type EventReader interface {
	Of(o eventlog.Object, now time.Time) []eventlog.Event
	In(namespace string, now time.Time) []eventlog.Event
	Unread() string
}

// NewHandler returns a handler for Paths that answers from log, and with 404 if log is nil.
func NewHandler(log EventReader) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, err := answer(log, w, r)
		weirdev.Respond(w, answer, err)
	})
}

func answer(log EventReader, w http.ResponseWriter, r *http.Request) (*List, error) {
	if err := weirdev.OnlyReads(w, r, "Events cannot be changed here", "GET them."); err != nil {
		return nil, err
	}
	o, err := parse(r)
	if err != nil {
		return nil, err
	}
	if log == nil {
		return nil, &weirdev.Problem{Status: http.StatusNotFound, Message: "this weir keeps no Events", Hint: "Run it with --events."}
	}
	list := &List{Kind: listKind, APIVersion: weirdev.APIVersion, Unread: log.Unread()}
	if o.Name == "" {
		list.Items = log.In(o.Namespace, time.Now())
	} else {
		list.Items = log.Of(o, time.Now())
	}
	if list.Items == nil {
		list.Items = []eventlog.Event{}
	}
	return list, nil
}

// Paths returns the patterns of the API for http.ServeMux.
func Paths() []string {
	return []string{weirdev.Path + "events", weirdev.Path + "namespaces/{namespace}/events"}
}

// APIResources returns the resources for discovery.
func APIResources() []metav1.APIResource {
	return []metav1.APIResource{{Name: "events", Kind: listKind, Namespaced: true, Verbs: metav1.Verbs{"list"}}}
}

// parse returns the object that r asks for. It has no kind and name if r asks for a whole namespace, and
// no namespace if r asks for all. The error is a *weirdev.Problem.
func parse(r *http.Request) (o eventlog.Object, err error) {
	parts, names, ok := weirdev.Parts(r.URL.EscapedPath())
	switch {
	case ok && len(parts) == 1 && parts[0] == "events":
	case ok && len(parts) == 3 && parts[0] == "namespaces" && parts[2] == "events":
		o.Namespace = names[1]
	default:
		return o, &weirdev.Problem{Status: http.StatusNotFound, Message: fmt.Sprintf("nothing is at %q", r.URL.Path), Hint: "There are events and namespaces/NAME/events below " + weirdev.Path + "."}
	}
	values, err := url.ParseQuery(r.URL.RawQuery)
	bad := func(message string) error {
		return &weirdev.Problem{Status: http.StatusBadRequest, Message: message, Hint: "Only kind and name are known, which name one object: ?kind=Pod&name=web-1."}
	}
	if err != nil {
		return o, bad(err.Error())
	}
	for name, given := range values {
		switch {
		case weirdev.Moot(name):
		case len(given) != 1 || given[0] == "":
			return o, bad(name + " is to be given once, with a value")
		case name == "kind":
			o.Kind = given[0]
		case name == "name":
			o.Name = given[0]
		default:
			return o, bad(fmt.Sprintf("unknown parameter %q", name))
		}
	}
	if (o.Kind == "") != (o.Name == "") {
		return o, bad("kind and name need each other")
	}
	if o.Name != "" && o.Namespace == "" {
		return o, bad("an object is in a namespace, a node in default")
	}
	return o, nil
}

// Client reads the API of one weir.
type Client struct{ weir *weirdev.Client }

// NewClient returns a client that asks weir.
func NewClient(weir *weirdev.Client) *Client { return &Client{weir} }

// Events returns the Events on an object. If the server answers with an error, the error is a
// *weirdev.Problem. A weir without --events answers 404, too.
func (c *Client) Events(ctx context.Context, o eventlog.Object) (*List, error) {
	var list List
	what := "Events on " + o.Kind + " " + o.Namespace + "/" + o.Name
	if err := c.weir.Get(ctx, what, []string{"namespaces", o.Namespace, "events"}, url.Values{"kind": {o.Kind}, "name": {o.Name}}, &list); err != nil {
		return nil, err
	}
	if list.Kind != listKind || list.APIVersion != weirdev.APIVersion {
		return nil, fmt.Errorf("read %s: a %s of %s is none of %s", what, list.Kind, list.APIVersion, weirdev.APIVersion)
	}
	return &list, nil
}
