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
	url, client := StartClient(t, dir, "global: {}\n", "--storage.tsdb.retention.time=100y")
	await(t, client, query, at, series)
	return url, client
}

// await waits until query has this number of series at a time; zero means now.
func await(t testing.TB, client *history.Client, query string, at time.Time, series int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		when := at
		if when.IsZero() {
			when = time.Now()
		}
		a, err := client.Query(ctx, query, when)
		if err == nil && len(a.Series) == series {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("Prometheus does not answer %s with %d series in a minute: %v", query, series, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
