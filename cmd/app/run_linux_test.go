package app

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-metrics/weir/api/usage"
	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/cmd/client/cli"
	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/internal/feature"
	"github.com/weir-metrics/weir/metric"
)

// notes collects what a command writes to stderr.
type notes struct {
	mu struct {
		sync.Mutex
		bytes.Buffer
	}
}

func (l *notes) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.Write(p)
}

func (l *notes) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.String()
}

// weir is a command that runs in this process.
type weir struct {
	url    string
	client *http.Client
	stderr notes
}

// begin starts a command that serves. The command runs until the test ends, and must then end
// without an error.
func begin(t *testing.T, args ...string) *weir {
	t.Helper()
	w := &weir{client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}}
	ctx, cancel := context.WithCancel(context.Background())
	stdout, out := io.Pipe()
	status := make(chan int, 1)
	go func() {
		status <- cli.Main(ctx, NewCommand(nothing, nobody), args, out, &w.stderr)
		out.Close()
	}()
	t.Cleanup(func() {
		cancel()
		select {
		case s := <-status:
			if s != 0 {
				t.Errorf("weir %s ended with status %d:\n%s", strings.Join(args, " "), s, &w.stderr)
			}
		case <-time.After(feature.Grace + 5*time.Second):
			t.Errorf("weir %s has not ended %v after it was told to:\n%s", strings.Join(args, " "), feature.Grace+5*time.Second, &w.stderr)
		}
	})
	lines := bufio.NewScanner(stdout)
	if !lines.Scan() {
		t.Fatalf("weir %s said nothing:\n%s", strings.Join(args, " "), &w.stderr)
	}
	w.url = strings.TrimPrefix(lines.Text(), "weir serves on ")
	go io.Copy(io.Discard, stdout)
	return w
}

func (w *weir) get(t *testing.T, path string) (status int, body string) {
	t.Helper()
	resp, err := w.client.Get(w.url + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("GET %s: %v", path, err)
	}
	return resp.StatusCode, string(b)
}

// explain runs weir explain and parses its output.
func (w *weir) explain(t *testing.T, words ...string) (got struct {
	Kind     string
	Findings []explain.Finding
	Causes   []explain.MissingCause
	Reads    []explain.Read
}) {
	t.Helper()
	var out bytes.Buffer
	args := append([]string{"explain", "-o", "json", "--server=" + w.url}, words...)
	if status := cli.Main(t.Context(), NewCommand(nothing, nobody), args, &out, &out); status != 0 {
		t.Fatalf("weir %s ended with status %d: %s", strings.Join(args, " "), status, &out)
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatalf("weir %s: %v\n%s", strings.Join(args, " "), err, &out)
	}
	return got
}

// readNodes adds the nodes that w reports to nodes. It adds nothing before the first read.
func (w *weir) readNodes(t *testing.T, nodes map[metric.NodeName]usage.Item) {
	t.Helper()
	status, body := w.get(t, weirdev.Path+"nodes")
	if status == http.StatusServiceUnavailable {
		return
	}
	var list usage.List
	if err := json.Unmarshal([]byte(body), &list); err != nil {
		t.Fatalf("read nodes: %v\n%s", err, body)
	}
	for _, it := range list.Items {
		nodes[it.Node] = it
	}
}

// until calls ok every tenth of a second until it returns true. what describes the condition.
func until(t *testing.T, limit time.Duration, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-ctx.Done():
			t.Fatalf("not within %v: %s", limit, what)
		case <-tick.C:
		}
	}
}

