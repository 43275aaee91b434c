package ui_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weir-metrics/weir/api/ui"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/cluster/endlog"
	"github.com/weir-metrics/weir/explain/death"
	"github.com/weir-metrics/weir/test/samplecluster"
)

// The pages of a pod, a node and a workload have what ended, as text, and at most five of it.
func TestDeaths(t *testing.T) {
	var asked []death.Query
	report := death.Report{}
	for i := range 7 {
		report.Deaths = append(report.Deaths, death.Death{
			Namespace: "shop", Pod: fmt.Sprint("dead-", i), Container: "app\x1b[31m", Cause: death.ContainerLimit, Confidence: death.Certain, At: samplecluster.Noon.Add(-time.Minute),
			Message: "killed by the <b>kernel</b>", Gone: i == 1, Before: &death.Before{Message: "memory of container app rose fastest", Fastest: "container app", Usage: endlog.Usage{Memory: []endlog.Trend{{
				Kind: "container", Name: "app", First: endlog.Reading{At: samplecluster.Noon.Add(-4 * time.Minute), Value: 16 << 20},
				Highest: endlog.Reading{At: samplecluster.Noon.Add(-2 * time.Minute), Value: 64 << 20}, Last: endlog.Reading{At: samplecluster.Noon, Value: 48 << 20},
			}}}},
		}, death.Death{Cause: death.Completed, Message: "ended without an error"})
	}
	h := ui.New(ui.Options{Explainer: samplecluster.Failing(t).Explainer, Deaths: func(q death.Query) death.Report { asked = append(asked, q); return report }})
	for query, want := range map[string]struct {
		asked death.Query
		text  []string
	}{
		"?pod=shop/web-1":                   {death.Query{Namespace: "shop", Pod: "web-1"}, []string{"weir explain death shop/web-1"}},
		"?node=n1":                          {death.Query{Node: "n1"}, []string{`href="?pod=shop/dead-0"`, "shop/dead-0/app", "weir explain death -A"}},
		"?workload=shop/StatefulSet/mailer": {death.Query{Namespace: "shop", Workload: cluster.Owner{Kind: "StatefulSet", Name: "mailer"}}, []string{"dead-0/app", "weir explain death -n shop"}},
	} {
		asked = nil
		status, _, body := get(t, h, query)
		if len(asked) != 1 || asked[0] != want.asked {
			t.Errorf("%s: status %d, asks for %+v, want %+v", query, status, asked, want.asked)
		}
		for _, w := range append(want.text, "killed by the &lt;b&gt;kernel&lt;/b&gt;; before, memory of container app rose fastest", `Ended in the last hour <span class="count">7</span>`, "ContainerLimit", "certain",
			"<title>memory of container app rose fastest</title><path d=\"M0 59l60-57l60&#43;19\"/>") {
			if !strings.Contains(body, w) {
				t.Errorf("%s has no %q", query, w)
			}
		}
		if n := strings.Count(body, "killed by the"); n != 5 {
			t.Errorf("%s has %d deaths, want 5", query, n)
		}
		if _, err := text(body); err != nil || strings.ContainsRune(body, '\x1b') || strings.Contains(body, "without an error") || strings.Contains(body, `href="?pod=shop/dead-1"`) {
			t.Errorf("%s is not well formed, has a run without an error, or leads to a pod that is gone: %v", query, err)
		}
	}
	report = death.Report{}
	if _, _, body := get(t, h, "?pod=shop/web-1"); strings.Contains(body, "Ended in") {
		t.Error("a pod in which nothing ended has the section")
	}
}
