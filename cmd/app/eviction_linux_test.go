package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/cluster/informer"
	"github.com/weir-metrics/weir/cmd/client/cli"
	"github.com/weir-metrics/weir/eviction"
	"github.com/weir-metrics/weir/eviction/evictionreport"
	"github.com/weir-metrics/weir/eviction/execute"
	"github.com/weir-metrics/weir/sources/host"
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
	want := &evictionPlan{Mode: execute.Observe, Events: true, Settings: eviction.Settings{TransitionPeriod: 5 * time.Minute}, Kubelet: kubeletAddress{URL: "https://127.0.0.1:10250"}}
	if diff := cmp.Diff(want, p.Eviction); diff != "" {
		t.Errorf("without flags (-want +got):\n%s", diff)
	}
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
	for _, th := range p.Eviction.Thresholds {
		thresholds = append(thresholds, th.String())
	}
	wantThresholds := []string{
		"memory.available<200Mi reclaim 50Mi", "nodefs.available<12%", "memory.available<1Gi for 1m30s reclaim 50Mi", "memory.pressure.some.avg10>20 for 30s",
	}
	if diff := cmp.Diff(wantThresholds, thresholds); diff != "" {
		t.Errorf("thresholds (-want +got):\n%s", diff)
	}
	e := p.Eviction
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
	if p, err = compileAgent(t, pod, "--in-cluster"); err != nil || p.Eviction == nil {
		t.Errorf("one that observes: %v, want that it need not know", err)
	}
	if p, err = compileAgent(t, pod, "--in-cluster", "--eviction=off"); err != nil || p.Eviction != nil {
		t.Errorf("off: %v, %v; want nothing to decide", p.Eviction, err)
	}
}

// machineOf is a machine with known memory and nothing else.
func machineOf(available, used uint64) *machine {
	return &machine{
		read: func(context.Context) (*stats.Summary, error) {
			return &stats.Summary{Node: stats.NodeStats{Memory: &stats.MemoryStats{AvailableBytes: &available, WorkingSetBytes: &used}}}, nil
		},
		layout:     func(context.Context) (bool, bool, error) { return false, false, nil },
		memoryLeft: func() *eviction.MemoryLeft { return nil },
	}
}

// TestThresholdsOfTheKubelet asks a kubelet for its thresholds. An agent without thresholds uses
// them. An agent that acts gets a warning if its thresholds conflict with them.
func TestThresholdsOfTheKubelet(t *testing.T) {
	thief := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("a kubelet sent the agent elsewhere, with %q", r.Header.Get("Authorization"))
	}))
	defer thief.Close()
	status := http.StatusOK
	kubelet := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/configz" || r.Header.Get("Authorization") != "Bearer s3cret" {
			t.Errorf("asked %s by %q", r.URL.Path, r.Header.Get("Authorization"))
		}
		if status == http.StatusFound {
			w.Header().Set("Location", thief.URL)
		}
		w.WriteHeader(status)
		fmt.Fprint(w, `{"kubeletconfig":{"evictionHard":{"memory.available":"300Mi"},"enforceNodeAllocatable":["pods"],
"featureGates":{"InPlacePodVerticalScalingMemoryBackedVolumes":true}}}`)
	}))
	defer kubelet.Close()
	version := "v1.37.2"
	api := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got := r.URL.Query().Get("fieldSelector"); r.URL.Path != "/api/v1/nodes" || got != "metadata.name=n1" {
			t.Errorf("asked the API server for %s of %q", r.URL.Path, got)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"kind":"NodeList","apiVersion":"v1","items":[{"metadata":{"name":"n1"},"status":{"nodeInfo":{"kubeletVersion":%q}}}]}`, version)
	}))
	defer api.Close()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, []byte(`{"kind":"Config","clusters":[{"name":"c","cluster":{"server":"`+api.URL+`","insecure-skip-tls-verify":true}}],
"users":[{"name":"u","user":{"token":"s3cret"}}],"contexts":[{"name":"x","context":{"cluster":"c","user":"u"}}],"current-context":"x"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	openIt := func(args ...string) (*evictor, *eviction.Settings) {
		t.Helper()
		p, err := compileAgent(t, map[string]string{"NODE_NAME": "n1"}, append(args, "--kubeconfig="+kubeconfig, "--kubelet-url="+kubelet.URL, "--kubelet-insecure-tls")...)
		if err != nil {
			t.Fatal(err)
		}
		of, err := informer.New(*p.Cluster)
		if err != nil {
			t.Fatal(err)
		}
		e, err := openEvictor(t.Context(), p, machineOf(4<<30, 4<<30), of.NodePods, of, prometheus.NewRegistry(), zap.NewNop())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = e.Close() })
		if _, err := e.pods(); err == nil {
			t.Error("pods are known before the API server has said anything")
		}
		return e, e.settings
	}
	of := func(s *eviction.Settings) (all []string) {
		for _, th := range s.Thresholds {
			all = append(all, th.String())
		}
		return all
	}

	e, s := openIt()
	if diff := cmp.Diff([]string{"memory.available<300Mi", "allocatableMemory.available<300Mi"}, of(s)); diff != "" || len(e.warnings) > 0 {
		t.Errorf("observing, warned %q (-want +got):\n%s", e.warnings, diff)
	}
	if want := (eviction.Rules{IgnoreMemoryVolumes: true}); s.Rules != want {
		t.Errorf("a kubelet 1.37 with a feature gate: got the rules %+v, want %+v", s.Rules, want)
	}
	version = "v1.36.3"
	e, s = openIt("--eviction=kill", "--eviction-hard=memory.available<2%")
	if want := (eviction.Rules{IgnoreSidecarLimits: true, IgnoreHugePages: true}); s.Rules != want {
		t.Errorf("a kubelet 1.36 without the feature gates of 1.37: got the rules %+v, want %+v", s.Rules, want)
	}
	if diff := cmp.Diff([]string{"memory.available<2%"}, of(s)); diff != "" {
		t.Errorf("killing (-want +got):\n%s", diff)
	}
	if got := strings.Join(e.warnings, "\n"); !strings.Contains(got, "weir's memory.available<2% is not above the kubelet's memory.available<300Mi") {
		t.Errorf("2%% of 8Gi beside 300Mi: warned %q", got)
	}
	status = http.StatusForbidden
	e, s = openIt()
	if len(s.Thresholds) != 5 || len(e.warnings) != 1 || !strings.Contains(e.warnings[0], "nodes/configz") {
		t.Errorf("a kubelet that does not tell: %v, warned %q; want its defaults, and why", of(s), e.warnings)
	}
	// A mistake in the flags is an error, not a problem of the kubelet.
	p, err := compileAgent(t, map[string]string{"NODE_NAME": "n1"}, "--kubeconfig="+kubeconfig, "--kubelet-certificate-authority="+kubeconfig, "--listen=")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := open(t.Context(), p, io.Discard, zap.NewNop()); err == nil || !strings.Contains(err.Error(), "reach the kubelet: read certificates: "+kubeconfig+" has none in PEM") {
		t.Errorf("certificates that are none: %v", err)
	}
	status = http.StatusFound
	e, s = openIt()
	if len(s.Thresholds) != 5 || len(e.warnings) != 1 || !strings.Contains(e.warnings[0], "302 Found") {
		t.Errorf("a kubelet that sends elsewhere: %v, warned %q; want its defaults, and why", of(s), e.warnings)
	}
}

