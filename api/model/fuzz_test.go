package model

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/weir-metrics/weir/api/rights"
	"github.com/weir-metrics/weir/metric"
)

// FuzzRequest asks for any path and query. The answer must always be JSON or a sentence, with valid
// headers, and must show no other namespace than the rights allow.
func FuzzRequest(f *testing.F) {
	for _, s := range []string{
		"/api/v1/model/", "/api/v1/model/metrics/cpu/usage_rate", "/api/v1/model/nodes/n1/freecontainers/%2Fsystem.slice%2Fsshd.service/metrics/uptime",
		"/api/v1/model/namespaces/shop/pods/web-1/containers/app/metrics/memory/working_set",
		"/api/v1/model/namespaces/shop/pod-list/web-1,nobody,/metrics/cpu-usage", "/api/v1/model/namespaces/bank/../shop/pods/",
		"/api/v1/model/namespaces/shop%2Fbank/pods/", "/api/v1/model/namespaces/%00/pods/\xff/metrics/", "/api/v1/metric-export/",
		"/apis/metrics/v1alpha1/namespaces/bank/pods/", "/apis/metrics/v1alpha1/pods", "/api/v1/historical/",
	} {
		f.Add(s, "start=2026-01-02T12:00:00Z&end=2026-01-02T12:00:45Z")
	}
	f.Add("/api/v1/model/namespaces/shop/pods/web-1/metrics/filesystem/usage", "labels=resource_id:Volume:data,x:y&start=9999-01-01T00:00:00Z")
	f.Add("/apis/metrics/v1alpha1/nodes", "labelSelector=zone+in+(a,b),!x")
	v, facts := village(f)
	h := handlerOf(v, facts)
	f.Fuzz(func(t *testing.T, path, query string) {
		u, err := url.ParseRequestURI(path)
		if err != nil || u.Path == "" || u.Host != "" || strings.ContainsAny(path, "?#") {
			return
		}
		u.RawQuery = query
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://weir/", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.URL.Path, r.URL.RawPath, r.URL.RawQuery = u.Path, u.RawPath, query
		needs := Rights(r)
		resp := record(h, r)
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range resp.Header.Values("Warning") {
			if !utf8.ValidString(text) || strings.ContainsAny(text, "\r\n\x00") || len(text) > maxWarning+64 {
				t.Fatalf("the warning cannot be sent: %q", text)
			}
		}
		switch {
		case resp.StatusCode == http.StatusOK:
			if !json.Valid(body) {
				t.Fatalf("the answer is no JSON: %.200q", body)
			}
		case resp.StatusCode != http.StatusNotFound && resp.StatusCode != http.StatusBadRequest:
			t.Fatalf("got %s, want 200, 400 or 404", resp.Status)
		case len(body) < 10:
			t.Fatalf("%s without a reason: %q", resp.Status, body)
		}
		// Only the vault of the village uses 280 millicores and MiB, and only it is called vault.
		if !slices.Contains(needs, rights.ListPods("")) && !slices.Contains(needs, rights.ListPods("bank")) && resp.StatusCode == http.StatusOK &&
			(strings.Contains(string(body), "vault") || strings.Contains(string(body), "293601280")) {
			t.Fatalf("shows namespace bank, though it needs only %v: %s", needs, body)
		}
	})
}

// FuzzTimes checks that a time that is accepted is the time that was written.
func FuzzTimes(f *testing.F) {
	for _, s := range []string{"2026-01-02T12:00:00Z", "2026-01-02T12:00:00.5+01:00", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "2262-04-11T23:47:16Z", "x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		q, p := parseQuery("start="+url.QueryEscape(s), now)
		if p != nil {
			if p.status != http.StatusBadRequest || !strings.Contains(p.text, "start=2026-01-02T15:04:05Z") {
				t.Fatalf("start=%q: got %d %q, want 400 with an example", s, p.status, p.text)
			}
			return
		}
		if q.from < 0 || q.to != now.UnixNano() {
			t.Fatalf("start=%q: got from %d to %d", s, q.from, q.to)
		}
	})
}

// FuzzMetricNames checks that an accepted name is the metric's own name or its deprecated one.
func FuzzMetricNames(f *testing.F) {
	f.Add("cpu/usage_rate")
	f.Add("cpu-usage")
	f.Add("cpu_usage_cores")
	f.Fuzz(func(t *testing.T, name string) {
		id, ok := metricOf(name)
		if ok && id.String() != name && oldNames[name] != id {
			t.Fatalf("%q is taken for %v", name, id)
		}
		if ok && id >= metric.NumMetrics {
			t.Fatalf("%q is no metric of the catalogue: %d", name, id)
		}
	})
}
