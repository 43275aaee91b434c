package ui_test

import (
	"strings"
	"testing"

	"github.com/weir-metrics/weir/api/ui"
	"github.com/weir-metrics/weir/explain/slow"
	"github.com/weir-metrics/weir/test/samplecluster"
)

// The page of a pod has what it waited for, as sentences and as bars whose parts are shares of the time. It asks
// for the names of neighbours in the pod's own namespace only, and a pod that waits for nothing has no section.
func TestSlow(t *testing.T) {
	var asked []slow.Query
	cpu, io := 0.62, 0.004
	answer := slow.Slow{
		Summary: "Pod shop/web-1 waited for <b>CPU</b>\x1b[31m.", Resource: slow.CPU, Cause: slow.OwnLimit, Advice: "Raise limits.cpu: `weir resize`.", NotKnown: []string{"It is not known."},
		Stalls: []slow.Stall{
			{Resource: slow.CPU, Some: &cpu, Parts: []slow.Part{{Cause: slow.OwnLimit, Share: 0.45}, {Cause: slow.Neighbours, Share: 0.167}, {Cause: slow.Nobody, Share: 0.003}}},
			{Resource: slow.Memory}, {Resource: slow.IO, Some: &io},
		},
	}
	h := ui.New(ui.Options{Explainer: samplecluster.Failing(t).Explainer, Slow: func(q slow.Query) (slow.Report, bool) {
		asked = append(asked, q)
		return slow.Report{Pods: []slow.Slow{answer}}, true
	}})
	_, _, body := get(t, h, "?pod=shop/web-1")
	if len(asked) != 1 || asked[0].Namespace != "shop" || asked[0].Pod != "web-1" || !asked[0].MayName("shop") || asked[0].MayName("bank") {
		t.Errorf("asks for %+v, want pod shop/web-1, with the names of its namespace only", asked)
	}
	for _, want := range []string{
		"<h2>Why it is slow</h2>", "waited for &lt;b&gt;CPU&lt;/b&gt;", "<dt>CPU <b>62%</b></dt>", "<title>waited for CPU 62% of the time, OwnLimit 45%, Neighbours 16.7%</title>",
		`<rect class="OwnLimit" x="0%" width="45%" height="100%"/><rect class="Neighbours" x="45%" width="16.7%" height="100%"/></svg>`, `<li class="Neighbours">Neighbours 16.7%</li>`,
		"<code>weir resize</code>", "It is not known.", "<code>weir explain slow shop/web-1</code>",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("the page has no %s", want)
		}
	}
	if _, err := text(body); err != nil || strings.ContainsRune(body, '\x1b') || strings.Contains(body, "disk I/O <b>") {
		t.Errorf("the page is not well formed, or has a wait of less than 0.5%%: %v", err)
	}
	for _, cause := range slow.Causes() {
		if !strings.Contains(body, "."+string(cause)+" { --part") {
			t.Errorf("cause %s has no colour", cause)
		}
	}
	answer.Resource = ""
	if _, _, body := get(t, h, "?pod=shop/web-1"); strings.Contains(body, "Why it is slow") {
		t.Error("a pod that waited for nothing has the section")
	}
}
