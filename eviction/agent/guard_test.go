package agent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/weir-metrics/weir/cluster/informer"
	"github.com/weir-metrics/weir/eviction"
	"github.com/weir-metrics/weir/eviction/execute"
	"github.com/weir-metrics/weir/eviction/guard"
	"github.com/weir-metrics/weir/internal/feature"
	"github.com/weir-metrics/weir/internal/usererror"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/test/background"
	"github.com/weir-metrics/weir/test/cmptest"
)

// openGuard opens the guard of node n1 in the cluster of a kubeconfig, with the given flags.
func openGuard(t *testing.T, kubeconfig string, args ...string) (*evictor, error) {
	t.Helper()
	g, flags := New(), pflag.NewFlagSet("", pflag.ContinueOnError)
	g.Flags(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	if err := g.Check(&feature.Setting{Getenv: func(string) string { return "" }, HasCluster: true, NodeIsNamed: true}); err != nil {
		t.Fatal(err)
	}
	o := informer.Options{Kubeconfig: kubeconfig, Node: "n1"}
	watch, err := informer.New(o)
	if err != nil {
		t.Fatal(err)
	}
	h := &feature.Host{Log: zap.NewNop(), Logr: logr.Discard(), Registry: prometheus.NewRegistry(), Cluster: &feature.Cluster{Cluster: watch, Options: o}}
	g.Node, g.Machine = "n1", machineOf(4<<30, 4<<30)
	err = g.Open(t.Context(), h)
	return g.evictor, err
}

// machineOf is a machine with known memory and nothing else.
func machineOf(available, used uint64) *Machine {
	return &Machine{
		Pod: func(metric.PodUID) *corev1.Pod { return nil },
		NodeReader: guard.NodeReader{
			Read: func(context.Context) (*stats.Summary, error) {
				return &stats.Summary{Node: stats.NodeStats{Memory: &stats.MemoryStats{AvailableBytes: &available, WorkingSetBytes: &used}}}, nil
			},
			Layout:     func(context.Context) (bool, bool, error) { return false, false, nil },
			MemoryLeft: func() *eviction.MemoryLeft { return nil },
		},
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
		e, err := openGuard(t, kubeconfig, append(args, "--kubelet-url="+kubelet.URL, "--kubelet-insecure-tls")...)
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
	cmptest.Equal(t, "killing", []string{"memory.available<2%"}, of(s))
	if got := strings.Join(e.warnings, "\n"); !strings.Contains(got, "weir's memory.available<2% is not above the kubelet's memory.available<300Mi") {
		t.Errorf("2%% of 8Gi beside 300Mi: warned %q", got)
	}
	status = http.StatusForbidden
	e, s = openIt()
	if len(s.Thresholds) != 5 || len(e.warnings) != 1 || !strings.Contains(e.warnings[0], "nodes/configz") {
		t.Errorf("a kubelet that does not tell: %v, warned %q; want its defaults, and why", of(s), e.warnings)
	}
	// A mistake in the flags is an error, not a problem of the kubelet.
	if _, err := openGuard(t, kubeconfig, "--kubelet-certificate-authority="+kubeconfig); err == nil || !strings.Contains(err.Error(), "reach the kubelet: read certificates: "+kubeconfig+" has none in PEM") {
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
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, []byte(`{"kind":"Config","clusters":[{"name":"c","cluster":{"server":"`+api.URL+`","insecure-skip-tls-verify":true}}],
"contexts":[{"name":"x","context":{"cluster":"c"}}],"current-context":"x"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	open := func() (*evictor, error) {
		return openGuard(t, kubeconfig, "--kubelet-url="+api.URL, "--kubelet-insecure-tls", "--eviction=request", "--eviction-hard=memory.available<200Mi")
	}
	var hint *usererror.Hint
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

func TestEndedPods(t *testing.T) {
	const gone = "01234567-89ab-cdef-0123-456789abcdef"
	for silence, want := range map[time.Duration]bool{0: true, maxFactsAge + time.Second: false} {
		client := fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}})
		watch := informer.NewForClient(client, informer.Options{Node: "n1", Now: func() time.Time { return time.Now().Add(-silence) }})
		stop := background.Run(t, watch.Run)
		e := &evictor{cluster: &feature.Cluster{Cluster: watch}, node: "n1", machine: machineOf(0, 0)}
		for deadline := time.Now().Add(10 * time.Second); ; <-watch.Changed() {
			if _, err := e.pods(); err == nil {
				break
			} else if time.Now().After(deadline) {
				t.Fatalf("the pods are not known after 10s: %v", err)
			}
		}
		stop()
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
	e = &evictor{cluster: &feature.Cluster{Cluster: informer.NewForClient(nil, informer.Options{Node: "n1"})}, machine: machineOf(0, 0)}
	for _, uid := range []string{gone, "0123456789abcdef0123456789abcdef"} {
		if e.ended(types.UID(uid)) {
			t.Errorf("%s has ended, and nobody evicted it", uid)
		}
	}
}
