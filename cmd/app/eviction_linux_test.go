package app

import (
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"go.uber.org/zap"

	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/eviction"
	"github.com/weir-metrics/weir/eviction/agent"
	"github.com/weir-metrics/weir/eviction/evictionreport"
	"github.com/weir-metrics/weir/eviction/execute"
	"github.com/weir-metrics/weir/sources/host"
	"github.com/weir-metrics/weir/test/background"
	"github.com/weir-metrics/weir/test/cmptest"
)

func compileAgent(t *testing.T, env map[string]string, args ...string) (*plan, error) {
	t.Helper()
	getenv := func(name string) string { return env[name] }
	cmd := newAgent(getenv)
	a := newAgentFlags()
	cmd.ResetFlags()
	a.addTo(cmd)
	if err := cmd.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	return a.compile(env["KUBERNETES_SERVICE_HOST"] != "", getenv)
}

func TestEvictionPlan(t *testing.T) {
	p, err := compileAgent(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := &agent.Plan{Mode: execute.Observe, Events: true, Settings: eviction.Settings{TransitionPeriod: 5 * time.Minute}, Kubelet: agent.KubeletAddress{URL: "https://127.0.0.1:10250"}}
	cmptest.Equal(t, "without flags", want, p.features.guard.Plan())
	if p.Secure != nil || p.Listen != "127.0.0.1:8087" {
		t.Errorf("without a cluster: secured %v, listening on %q", p.Secure != nil, p.Listen)
	}

	root := t.TempDir()
	pod := map[string]string{"KUBERNETES_SERVICE_HOST": "192.0.2.1", "NODE_NAME": "n1", "POD_UID": "u1", "POD_NAMESPACE": "weir-agents", "HOST_IP": "2001:db8::1"}
	p, err = compileAgent(t, pod, "--in-cluster", "--eviction=kill", "--eviction-hard=memory.available<200Mi,nodefs.available<12%",
		"--eviction-soft=memory.available<1Gi", "--eviction-soft-grace-period=memory.available=90s", "--eviction-minimum-reclaim=memory.available=50Mi",
		"--eviction-pressure=memory.pressure.some.avg10>20 for 30s", "--eviction-max-pod-grace-period=60", "--eviction-reclaim=unix:///run/c.sock",
		"--kubelet-root="+root)
	if err != nil {
		t.Fatal(err)
	}
	var thresholds []string
	for _, th := range p.features.guard.Plan().Thresholds {
		thresholds = append(thresholds, th.String())
	}
	wantThresholds := []string{
		"memory.available<200Mi reclaim 50Mi", "nodefs.available<12%", "memory.available<1Gi for 1m30s reclaim 50Mi", "memory.pressure.some.avg10>20 for 30s",
	}
	cmptest.Equal(t, "thresholds", wantThresholds, thresholds)
	e := p.features.guard.Plan()
	if e.Mode != "kill" || e.Self != "u1" || e.MaxPodGraceSeconds != 60 || e.Reclaim != "/run/c.sock" || e.Kubelet.URL != "https://[2001:db8::1]:10250" {
		t.Errorf("got %+v", e)
	}
	if p.Cluster.Node != "n1" || p.Host.Node != "n1" || p.Host.KubeletRoot != root || p.Secure == nil || p.Secure.SecureServing.BindPort != 10290 {
		t.Errorf("node %q of the cluster, %q of the host, at %q, secured %v; want n1, n1, %q and a secured port",
			p.Cluster.Node, p.Host.Node, p.Host.KubeletRoot, p.Secure != nil, root)
	}

	if e.Namespace != "weir-agents" || p.Listen != "" {
		t.Errorf("namespace %q, and a local server on %q; want weir-agents, and none", e.Namespace, p.Listen)
	}
	if p, err = compileAgent(t, pod, "--in-cluster", "--listen=127.0.0.1:8087"); err != nil || p.Listen != "127.0.0.1:8087" {
		t.Errorf("with --listen: %v, want a local server", err)
	}
	delete(pod, "POD_NAMESPACE")
	if _, err = compileAgent(t, pod, "--in-cluster", "--eviction=kill", "--eviction-hard=memory.available<200Mi"); err == nil || !strings.Contains(err.Error(), "the namespace of its own pod") {
		t.Errorf("in a pod that does not know its namespace: %v, want that it needs it", err)
	}
	delete(pod, "POD_UID")
	if _, err = compileAgent(t, pod, "--in-cluster", "--eviction=kill", "--eviction-hard=memory.available<200Mi"); err == nil || !strings.Contains(err.Error(), "the UID of its own pod") {
		t.Errorf("in a pod that does not know its UID: %v, want that it needs it", err)
	}
	if p, err = compileAgent(t, pod, "--in-cluster"); err != nil || p.features.guard.Plan() == nil {
		t.Errorf("one that observes: %v, want that it need not know", err)
	}
	if p, err = compileAgent(t, pod, "--in-cluster", "--eviction=off"); err != nil || p.features.guard.Plan() != nil {
		t.Errorf("off: %v, %v; want nothing to decide", p.features.guard.Plan(), err)
	}
}

// TestRunObserves runs weir on this machine without a cluster.
func TestRunObserves(t *testing.T) {
	o, err := host.ParseOptions("", nil)
	if err != nil {
		t.Fatal(err)
	}
	o.Node = "here"
	c := newConfig(runResolution, "host")
	c.addFlags(pflag.NewFlagSet("", pflag.ContinueOnError))
	p, err := c.compile("host")
	if err != nil {
		t.Fatal(err)
	}
	p.Host.Options, p.Listen = o, "127.0.0.1:0"
	p.features.guard = agent.NewObserver()
	d, err := open(t.Context(), p, os.Stderr, zap.NewNop())
	if err != nil {
		t.Skipf("this machine cannot be read: %v", err)
	}
	background.Run(t, d.run)
	var answer evictionreport.EvictionReport
	for deadline := time.Now().Add(10 * time.Second); answer.At.IsZero() || len(answer.Signals) == 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("no round after 10s: %+v", answer)
		}
		response, err := http.Get(d.served.localURL + weirdev.Path + "nodes/here/eviction")
		if err != nil {
			t.Fatal(err)
		}
		err = json.NewDecoder(response.Body).Decode(&answer)
		response.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
	}
	http.DefaultClient.CloseIdleConnections()
	if answer.Node != "here" || answer.Mode != "observe" {
		t.Errorf("node %q in mode %q, want here, observe", answer.Node, answer.Mode)
	}
}

