package promtest

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/weir-metrics/weir/internal/history"
)

// Filled starts a Prometheus with the samples that exposition writes in the
// format OpenMetrics. It returns a client when query has this number of series
// at that time. It skips the test if there is no promtool.
func Filled(t testing.TB, exposition func(io.Writer), query string, at time.Time, series int) *history.Client {
	t.Helper()
	_, client := FilledURL(t, exposition, query, at, series)
	return client
}

// FilledURL is like Filled, and also returns the URL of the Prometheus.
func FilledURL(t testing.TB, exposition func(io.Writer), query string, at time.Time, series int) (string, *history.Client) {
	t.Helper()
	if _, err := exec.LookPath("promtool"); err != nil {
		t.Skip("no promtool in $PATH: apt-get install prometheus")
	}
	dir := t.TempDir()
	said, err := os.Create(filepath.Join(dir, "said"))
	if err != nil {
		t.Fatal(err)
	}
	defer said.Close()
	w := bufio.NewWriter(said)
	exposition(w)
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "promtool", "tsdb", "create-blocks-from", "openmetrics", said.Name(), filepath.Join(dir, "data")).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	url, log := Start(t, dir, "global: {}\n", "--storage.tsdb.retention.time=100y")
	client, err := history.New(history.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		if a, err := client.Query(ctx, query, at); err == nil && len(a.Series) == series {
			return url, client
		}
		select {
		case <-ctx.Done():
			t.Fatalf("Prometheus does not answer in a minute:\n%s", log())
		case <-time.After(50 * time.Millisecond):
		}
	}
}
