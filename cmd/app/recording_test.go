package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/weir-metrics/weir/api/clustermetrics"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/cmd/client/cli"
	"github.com/weir-metrics/weir/cmd/client/recordingcmd"
	"github.com/weir-metrics/weir/cmd/flags/stageflag"
	"github.com/weir-metrics/weir/internal/recording"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/metric/series"
	"github.com/weir-metrics/weir/sinks/memory"
	"github.com/weir-metrics/weir/sources/kubelet/payload"
	"github.com/weir-metrics/weir/sources/kubelet/resource"
	"github.com/weir-metrics/weir/test/cmptest"
	"github.com/weir-metrics/weir/test/simulator"
)

// recordedRun returns a recording of two simulated nodes over five minutes. The second node is not
// read in the last minute. At the end the first one is gone, too, as older weirs wrote when they
// ended.
func recordedRun(t *testing.T) string {
	t.Helper()
	start := time.Unix(1_800_000_000, 0)
	restart, err := simulator.Parse("restart pod=* at=100s")
	if err != nil {
		t.Fatal(err)
	}
	fleet, err := simulator.New(simulator.Options{Nodes: 2, Pods: 3, Start: start, Faults: []simulator.Fault{restart}})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "run.weirrec")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w, err := recording.NewWriter(f, recording.Options{Begin: start, By: "weir test"})
	if err != nil {
		t.Fatal(err)
	}
	facts := (*cluster.Facts)(nil).With(cluster.FactsChange{Synced: true, At: start})
	parser := resource.New()
	for at := start; at.Before(start.Add(5 * time.Minute)); at = at.Add(15 * time.Second) {
		for i, n := range fleet.Nodes() {
			if i == 1 && at.Sub(start) > 4*time.Minute {
				continue
			}
			b := &metric.Batch{Source: "kubelet:resource", Node: metric.NodeName(n.Name), Began: at, Ended: at, Interval: 15 * time.Second, Resolution: resource.Clock}
			if err := parser.Parse(fleet.Append(nil, n, simulator.Resource, at), payload.Request{Node: b.Node, Received: at.UnixNano()}, b); err != nil {
				t.Fatal(err)
			}
			if err := w.Round(b, facts, at); err != nil {
				t.Fatal(err)
			}
		}
		if at.Sub(start) == 4*time.Minute {
			if err := w.Gone("kubelet:resource", metric.NodeName(fleet.Nodes()[1].Name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := errors.Join(w.Gone("kubelet:resource", metric.NodeName(fleet.Nodes()[0].Name)), w.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

// exposed returns the text of /metrics/cluster with timestamps.
func exposed(s *memory.Snapshot) string {
	answer := httptest.NewRecorder()
	clustermetrics.New(func() clustermetrics.MetricsReader { return s }, clustermetrics.Options{Timestamps: true, Filter: series.Filter{Profile: series.All}}).ServeHTTP(answer, httptest.NewRequest("GET", "/metrics/cluster", nil))
	return answer.Body.String()
}

// A weir that plays a recording has the same results as recordingcmd.Play, and uses the recorded
// time and facts.
func TestServerAndPlayAgree(t *testing.T) {
	path := recordedRun(t)
	rounds, want := 0, ""
	var last time.Time
	if err := recordingcmd.Play(t.Context(), path, nil, pipeline, func(f *recording.Frame, s *memory.Snapshot) error {
		want = exposed(s)
		if f.Kind != recording.Round {
			return nil
		}
		if !f.Facts.Synced {
			t.Errorf("round %d has no facts", rounds)
		}
		rounds++
		last = f.Now
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if rounds != 37 || !strings.Contains(want, "weir_container_cpu_usage_cores") {
		t.Fatalf("%d rounds, want 37 with rates in the end:\n%s", rounds, want)
	}
	c := newConfig(time.Second, "recording")
	c.plan.Listen, c.plan.MaxReads = "127.0.0.1:0", 1
	c.sources.Stages = []stageflag.Stage{{Name: "recording", Config: path, Options: map[string][]string{"speed": {"max"}}}}
	p, err := c.compile("")
	if err != nil {
		t.Fatal(err)
	}
	d, err := open(t.Context(), p, io.Discard, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- d.run(ctx) }()
	got := ""
	for got != want && ctx.Err() == nil {
		got = fetch(ctx, d.served.localURL+"/metrics/cluster?timestamps=true&profile=all")
	}
	cmptest.Equal(t, "what the server exposes", want, got)
	if !d.Now().Equal(last) || !d.Facts().Synced {
		t.Errorf("the server's time is %v, want %v, and its facts those recorded", d.Now(), last)
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// fetch returns the answer at a URL, or "" if there is none yet.
func fetch(ctx context.Context, url string) string {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err.Error()
	}
	transport := &http.Transport{DisableKeepAlives: true}
	answer, err := transport.RoundTrip(request)
	if err != nil {
		return err.Error()
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return err.Error()
	}
	return string(body)
}

// The commands about recordings, as a user sees them.
func TestRecordingCommands(t *testing.T) {
	path := recordedRun(t)
	body, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(path)
	for name, content := range map[string][]byte{"cut.weirrec": body[:len(body)-1], "diary": []byte("dear diary"), "bad.weirrec": append(bytes.Clone(body), make([]byte, 64)...)} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	redact := func(line string) string {
		var out bytes.Buffer
		status := cli.Main(t.Context(), NewCommand(nothing, nobody), strings.Fields(strings.ReplaceAll(line, "$DIR", dir)), &out, &out)
		return strings.ReplaceAll(out.String(), dir, "$DIR") + fmt.Sprintf("exit status %d\n", status)
	}
	for _, c := range []struct{ line, want string }{
		{"recording cut $DIR/run.weirrec --from=1m --to=2m -o $DIR/part", "8 rounds written to $DIR/part\nexit status 0\n"},
		{"recording cut $DIR/run.weirrec -o $DIR/part", "file exists"},
		{"recording cut $DIR/run.weirrec --from=7d -o $DIR/none", "cut $DIR/run.weirrec: no round in that time"},
		{"recording info $DIR/none", "no such file"},
		{"recording cut $DIR/bad.weirrec -o $DIR/saved", "everything before that byte is whole\n37 rounds written to $DIR/saved\nexit status 0\n"},
		{"recording cut $DIR/run.weirrec", "the part needs a file of its own: add -o FILE"},
		{"recording cut $DIR/run.weirrec --from=noon -o $DIR/x", `--from cannot be "noon": write 2026-11-02T15:04:05Z, or a duration from the beginning such as 90m`},
		{"recording info $DIR/part", "rounds       8, 0 of them failed, 0 with a cross-check\n"},
		{"recording info $DIR/part", "from         2027-01-15T08:01:00Z\nto           2027-01-15T08:01:45Z (45s)\n"},
		{"recording info $DIR/run.weirrec", "rounds       37, 0 of them failed, 0 with a cross-check\nfacts        1 changes\n"},
		{"recording info $DIR/cut.weirrec", "no: the recording ends within a block after byte"},
		{"recording info $DIR/diary", "read $DIR/diary: this is not a recording: it does not begin with the bytes of one"},
		{"recording info", "0 files: name one recording"},
		{"server --listen=127.0.0.1:0 --source=recording:$DIR/none", "no such file"},
		{"server --listen=127.0.0.1:0 --source=recording:$DIR/run.weirrec --source=host", "a recording cannot be combined with other sources"},
		{"server --listen=127.0.0.1:0 --source=recording:$DIR/run.weirrec --kubeconfig=x", "a recording already contains the state of its cluster"},
		{"run --listen=127.0.0.1:0 --source=recording:$DIR/run.weirrec --sink=recording:$DIR/run.weirrec", "a recording cannot be recorded into itself"},
	} {
		if got := redact(c.line); !strings.Contains(got, c.want) {
			t.Errorf("weir %s\ngot:\n%s\nwant in it:\n%s", c.line, got, c.want)
		}
	}
}
