package app

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/spf13/cobra"

	"github.com/weir-metrics/weir/cluster/informer"
	"github.com/weir-metrics/weir/cmd/client/cli"
	"github.com/weir-metrics/weir/cmd/flags/stageflag"
	"github.com/weir-metrics/weir/sources/kubelet"
	"github.com/weir-metrics/weir/test/cmptest"
)

// planOf returns the plan of weir server for args.
func planOf(t *testing.T, inPod bool, args ...string) *plan {
	t.Helper()
	s, cmd := newServerFlags(), &cobra.Command{Use: "server"}
	s.addTo(cmd)
	if err := cmd.ParseFlags(args); err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	p, err := s.compile(inPod, func(string) string { return "" })
	if err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	return p
}

// The arguments in metrics-server's own manifests keep their meaning.
func TestArgumentsOfMetricsServer(t *testing.T) {
	usual := func() kubelet.Options {
		o, err := kubelet.ParseOptions("", nil)
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	f := func(says string, args []string, resolution time.Duration, change func(*kubelet.Options)) {
		t.Helper()
		want := kubeletPlan{Options: usual(), Interval: resolution}
		change(&want.Options)
		p := planOf(t, true, args...)
		selector := func(o *kubelet.Options) string {
			if o.Selector == nil {
				return ""
			}
			return o.Selector.String()
		}
		if len(p.Kubelets) != 1 || p.Host != nil {
			t.Fatalf("%s: got %d kubelet sources and host %v, want one and none", says, len(p.Kubelets), p.Host)
		}
		got := p.Kubelets[0]
		cmptest.Equal(t, says, want, got, cmpopts.IgnoreFields(kubelet.Options{}, "Selector"))
		if got, want := selector(&got.Options), selector(&want.Options); got != want {
			t.Errorf("%s: selector %q, want %q", says, got, want)
		}
		cmptest.Equal(t, fmt.Sprintf("%s: not the cluster weir runs in", says), &informer.Options{MaxNodes: informer.DefaultMaxNodes}, p.Cluster)
		if want := []string{"resource", "custom", "model"}; !slices.Equal(p.APIs, want) {
			t.Errorf("%s: serves %+v, want %+v", says, p.APIs, want)
		}
	}
	f("none", nil, 15*time.Second, func(*kubelet.Options) {})
	f("the release's", []string{
		"--cert-dir=/tmp", "--secure-port=10250", "--kubelet-preferred-address-types=InternalIP,ExternalIP,Hostname",
		"--kubelet-use-node-status-port", "--metric-resolution=15s",
	}, 15*time.Second, func(o *kubelet.Options) { o.AddressTypes = []string{"InternalIP", "ExternalIP", "Hostname"} })
	f("of a test cluster", []string{
		"--kubelet-insecure-tls", "--metric-resolution=1m", "--authorization-always-allow-paths=/livez,/readyz", "-v=2",
		"--kubelet-preferred-address-types", "Hostname", "--kubelet-preferred-address-types", "InternalIP",
	}, time.Minute, func(o *kubelet.Options) { o.Insecure, o.AddressTypes = true, []string{"Hostname", "InternalIP"} })
	f("a port", []string{"--kubelet-port=10255"}, 15*time.Second, func(o *kubelet.Options) { o.Port = 10255 })
	f("a port for nodes without one", []string{"--kubelet-port=4443", "--kubelet-use-node-status-port"}, 15*time.Second,
		func(o *kubelet.Options) { o.Port, o.StatusPort = 4443, true })
	f("not the port in the status", []string{"--kubelet-use-node-status-port=false"}, 15*time.Second,
		func(o *kubelet.Options) { o.Port = 10250 })
	f("credentials", []string{
		"--kubelet-certificate-authority=/ca", "--kubelet-client-certificate=/crt", "--kubelet-client-key=/key", "--kubelet-request-timeout=3s",
	}, 15*time.Second, func(o *kubelet.Options) {
		o.CAFile, o.CertFile, o.KeyFile, o.Timeout = "/ca", "/crt", "/key", 3*time.Second
	})
	f("a selector", []string{"-l", "kubernetes.io/os=linux,pool!=gpu", "--logging-format=json"}, 15*time.Second, func(o *kubelet.Options) {
		selected, err := kubelet.ParseOptions("", map[string][]string{"node-selector": {"kubernetes.io/os=linux,pool!=gpu"}})
		if err != nil {
			t.Fatal(err)
		}
		o.Selector = selected.Selector
	})
}

func TestChoiceOfCluster(t *testing.T) {
	f := func(says string, inPod bool, want *informer.Options, args ...string) {
		t.Helper()
		cmptest.Equal(t, says, want, planOf(t, inPod, args...).Cluster)
	}
	f("in a pod, its own", true, &informer.Options{MaxNodes: informer.DefaultMaxNodes})
	f("unless a kubeconfig names another", true, &informer.Options{Kubeconfig: "k", MaxNodes: informer.DefaultMaxNodes}, "--kubeconfig=k")
	f("elsewhere the kubeconfig's", false, &informer.Options{Kubeconfig: "k", MaxNodes: informer.DefaultMaxNodes}, "--kubeconfig=k")
	f("none for a list", true, nil, "--source=kubelet:?targets=h:1", "--secure-port=0")
	f("none for this machine", true, nil, "--source=host:", "--secure-port=0")
}

func TestWhoIsAsked(t *testing.T) {
	f := func(says string, inPod, want bool, args ...string) {
		t.Helper()
		if got := planOf(t, inPod, args...).Secure != nil; got != want {
			t.Errorf("%s: readers are asked who they are: %v, want %v", says, got, want)
		}
	}
	f("in a pod", true, true)
	f("with no port", true, false, "--secure-port=0")
	f("in a pod, with a list that no cluster has a word on", true, false, "--source=kubelet:?targets=h:1")
	f("elsewhere", false, false, "--kubeconfig=k")
	f("elsewhere, with a port", false, true, "--kubeconfig=k", "--secure-port=8443")
}

// A pod that does not know its name cannot take part in an election, and there may be others like
// it: what only one replica may do is refused.
func TestActingNeedsAnIdentity(t *testing.T) {
	compile := func(inPod bool, env map[string]string, args ...string) error {
		return compileServer(t, inPod, env, append(args, "--kubelet-account=weir-system/reader", "--replica-token-file=t")...)
	}
	whole := map[string]string{"POD_NAME": "weir-1", "POD_NAMESPACE": "weir-system", "POD_IP": "10.0.0.1"}
	for _, flag := range []string{"--autoscalers", "--hpa-events", "--sink=remotewrite:http://prometheus:9090/api/v1/write", "--sink=otlp:http://collector:4318"} {
		for missing := range whole {
			env := maps.Clone(whole)
			delete(env, missing)
			var hint *cli.Hint
			if err := compile(true, env, flag); !errors.As(err, &hint) || !strings.Contains(err.Error(), flag[:6]) || !strings.Contains(hint.Try, "POD_NAME, POD_NAMESPACE and POD_IP") {
				t.Errorf("%s without %s: got %v, want an error that says what to set", flag, missing, err)
			}
		}
		for says, err := range map[string]error{
			"with its name":         compile(true, whole, flag),
			"as the only replica":   compile(true, nil, flag, "--lease="),
			"on somebody's machine": compile(false, nil, flag, "--kubeconfig=k"),
		} {
			if err != nil {
				t.Errorf("%s %s: %v", flag, says, err)
			}
		}
		if err := compile(true, nil, flag, "--secure-port=0"); err == nil {
			t.Errorf("%s without a secured server, of which there is no election: no error", flag)
		}
	}
}

// compileServer returns the error of weir server's flags.
func compileServer(t *testing.T, inPod bool, env map[string]string, args ...string) error {
	t.Helper()
	s, cmd := newServerFlags(), &cobra.Command{Use: "server"}
	s.addTo(cmd)
	if err := cmd.ParseFlags(args); err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	_, err := s.compile(inPod, func(name string) string { return env[name] })
	return err
}

// In a pod, the token of weir's own account is shown neither to agents nor to the address in a
// Lease. Kubelets see it only if it may change nothing.
func TestOwnTokenIsNotShown(t *testing.T) {
	pod := map[string]string{"POD_NAME": "weir-1", "POD_NAMESPACE": "weir-system", "POD_IP": "10.0.0.1"}
	const account, replicas, agents = "--kubelet-account=weir-system/reader", "--replica-token-file=r", "--agent-token-file=a"
	f := func(want string, inPod bool, env map[string]string, args ...string) {
		t.Helper()
		err := compileServer(t, inPod, env, args...)
		var hint *cli.Hint
		if want == "" && err != nil || want != "" && (!errors.As(err, &hint) || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("%q: got %v, want %q and what to do", args, err, want)
		}
	}
	f("--lease needs --replica-token-file", true, pod)
	f("", true, pod, replicas)
	f("", true, pod, "--lease=")
	f("", true, nil) // metrics-server's manifests
	f("--agent-port needs --agent-token-file", true, nil, "--agent-port=10290", "--agent-insecure-tls")
	f("", true, nil, "--agent-port=10290", "--agent-insecure-tls", agents)
	f("--autoscalers needs --kubelet-account", true, pod, replicas, "--autoscalers")
	f("--autoscalers needs --kubelet-account", true, pod, "--lease=", "--secure-port=0", "--autoscalers")
	f("", true, pod, replicas, account, "--autoscalers")
	f("", true, pod, replicas, "--autoscalers", "--kubelet-client-certificate=c", "--kubelet-client-key=k")
	f("", true, pod, replicas, "--autoscalers", "--source=kubelet:?token-file=t")
	f("--autoscalers needs --kubelet-account", true, pod, replicas, "--autoscalers", "--source=kubelet:?token-file=t", "--source=kubelet:?endpoint=summary")
	f("", true, pod, "--kubeconfig=k", "--autoscalers", "--agent-port=10290")
	f("", false, nil, "--kubeconfig=k", "--autoscalers", "--agent-port=10290", account)
	for _, account := range []string{"reader", "/reader", "weir-system/", "a/b/c"} {
		if err := compileServer(t, true, nil, "--kubelet-account="+account); err == nil || !strings.Contains(err.Error(), "NAMESPACE/NAME") {
			t.Errorf("--kubelet-account=%s: got %v, want what to write", account, err)
		}
	}
	f("--kubelet-account needs a cluster", false, nil, account, "--source=kubelet:?targets=h:1")
	f("--external-rules needs a cluster", false, nil, "--external-rules=r.yaml", "--source=kubelet:?targets=h:1")
}

func TestInPod(t *testing.T) {
	f := func(host string, token, want bool) {
		t.Helper()
		got := inPod(func(name string) string {
			return map[string]string{"KUBERNETES_SERVICE_HOST": host}[name]
		}, func(path string) bool { return token && path == "/var/run/secrets/kubernetes.io/serviceaccount/token" })
		if got != want {
			t.Errorf("service host %q, token there: %v: got %v, want %v", host, token, got, want)
		}
	}
	f("10.0.0.1", true, true)
	f("10.0.0.1", false, false) // automountServiceAccountToken: false
	f("", true, false)
}

func TestChoiceOfAPIs(t *testing.T) {
	f := func(want []string, rules string, args ...string) {
		t.Helper()
		p := planOf(t, true, args...)
		if !slices.Equal(p.APIs, want) || p.ExternalRules != rules {
			t.Errorf("%q: got %+v with rules %q, want %+v with %q", args, p.APIs, p.ExternalRules, want, rules)
		}
	}
	f([]string{"resource", "custom", "model"}, "")
	f([]string{"resource", "custom", "external", "model"}, "r.yaml", "--external-rules=r.yaml")
	f(nil, "", "--apis=")
	f([]string{"resource"}, "", "--apis=resource")
	f([]string{"custom", "external"}, "r.yaml", "--apis=external, custom", "--external-rules=r.yaml")
	f([]string{"resource", "model"}, "", "--apis=resource", "--apis=model")
	f([]string{"custom"}, "r.yaml", "--apis=custom", "--external-rules=r.yaml") // external belongs to another server
}

// Events need a cluster. Only the server of a cluster watches them, and not each of its agents.
func TestEventsPlan(t *testing.T) {
	const sink = "--sink=otlp:http://collector:4318?events=true"
	if p := planOf(t, false, "--kubeconfig=k", sink); p.features.events.WantedBy == "" {
		t.Error("Events are sent, and nothing reads them")
	}
	if p := planOf(t, false, "--kubeconfig=k", "--sink=otlp:http://collector:4318"); p.features.events.WantedBy != "" {
		t.Error("Events are read, and nobody asked for them")
	}
	for arg, want := range map[string]string{"--events": "--events needs a cluster", sink: "the option events of --sink=otlp needs a cluster"} {
		s, cmd := newServerFlags(), &cobra.Command{Use: "server"}
		s.addTo(cmd)
		if err := cmd.ParseFlags([]string{arg, "--source=kubelet:?targets=h:1", "--secure-port=0"}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.compile(false, func(string) string { return "" }); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", arg, err, want)
		}
	}
	c := newConfig(time.Second, "host")
	c.plan.MaxReads = 1
	if err := c.sinks.Set(strings.TrimPrefix(sink, "--sink=")); err != nil {
		t.Fatal(err)
	}
	if _, err := c.compile("host"); err == nil || !strings.Contains(err.Error(), "is for weir server") {
		t.Errorf("an agent: %v", err)
	}
}

// Reads wait for the memory as long as the default interval: a batch that it does not get delays the first
// rates of a node by as much.
func TestReadsWaitForTheMemory(t *testing.T) {
	at := slices.IndexFunc(sinks, func(s stage) bool { return s.name == "memory" })
	open, err := sinks[at].parse(&plan{}, stageflag.Stage{Name: "memory"})
	if err != nil {
		t.Fatal(err)
	}
	w := &weirProcess{}
	if err := open(w); err != nil {
		t.Fatal(err)
	}
	if got := w.pipeline.sinks[0].Wait; got != 15*time.Second {
		t.Errorf("reads wait %v for the memory, want 15s", got)
	}
}