// From the start to a rate of this machine, and a clean end. A rate needs a window of ten seconds,
// so the test takes that long.
func TestRunMeasuresThisMachine(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 12s")
	}
	w := begin(t, "run", "--listen=127.0.0.1:0", "--metric-resolution=1s", "--source=host:?node=mill", "--pprof")

	if status, body := w.get(t, "/livez"); status != http.StatusOK {
		t.Errorf("/livez = %d %s", status, body)
	}
	until(t, 10*time.Second, "ready", func() bool {
		status, body := w.get(t, "/readyz")
		if status != http.StatusOK && !strings.Contains(body, "waiting for") {
			t.Errorf("/readyz = %d and does not say what is waited for:\n%s", status, body)
		}
		return status == http.StatusOK
	})

	var list usage.List
	until(t, 20*time.Second, "a rate of the node", func() bool {
		status, body := w.get(t, weirdev.Path+"nodes")
		if status != http.StatusOK {
			t.Fatalf("usage of nodes = %d %s", status, body)
		}
		list = usage.List{}
		if err := json.Unmarshal([]byte(body), &list); err != nil {
			t.Fatalf("read nodes: %v\n%s", err, body)
		}
		if len(list.Items) != 1 || list.Items[0].Node != "mill" {
			t.Fatalf("got nodes %+v, want mill alone", list.Items)
		}
		if list.Items[0].CPU == nil && len(list.Items[0].Reasons) == 0 {
			t.Errorf("the node has neither CPU nor a reason: %s", body)
		}
		return list.Items[0].CPU != nil
	})
	node := list.Items[0]
	if most := int64(runtime.NumCPU()) * 1_100_000_000; node.CPU.Nanocores <= 0 || node.CPU.Nanocores > most {
		t.Errorf("the node uses %d nanocores, want more than 0 and at most %d", node.CPU.Nanocores, most)
	}
	if node.CPU.WindowSeconds < 9 || node.CPU.WindowSeconds > 15 {
		t.Errorf("the window is %vs, want about 10s", node.CPU.WindowSeconds)
	}
	if node.Memory == nil || node.Memory.WorkingSetBytes < 1<<20 {
		t.Errorf("the node's memory is %+v, want more than 1 MiB", node.Memory)
	}

	status, body := w.get(t, "/metrics")
	for _, wanted := range []string{
		"go_goroutines ", `weir_build_info\{.*mode="run"`, "weir_memory_entities ", "weir_memory_history_bytes ", "weir_memory_dropped_samples_total 0\n",
	} {
		if status != http.StatusOK || !regexp.MustCompile("\n"+wanted).MatchString(body) {
			t.Errorf("/metrics = %d and lacks %q", status, wanted)
		}
	}
	if status, body := w.get(t, "/metrics/cluster"); status != http.StatusOK || !strings.Contains(body, `weir_node_cpu_usage_cores{node="mill"`) {
		t.Errorf("/metrics/cluster = %d and lacks the node's CPU:\n%.2000s", status, body)
	}
	for _, path := range []string{"/", "/healthz", "/debug/pprof/", weirdev.Path + "cgroups", weirdev.Path + "pods"} {
		if status, body := w.get(t, path); status != http.StatusOK {
			t.Errorf("%s = %d %s", path, status, body)
		}
	}

	var out bytes.Buffer
	if status := cli.Main(t.Context(), NewCommand(nothing, nobody), []string{"top", "nodes", "--server=" + w.url, "--no-headers"}, &out, &out); status != 0 {
		t.Errorf("weir top nodes ended with status %d: %s", status, &out)
	}
	if fields := strings.Fields(out.String()); len(fields) != 5 || fields[0] != "mill" || !strings.HasSuffix(fields[1], "m") {
		t.Errorf("weir top nodes printed %q, want mill and its four numbers", out.String())
	}
	if got := w.explain(t, "node", "mill"); got.Kind != "NodeExplanation" || len(got.Findings) < 2 || !got.Findings[0].Served || len(got.Reads) != 1 || got.Reads[0].LastRead.IsZero() {
		t.Errorf("weir explain node mill: %+v, want its CPU and how it is read", got)
	}
	if got := w.explain(t, "missing"); got.Kind != "MissingReport" {
		t.Errorf("weir explain missing: %+v", got)
	}
}

func TestWhatIsNotServed(t *testing.T) {
	w := begin(t, "run", "--listen=127.0.0.1:0")
	if status, _ := w.get(t, "/debug/pprof/"); status != http.StatusNotFound {
		t.Errorf("/debug/pprof/ = %d, want 404", status)
	}
	if status, body := w.get(t, "/readyz"); status != http.StatusServiceUnavailable || !strings.Contains(body, "not ready") {
		t.Errorf("/readyz at once = %d %s, want 503", status, body)
	}
	for _, path := range []string{"recommendations", "namespaces/shop/horizontalpodautoscalers/web/explanation"} {
		if status, body := w.get(t, weirdev.Path+path); status != http.StatusNotFound || !strings.Contains(body, "does not watch a whole cluster") {
			t.Errorf("%s without a cluster = %d %s, want 404 that says so", path, status, body)
		}
	}
	if status, body := w.get(t, weirdev.Path+"nodes"); status == http.StatusServiceUnavailable && !strings.Contains(body, "/readyz") {
		t.Errorf("nodes before the first read = %d %s, want a hint to /readyz", status, body)
	}
}
