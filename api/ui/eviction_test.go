package ui_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/weir-metrics/weir/api/ui"
	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/eviction/evictionreport"
	"github.com/weir-metrics/weir/eviction/reportbuilder"
	"github.com/weir-metrics/weir/test/samplecluster"
)

// guarded returns the page of a cluster with agents: n1 is under pressure, n2 has just started, and
// the agent of n3 does not answer.
func guarded(t testing.TB) *ui.Handler {
	return ui.New(ui.Options{Explainer: samplecluster.Failing(t).Explainer, Eviction: func(_ context.Context, node string) (*evictionreport.EvictionReport, error) {
		switch node {
		case "n1":
			return samplecluster.UnderPressure(t, node), nil
		case "n2":
			return reportbuilder.New(nil, nil, reportbuilder.Options{Node: node, Mode: "observe", Now: samplecluster.Noon}), nil
		case "n3":
			return nil, &weirdev.Problem{Message: "no agent answers on node n3: connection refused", Hint: "Install `components/agent`."}
		case "n4":
			return nil, errors.New("the <b>roof</b> is on fire")
		}
		return nil, &weirdev.Problem{Status: http.StatusNotFound, Message: "weir does not know node " + node, Hint: "Is the name right?"}
	}})
}

// All links of the page lead to pages, or to pods that are gone. Names are shown as text.
func TestEvictionLeads(t *testing.T) {
	h := guarded(t)
	_, _, body := get(t, h, "?node=n1")
	if !strings.Contains(body, `href="?eviction=n1"`) {
		t.Error("the page of a node does not lead to its evictions")
	}
	if _, _, body := get(t, page(samplecluster.Failing(t)), "?node=n1"); strings.Contains(body, "?eviction=") {
		t.Error("where nobody tells of evictions a node's page leads there all the same")
	}
	_, _, body = get(t, h, "?eviction=n1&refresh=off")
	if strings.Contains(body, "<i>\"") || len(body) > 300_000 {
		t.Errorf("%d bytes, with a name that is no text:\n%s", len(body), body)
	}
	for _, part := range strings.Split(body, `href="?`)[1:] {
		link, _, _ := strings.Cut(part, `"`)
		link = "?" + strings.ReplaceAll(link, "&amp;", "&")
		if status, _, _ := get(t, h, link); status != http.StatusOK && !(status == http.StatusNotFound && strings.HasPrefix(link, "?pod=")) {
			t.Errorf("it links to %s: %d", link, status)
		}
	}
}

// If there are no pods, the page says so once and not for each signal.
func TestNoPods(t *testing.T) {
	h := ui.New(ui.Options{Explainer: samplecluster.Failing(t).Explainer, Eviction: func(_ context.Context, node string) (*evictionreport.EvictionReport, error) {
		r := samplecluster.UnderPressure(t, node)
		for i := range r.Signals {
			r.Signals[i].Ranking = &evictionreport.Ranking{Message: "there is no pod to evict", Pods: []evictionreport.RankedPod{}}
		}
		return r, nil
	}})
	_, _, body := get(t, h, "?eviction=n1")
	if n := strings.Count(body, evictionreport.NoPods); n != 1 {
		t.Errorf("got %q %d times, want it once", evictionreport.NoPods, n)
	}
	if strings.Contains(body, "there is no pod to evict") || strings.Contains(body, "<details>") {
		t.Error("a signal tells who is next where there is nobody")
	}
}
