package ui_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weir-metrics/weir/api/ui"
	"github.com/weir-metrics/weir/cluster/eventlog"
	"github.com/weir-metrics/weir/test/samplecluster"
)

// The page of a pod and of a node leads to its Events, and shows their text as text.
func TestEvents(t *testing.T) {
	at := samplecluster.Noon.Add(-time.Minute)
	h := ui.New(ui.Options{Explainer: samplecluster.Failing(t).Explainer, Events: func(o eventlog.Object) []eventlog.Event {
		if o != (eventlog.Object{Kind: "Pod", Namespace: "shop", Name: "web-1"}) {
			return nil
		}
		return []eventlog.Event{
			{Object: o, Type: "Warning", Reason: "BackOff", Part: "app", Source: "kubelet", Message: "<b>Back-off</b> restarting\x1b", Count: 7, First: at, Last: at},
			{Object: o, Type: "Normal", Reason: "Scheduled", Message: "assigned", Count: 1, First: at, Last: at},
		}
	}})
	for query, link := range map[string]string{"?pod=shop/web-1": "?events=Pod/shop/web-1", "?node=n1": "?events=Node/default/n1"} {
		if _, _, body := get(t, h, query); !strings.Contains(body, `href="`+link+`"`) {
			t.Errorf("%s does not lead to %s", query, link)
		}
		if _, _, body := get(t, page(samplecluster.Failing(t)), query); strings.Contains(body, "events=") {
			t.Errorf("%s leads to Events where none are kept", query)
		}
	}
	status, _, body := get(t, h, "?events=Pod/shop/web-1")
	for _, want := range []string{"BackOff", "&lt;b&gt;Back-off&lt;/b&gt; restarting", "kubelet, app", ">7<", "Scheduled"} {
		if !strings.Contains(body, want) {
			t.Errorf("status %d: the page has no %q", status, want)
		}
	}
	if _, err := text(body); err != nil || strings.ContainsRune(body, '\x1b') || strings.Index(body, "BackOff") > strings.Index(body, "Scheduled") {
		t.Errorf("the page is not well formed, or not in order: %v", err)
	}
	if _, _, body := get(t, h, "?events=Node/default/n1"); !strings.Contains(body, "weir has no Event on it") {
		t.Error("an object without Events has no sentence that says so")
	}
	unread := ui.New(ui.Options{Explainer: samplecluster.Failing(t).Explainer, Events: func(eventlog.Object) []eventlog.Event { return nil }, EventsUnread: func() string { return "weir has no right." }})
	if _, _, body := get(t, unread, "?events=Node/default/n1"); !strings.Contains(body, "weir has no right.") || strings.Contains(body, "weir has no Event on it") {
		t.Error("where Events cannot be read, the page does not say why")
	}
	if status, _, _ := get(t, page(samplecluster.Failing(t)), "?events=Pod/shop/web-1"); status != http.StatusNotFound {
		t.Errorf("a weir that keeps no Events answers %d", status)
	}
}
