package app

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/cadvisor/lib/cache/memory"
	"github.com/google/cadvisor/lib/container"
	"github.com/google/cadvisor/lib/manager"
	"github.com/google/cadvisor/lib/metrics"
	"github.com/google/cadvisor/lib/model"
	"github.com/google/cadvisor/lib/utils/sysfs"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/utils/clock"

	"github.com/weir-metrics/weir/api/usage"
	"github.com/weir-metrics/weir/metric"
)

// asCAdvisor is an environment variable. If it is set, TestAsCAdvisor is a cAdvisor, which writes
// its address to standard output.
const asCAdvisor = "TEST_AS_CADVISOR"

// TestAsCAdvisor is the process that startCAdvisor starts. cAdvisor leaves goroutines behind, so the
// process ends here.
func TestAsCAdvisor(t *testing.T) {
	if os.Getenv(asCAdvisor) == "" {
		t.Skip("only a process of another test runs it")
	}
	if err := serveCAdvisor(); err != nil {
		t.Fatal(err)
	}
	os.Exit(0)
}

// serveCAdvisor runs cAdvisor's manager and collectors on this machine, and serves them at /metrics
// as cAdvisor's own command does, until standard input is closed.
func serveCAdvisor() error {
	every, dynamic := time.Second, false
	read := container.MetricSet{
		container.CpuUsageMetrics: {}, container.MemoryUsageMetrics: {}, container.NetworkUsageMetrics: {}, container.DiskIOMetrics: {},
	}
	m, err := manager.New(memory.New(time.Minute, nil), sysfs.NewRealSysFs(), manager.HousekeepingConfig{Interval: &every, AllowDynamic: &dynamic}, read, []string{"/"}, nil, "", 0)
	if err != nil {
		return err
	}
	if err := m.Start(); err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		metrics.NewPrometheusCollector(m, metrics.DefaultContainerLabels, read, clock.RealClock{}, model.RequestOptions{IdType: model.TypeName, Count: 1, Recursive: true}),
		metrics.NewPrometheusMachineCollector(m, read),
	)
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError}))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go func() { _ = http.Serve(listener, mux) }() // the process ends with it
	fmt.Println(listener.Addr())
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// startCAdvisor starts a cAdvisor and returns its address.
func startCAdvisor(t *testing.T) string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	command := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestAsCAdvisor$")
	command.Env = append(os.Environ(), asCAdvisor+"=true")
	stdin, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	command.Stderr = &log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close()
		if err := command.Wait(); err != nil {
			t.Errorf("cAdvisor: %v\n%s", err, log.String())
		}
		cancel()
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("cAdvisor says nothing: %v", err)
	}
	return strings.TrimSpace(line)
}

// A server reads several cAdvisors that run on their own. Those that do not answer as they should
// have a reason, and do not affect the others.
func TestServerReadsCAdvisors(t *testing.T) {
	real := startCAdvisor(t)
	hangs := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	t.Cleanup(hangs.Close)
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "<html>") }))
	t.Cleanup(other.Close)
	address := func(s *httptest.Server) string { return strings.TrimPrefix(s.URL, "http://") }
	source := url.Values{
		"timeout": {"5s"}, "resolution": {"1s"},
		"targets": {"real=" + real + ",hangs=" + address(hangs) + ",other=" + address(other) + ",refuses=" + nobody},
	}
	w := begin(t, "server", "--listen=127.0.0.1:0", "--source=cadvisor:?"+source.Encode())

	nodes := map[metric.NodeName]usage.Item{}
	until(t, 2*time.Minute, "CPU and memory of the real one and a reason for each other", func() bool {
		w.readNodes(t, nodes)
		return nodes["real"].CPU != nil && nodes["real"].Memory != nil &&
			len(nodes["hangs"].Reasons) > 0 && len(nodes["other"].Reasons) > 0 && len(nodes["refuses"].Reasons) > 0
	})
	for name, want := range map[metric.NodeName]string{"hangs": "NodeTimeout", "other": "NodeBadPayload", "refuses": "NodeUnreachable"} {
		if got := nodes[name].Reasons[0]; got.Reason != want {
			t.Errorf("%s has the reason %s (%s), want %s", name, got.Reason, got.Message, want)
		}
	}
	if got := nodes["real"].Memory.WorkingSetBytes; got < 1<<20 {
		t.Errorf("this machine uses %d bytes", got)
	}
	// It has the memory of each cgroup that this machine has.
	if _, body := w.get(t, "/metrics/cluster"); !strings.Contains(body, `weir_system_memory_working_set_bytes{node="real",cgroup="/`) {
		t.Error("no cgroup of this machine is served")
	}
}