// TestRequestsNeedTheirAPI checks that an agent of mode request does not start in a cluster without
// EvictionRequests, and that it starts with a warning if the API server does not say.
func TestRequestsNeedTheirAPI(t *testing.T) {
	answer := http.StatusNotFound
	api := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(answer) }))
	defer api.Close()
	p, err := compileAgent(t, map[string]string{"NODE_NAME": "n1"}, "--kubeconfig="+kubeconfig(t, api, "secret"), "--kubelet-url="+api.URL, "--kubelet-insecure-tls",
		"--eviction=request", "--eviction-hard=memory.available<200Mi")
	if err != nil {
		t.Fatal(err)
	}
	of, err := informer.New(*p.Cluster)
	if err != nil {
		t.Fatal(err)
	}
	open := func() (*evictor, error) {
		return openEvictor(t.Context(), p, machineOf(4<<30, 4<<30), of.NodePods, of, prometheus.NewRegistry(), zap.NewNop())
	}
	var hint *cli.Hint
	if _, err := open(); !errors.Is(err, execute.ErrNoRequests) || !errors.As(err, &hint) || !strings.Contains(hint.Try, "--runtime-config=lifecycle.k8s.io/v1alpha1=true") {
		t.Errorf("got %v, want that the API is missing, and what to do", err)
	}
	answer = http.StatusForbidden
	e, err := open()
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if !slices.ContainsFunc(e.warnings, func(w string) bool {
		return strings.Contains(w, "not known whether the cluster serves EvictionRequests")
	}) {
		t.Errorf("warned %q, want that EvictionRequests may be missing", e.warnings)
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
	p.Eviction = newEvictionFlags().alone()
	d, err := open(t.Context(), p, os.Stderr, zap.NewNop())
	if err != nil {
		t.Skipf("this machine cannot be read: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- d.run(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("ended with %v", err)
		}
	}()
	var answer evictionreport.EvictionReport
	for deadline := time.Now().Add(10 * time.Second); answer.At.IsZero() || len(answer.Signals) == 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("no round after 10s: %+v", answer)
		}
		response, err := http.Get(d.localURL + weirdev.Path + "nodes/here/eviction")
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
	agent := exec.CommandContext(t.Context(), os.Args[0])
	agent.Env = append(os.Environ(), asWeir+"=agent --node-name=n1 --kubeconfig="+config+" --kubelet-url=https://"+nobody+
		" --bind-address=127.0.0.1 --secure-port="+port+" --listen="+local)
	var out notes
	agent.Stdout, agent.Stderr = &out, &out
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := errors.Join(agent.Process.Signal(syscall.SIGTERM), agent.Wait()); err != nil {
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

func TestEndedPods(t *testing.T) {
	const gone = "01234567-89ab-cdef-0123-456789abcdef"
	for silence, want := range map[time.Duration]bool{0: true, maxFactsAge + time.Second: false} {
		client := fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}})
		of := informer.NewForClient(client, informer.Options{Node: "n1", Now: func() time.Time { return time.Now().Add(-silence) }})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- of.Run(ctx) }()
		e := &evictor{cluster: of, node: "n1", nodePods: of.NodePods}
		until(t, 10*time.Second, "pods are known", func() bool { _, err := e.pods(); return err == nil })
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if got := e.ended(gone); got != want {
			t.Errorf("a pod that the API server did not name %v ago: ended %v, want %v", silence, got, want)
		}
	}

	// Without an answer from the API server, no pod has ended. A UID that the API server never
	// sends, such as a hash, has not ended either.
	e := &evictor{}
	if e.ended(gone) {
		t.Error("without a cluster a pod has ended")
	}
	e = &evictor{cluster: informer.NewForClient(nil, informer.Options{Node: "n1"}), nodePods: func() []*corev1.Pod { return nil }}
	for _, uid := range []string{gone, "0123456789abcdef0123456789abcdef"} {
		if e.ended(types.UID(uid)) {
			t.Errorf("%s has ended, and nobody evicted it", uid)
		}
	}
}
