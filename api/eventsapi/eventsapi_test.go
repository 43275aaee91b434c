package eventsapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-metrics/weir/api/rights"
	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/cluster/eventlog"
	"github.com/weir-metrics/weir/test/cmptest"
)

// few are Events of two namespaces.
type few []eventlog.Event

func (f few) Of(o eventlog.Object, _ time.Time) (all []eventlog.Event) {
	for _, e := range f {
		if e.Object == o {
			all = append(all, e)
		}
	}
	return all
}

func (f few) In(namespace string, _ time.Time) (all []eventlog.Event) {
	for _, e := range f {
		if namespace == "" || e.Namespace == namespace {
			all = append(all, e)
		}
	}
	return all
}

func (few) Unread() string { return "weir cannot read them." }

func TestEvents(t *testing.T) {
	web := eventlog.Object{Kind: "Pod", Namespace: "shop", Name: "web"}
	at := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	log := few{
		{Object: web, Type: "Warning", Reason: "BackOff", Message: "it ends", Count: 3, First: at, Last: at},
		{Object: eventlog.Object{Kind: "Node", Namespace: "default", Name: "n1"}, Reason: "Rebooted", Count: 1, First: at, Last: at},
	}
	mux := http.NewServeMux()
	for _, path := range Paths() {
		mux.Handle(path, NewHandler(log))
	}
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	weir, err := weirdev.NewClient(server.URL, server.Client())
	if err != nil {
		t.Fatal(err)
	}
	got, err := (&Client{weir}).Events(t.Context(), web)
	if diff := cmp.Diff(&List{Kind: listKind, APIVersion: weirdev.APIVersion, Items: log[:1], Unread: "weir cannot read them."}, got); err != nil || diff != "" {
		t.Errorf("error %v (-want +got):\n%s", err, diff)
	}
	for path, want := range map[string]string{
		"namespaces/default/events":                            "200 EventList 1",
		"events":                                               "200 EventList 2",
		"events?kind=Pod&name=web":                             "400 Status 0",
		"namespaces/bank/events?limit=500":                     "200 EventList 0",
		"namespaces/shop/events?kind=Pod&name=other":           "200 EventList 0",
		"namespaces/shop/events?kind=Pod":                      "400 Status 0",
		"namespaces/shop/events?name=web&kind=Pod&fieldPath=x": "400 Status 0",
		"namespaces/shop/events?kind=Pod&kind=Node&name=web":   "400 Status 0",
	} {
		resp, err := http.Get(server.URL + weirdev.Path + path)
		if err != nil {
			t.Fatal(err)
		}
		var answer List
		err = json.NewDecoder(resp.Body).Decode(&answer)
		resp.Body.Close()
		if got := fmt.Sprint(resp.StatusCode, " ", answer.Kind, " ", len(answer.Items)); err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", path, got, err, want)
		}
	}
}

// A weir without --events says how to have them.
func TestNoEventsAreKept(t *testing.T) {
	w := httptest.NewRecorder()
	NewHandler(nil).ServeHTTP(w, httptest.NewRequest(http.MethodGet, weirdev.Path+"events", nil))
	if w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), "--events") {
		t.Errorf("status %d: %s", w.Code, w.Body)
	}
}

// A reader needs the right to list Events of the namespace, also for one object.
func TestRights(t *testing.T) {
	for path, want := range map[string][]rights.Right{
		"namespaces/shop/events":                   {{Verb: "list", Resource: "events", Namespace: "shop"}},
		"namespaces/shop/events?kind=Pod&name=web": {{Verb: "list", Resource: "events", Namespace: "shop"}},
		"events":                          {{Verb: "list", Resource: "events"}},
		"events?kind=Pod&name=web":        rights.Everything(),
		"namespaces/sh%6Fp/events":        {{Verb: "list", Resource: "events", Namespace: "shop"}},
		"namespaces/shop/events?kind=Pod": rights.Everything(),
		"namespaces/%2e%2e/events":        rights.Everything(),
	} {
		r := httptest.NewRequest(http.MethodGet, weirdev.Path+path, nil)
		cmptest.Equal(t, path, want, Rights(r))
	}
}