// TestAgentStartsWithoutTheAPIServer runs an agent while the API server does not answer: it
// measures, and says what it does not know.
func TestAgentStartsWithoutTheAPIServer(t *testing.T) {
	api := httptest.NewTLSServer(http.NotFoundHandler())
	config := kubeconfig(t, api, "secret")
	api.Close()
	local, listener := free(t), free(t)
	_, port, err := net.SplitHostPort(listener)
	if err != nil {
		t.Fatal(err)
	}
	// The agent is a separate process, because the library does not end what it starts to
	// authenticate callers.
	process := exec.CommandContext(t.Context(), os.Args[0])
	process.Env = append(os.Environ(), asWeir+"=agent --node-name=n1 --kubeconfig="+config+" --kubelet-url=https://"+nobody+
		" --bind-address=127.0.0.1 --secure-port="+port+" --listen="+local)
	var out notes
	process.Stdout, process.Stderr = &out, &out
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := errors.Join(process.Process.Signal(syscall.SIGTERM), process.Wait()); err != nil {
			t.Errorf("ended with %v:\n%s", err, out.String())
		}
	}()
	w := &weir{url: "http://" + local, client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	until(t, 30*time.Second, "it listens", func() bool {
		conn, err := net.Dial("tcp", local)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	until(t, 30*time.Second, "it tells what it does not know", func() bool {
		status, body := w.get(t, weirdev.Path+"nodes/n1/eviction")
		return status == http.StatusOK && strings.Contains(body, "neither the API server nor the kubelet has listed the pods of this node yet")
	})
	until(t, 30*time.Second, "it measures", func() bool {
		status, body := w.get(t, "/metrics/resource")
		return status == http.StatusOK && strings.Contains(body, "\nnode_cpu_usage_seconds_total ")
	})
}
