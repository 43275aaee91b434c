package promtest

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// Scraped starts a Prometheus that scrapes exposition, and returns its URL after the first scrape: when
// query has a series. A scrape that takes longer than the timeout ends the series, so the timeout is
// longer than a busy machine takes. It skips the test if there is no Prometheus.
func Scraped(t testing.TB, exposition, query string) string {
	t.Helper()
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, exposition) }))
	t.Cleanup(target.Close)
	url, client := StartClient(t, t.TempDir(), fmt.Sprintf("global: {scrape_interval: 5s, scrape_timeout: 5s}\n"+
		"scrape_configs:\n- job_name: exposition\n  honor_labels: true\n  static_configs: [{targets: [%q]}]\n", strings.TrimPrefix(target.URL, "http://")))
	await(t, client, query, time.Time{}, 1)
	return url
}
