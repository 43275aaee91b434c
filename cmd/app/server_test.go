package app

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-metrics/weir/api/usage"
	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/test/capture"
)

// Two kubelets without a cluster: one answers with a captured payload, the other does not answer.
// The numbers of the first are served, and the second has a reason.
func TestServerReadsKubelets(t *testing.T) {
	payload := capture.Read(t, "01-steady/00/resource.prom")
	taken := newestReading(t, payload)
	answers := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/metrics/resource" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		w.Header().Set("Date", taken.UTC().Format(http.TimeFormat)) // a reading of today's clock would be stale
		w.Write(payload)
	}))
	t.Cleanup(answers.Close)
	hangs := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	t.Cleanup(hangs.Close)

	address := func(s *httptest.Server) string { return strings.TrimPrefix(s.URL, "http://") }
	source := url.Values{
		"scheme": {"http"}, "timeout": {"300ms"}, "resolution": {"1s"},
		"targets": {"n1=" + address(answers) + ",n2=" + address(hangs)},
	}
	w := begin(t, "server", "--listen=127.0.0.1:0", "--source=kubelet:?"+source.Encode(), "--sink=log:?format=json")

	nodes := map[metric.NodeName]usage.Item{}
	until(t, 10*time.Second, "memory of n1 and a reason for n2", func() bool {
		w.readNodes(t, nodes)
		return nodes["n1"].Memory != nil && len(nodes["n2"].Reasons) > 0
	})
	if r := nodes["n2"].Reasons[0]; r.Reason != "NodeTimeout" {
		t.Errorf("n2, which hangs, has reason %s (%s), want NodeTimeout", r.Reason, r.Message)
	}
	if nodes["n1"].CPU != nil {
		t.Errorf("n1 has CPU %+v though its counter never moved on", nodes["n1"].CPU)
	}

	if status, body := w.get(t, "/ui/?node=n1"); status != http.StatusOK || strings.Contains(body, "?eviction=") {
		t.Errorf("the page of n1 = %d, and links to evictions: %v, want 200 without the link, because no agents are asked", status, strings.Contains(body, "?eviction="))
	}
	if status, body := w.get(t, "/ui/?eviction=n1"); status != http.StatusNotFound {
		t.Errorf("the page of the evictions of n1 = %d, want 404, because no agents are asked:\n%s", status, body)
	}
	status, body := w.get(t, weirdev.Path+"containers?node=n1")
	var list usage.List
	if err := json.Unmarshal([]byte(body), &list); status != http.StatusOK || err != nil || len(list.Items) == 0 {
		t.Fatalf("containers of n1 = %d, %v, %d items, want some", status, err, len(list.Items))
	}
	for _, it := range list.Items {
		if it.CPU == nil && len(it.Reasons) == 0 {
			t.Errorf("%s/%s/%s has neither CPU nor a reason", it.Namespace, it.Pod, it.Container)
		}
	}
}

// newestReading returns the newest time of the samples of a payload.
func newestReading(t *testing.T, payload []byte) time.Time {
	t.Helper()
	var newest int64
	for line := range strings.Lines(string(payload)) {
		if fields := strings.Fields(line); len(fields) > 2 && !strings.HasPrefix(line, "#") {
			if at, err := strconv.ParseInt(fields[len(fields)-1], 10, 64); err == nil {
				newest = max(newest, at)
			}
		}
	}
	if newest == 0 {
		t.Fatal("the payload has no times")
	}
	return time.UnixMilli(newest)
}
