package importcmd

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/spf13/cobra"

	"github.com/weir-metrics/weir/api/externalmetrics/rules"
	"github.com/weir-metrics/weir/cmd/client/cli"
	"github.com/weir-metrics/weir/test/promtest"
)

// run runs the lines of a transcript.
func run(t *testing.T, lines, prometheus string) string {
	var out bytes.Buffer
	for line := range strings.Lines(lines) {
		root := &cobra.Command{Use: "weir"}
		root.AddCommand(NewCommand())
		words := strings.Fields(strings.ReplaceAll(line, "$PROMETHEUS", prometheus))
		if status := cli.Main(t.Context(), root, words[1:], &out, &out); status != 0 {
			fmt.Fprintf(&out, "exit status %d\n", status)
		}
	}
	return strings.ReplaceAll(out.String(), prometheus, "$PROMETHEUS")
}

// TestImport runs a transcript: the input and output that a user of weir import sees.
func TestImport(t *testing.T) {
	prometheus := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/series" || r.FormValue("start") == "" {
			t.Errorf("asked for %s", r.URL.Path)
		}
		data := `[]`
		if strings.Contains(r.FormValue("match[]"), "http_") {
			data = `[{"__name__":"http_requests_total","namespace":"shop","pod":"web-0","service":"web","path":"/"},
				{"__name__":"http_requests_total","namespace":"shop","pod":"web-1","code":"200"},
				{"__name__":"http_errors_total","namespace":"shop","pod":"web-0"},{"__name__":"http_up","namespace":"shop","pod":"web-0"}]`
		}
		fmt.Fprintf(w, `{"status":"success","data":%s}`, data)
	}))
	defer prometheus.Close()
	defer http.DefaultClient.CloseIdleConnections()
	datadriven.RunTest(t, "testdata/transcript.txt", func(t *testing.T, d *datadriven.TestData) string {
		return run(t, d.Input+"\n", prometheus.URL)
	})
}

// What is written is a file of rules without mistakes.
func TestOutputIsAFileOfRules(t *testing.T) {
	content, err := os.ReadFile(filepath.Join("testdata", "shop.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	config, err := parseConfig("shop.yaml", content)
	if err != nil {
		t.Fatal(err)
	}
	c := converter{file: "shop.yaml"}
	c.convert(config)
	var out, errOut bytes.Buffer
	if err := c.print(&out, &errOut, defaultURL); err == nil {
		t.Error("no error, and not everything is carried over")
	}
	r, err := rules.Parse("rules.yaml", out.Bytes())
	if err != nil {
		t.Fatalf("%v in\n%s", err, out.String())
	}
	if len(r.Metrics) != len(c.rules) || len(r.Metrics) == 0 {
		t.Errorf("%d rules are read, want %d", len(r.Metrics), len(c.rules))
	}
}

// FuzzConfig checks that any file becomes rules without mistakes, or an error.
func FuzzConfig(f *testing.F) {
	for _, name := range []string{"shop.yaml", "broken.yaml", "unknown.yaml", "patterns.yaml"} {
		content, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(content))
	}
	f.Fuzz(func(t *testing.T, content string) {
		config, err := parseConfig("f", []byte(content))
		if err != nil {
			return
		}
		c := converter{file: "f"}
		c.convert(config)
		var out, errOut bytes.Buffer
		err = c.print(&out, &errOut, defaultURL)
		if len(c.rules) == 0 {
			return
		}
		if _, mistakes := rules.Parse("rules.yaml", out.Bytes()); mistakes != nil {
			t.Errorf("%v\nafter %v in\n%s", mistakes, err, out.String())
		}
	})
}

// A real Prometheus lists the series of a pattern.
func TestSeriesOfARealPrometheus(t *testing.T) {
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "http_requests_total{namespace=\"shop\",pod=\"a\"} 1\nhttp_requests_total{namespace=\"shop\",pod=\"b\",code=\"200\"} 1\nother{namespace=\"shop\"} 1\n")
	}))
	defer target.Close()
	_, client := promtest.StartClient(t, t.TempDir(), fmt.Sprintf(
		"global: {scrape_interval: 1s, scrape_timeout: 1s}\nscrape_configs:\n- job_name: shop\n  honor_labels: true\n  static_configs: [{targets: [%q]}]\n", strings.TrimPrefix(target.URL, "http://")))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c := converter{series: func(selector string) ([]map[string]string, error) { return recentSeries(ctx, client, selector) }}
	r := adapterRule{SeriesQuery: `{__name__=~"^http_.*"}`}
	for {
		families, err := c.families(&r)
		if err == nil && len(families) == 1 && families[0].name == "http_requests_total" && families[0].labels["code"] {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("got %+v, %v, want http_requests_total with the label code", families, err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}
