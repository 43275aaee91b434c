//go:build linux && e2e

package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/rest"
)

// TestCluster tests a cluster from Start to Down, on a machine where other
// programs run, and checks that Down leaves nothing behind.
func TestCluster(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 25*time.Minute) // the programs may have to be built
	defer cancel()
	if _, err := Build(ctx, t.Output()); err != nil {
		t.Fatal(err)
	}
	before := machine(t)

	o := Options{Name: fmt.Sprintf("harness-%d", os.Getpid()), Dir: t.TempDir(), Progress: t.Output()}
	c, err := Start(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	// This also runs after a failure, and after the end of the test's context.
	t.Cleanup(func() {
		if err := c.Down(context.Background()); err != nil {
			t.Errorf("end the cluster again: %v", err)
		}
	})

	for _, s := range c.Status(ctx) {
		if s.Problem != "" {
			t.Errorf("%s is not well: %s", s.Name, s.Problem)
		}
	}
	if _, err := Start(ctx, o); !errors.Is(err, ErrRunning) {
		t.Errorf("start a second time: got %v, want %v", err, ErrRunning)
	}
	t.Run("node", func(t *testing.T) { testNode(ctx, t, c) })
	t.Run("service", func(t *testing.T) { testService(ctx, t, c) })
	t.Run("audit", func(t *testing.T) { testAudit(ctx, t, c) })
	t.Run("metrics", func(t *testing.T) { testMetrics(ctx, t, c) })
	t.Run("metrics-server", func(t *testing.T) { testMetricsServer(ctx, t, c) })
	t.Run("outside", func(t *testing.T) { testOutside(ctx, t, c) })
	t.Run("restart", func(t *testing.T) { testRestart(ctx, t, c) })
	t.Run("users", func(t *testing.T) { testUsers(ctx, t, c) })
	t.Run("failure", func(t *testing.T) { testFailure(ctx, t, o) })
	t.Run("side by side", func(t *testing.T) { testSideBySide(ctx, t, o) })

	opened, err := Open(ctx, o) // as another process would
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	if err := opened.Down(ctx); err != nil {
		t.Fatal(err)
	}
	t.Logf("down took %v", time.Since(begin).Round(time.Millisecond))

	var after []string
	if err := poll(ctx, 100*time.Millisecond, func() (bool, error) {
		after = machine(t)
		return slices.Equal(before, after) || time.Since(begin) > 10*time.Second, nil
	}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("this machine before the cluster (-) and after (+):\n%s", diff)
	}
	if exists(c.Dir()) {
		t.Errorf("folder %s is still there", c.Dir())
	}
}

// machine returns everything on this machine that a cluster could leave behind.
func machine(t *testing.T) []string {
	t.Helper()
	var found []string
	read := func(path string) {
		b, err := os.ReadFile(path)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(b)) {
			found = append(found, path+": "+strings.TrimSpace(line))
		}
	}
	run := func(name string, args ...string) {
		out, err := exec.Command(name, args...).Output()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for line := range strings.Lines(string(out)) {
			found = append(found, name+": "+strings.TrimSpace(line))
		}
	}
	list := func(dir string) {
		entries, err := os.ReadDir(dir)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		for _, e := range entries {
			found = append(found, filepath.Join(dir, e.Name()))
		}
	}
	read("/etc/hosts")
	for _, name := range []string{"vm/overcommit_memory", "kernel/panic", "kernel/panic_on_oops", "net/ipv4/ip_forward", "net/netfilter/nf_conntrack_max"} {
		read("/proc/sys/" + name)
	}
	for _, dir := range []string{"/run", "/run/netns", "/var/lib", "/var/log", "/etc/cni", "/opt"} {
		list(dir)
	}
	run("ip", "-4", "route")
	run("ip", "-brief", "link")
	run("iptables-save")
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		found = append(found, "mount "+strings.TrimSpace(line))
	}
	roots, err := hierarchies()
	if err != nil {
		t.Fatal(err)
	}
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range roots {
		for _, dir := range tree(r) {
			// A cluster's cgroups begin at the root or, by mistake, in that of this test. Other
			// programs make cgroups in their own ones at any time.
			name := strings.TrimPrefix(dir, r)
			if parent := filepath.Dir(name); parent == "/" || name == "" || bytes.Contains(own, []byte(":"+parent+"\n")) {
				found = append(found, dir)
			}
		}
	}
	processes, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range processes {
		b, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		program, _, _ := bytes.Cut(b, []byte{0})
		switch name := filepath.Base(string(program)); name {
		case "etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "kubelet", "containerd",
			"containerd-shim-runc-v2", "metrics-server", "workload", "sleep", "runc":
			found = append(found, "process "+name)
		}
	}
	// Counters of packets and times are not a difference.
	found = slices.DeleteFunc(found, func(s string) bool {
		return strings.HasPrefix(s, "iptables-save: #") || strings.HasPrefix(s, "iptables-save: :")
	})
	slices.Sort(found)
	return found
}

func kubectl(ctx context.Context, t *testing.T, c *Cluster, args ...string) string {
	t.Helper()
	out, _, err := c.Kubectl(ctx, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func testNode(ctx context.Context, t *testing.T, c *Cluster) {
	got := strings.Fields(kubectl(ctx, t, c, "get", "nodes", "--no-headers"))
	if len(got) < 2 || got[0] != c.Node() || got[1] != "Ready" {
		t.Errorf("nodes: got %q, want %s Ready", got, c.Node())
	}
}

const consumer = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: ` + WorkloadImage + `
        imagePullPolicy: Never
        args: [serve, --listen, ":8080", --millicores, "50"]
        readinessProbe: {tcpSocket: {port: 8080}, periodSeconds: 1}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
`

func testService(ctx context.Context, t *testing.T, c *Cluster) {
	if err := c.Apply(ctx, consumer); err != nil {
		t.Fatal(err)
	}
	kubectl(ctx, t, c, "rollout", "status", "deployment/web", "--timeout=60s")
	address := kubectl(ctx, t, c, "get", "service", "web", "-o", "jsonpath={.spec.clusterIP}")
	// Only a pod can answer, because nothing else listens there.
	client := prober()
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	var last error
	err := poll(ctx, 100*time.Millisecond, func() (bool, error) { // kube-proxy writes its rules once a second
		var resp *http.Response
		if resp, last = client.Get("http://" + address + "/"); last == nil {
			resp.Body.Close()
		}
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("call the Service from this machine: %v", last)
	}
}

// testAudit checks that the audit log says who changes a scale and what was
// sent, and does not contain reads.
func testAudit(ctx context.Context, t *testing.T, c *Cluster) {
	kubectl(ctx, t, c, "get", "--raw", "/apis/apps/v1/namespaces/default/deployments/web/scale")
	kubectl(ctx, t, c, "scale", "deployment/web", "--replicas=3")
	kubectl(ctx, t, c, "scale", "deployment/web", "--replicas=2")
	var got []string
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	err := poll(ctx, 50*time.Millisecond, func() (bool, error) {
		writes, err := c.Audit(func(e *auditv1.Event) bool {
			o := e.ObjectRef
			return o.APIGroup == "apps" && o.Resource == "deployments" && o.Subresource == "scale" && o.Name == "web"
		})
		got = nil
		for _, w := range writes {
			got = append(got, fmt.Sprintf("%s %s %s %d", w.User.Username, w.Verb, w.RequestObject.Raw, w.ResponseStatus.Code))
		}
		return len(got) >= 2, err
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{`kubernetes-admin patch {"spec":{"replicas":3}} 200`, `kubernetes-admin patch {"spec":{"replicas":2}} 200`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("writes of web's scale, wanted (-) and written down (+):\n%s", diff)
	}
}

func testMetrics(ctx context.Context, t *testing.T, c *Cluster) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var want, got string
	err := poll(ctx, time.Second, func() (bool, error) {
		// The name is read each time, because testAudit may have scaled the first pod
		// away.
		pod := kubectl(ctx, t, c, "get", "pods", "-l", "app=web", "-o", "jsonpath={.items[0].metadata.name}")
		want = fmt.Sprintf("container_cpu_usage_seconds_total{container=%q,namespace=%q,pod=%q}", "web", "default", pod)
		got = kubectl(ctx, t, c, "get", "--raw", "/api/v1/nodes/"+c.Node()+"/proxy/metrics/resource")
		return strings.Contains(got, want), nil
	})
	if err != nil {
		t.Errorf("the kubelet's /metrics/resource lacks %s; got:\n%s", want, got)
	}
}

func testMetricsServer(ctx context.Context, t *testing.T, c *Cluster) {
	m, err := c.StartMetricsServer(ctx, "--metric-resolution=12s")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.RegisterAPIService(ctx, "metrics.k8s.io", "v1beta1", m.Address); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var top string
	err = poll(ctx, time.Second, func() (bool, error) {
		top, _, err = c.Kubectl(ctx, "top", "pods", "--no-headers", "-l", "app=web")
		return strings.Count(top, "\n") == 2, nil
	})
	if err != nil {
		t.Errorf("kubectl top pods: got %q, want both pods of web (%v)", top, err)
	}
	if err := c.UnregisterAPIService(ctx, "metrics.k8s.io", "v1beta1"); err != nil {
		t.Fatal(err)
	}
	if err := c.StopProcess(ctx, m.Process); err != nil {
		t.Fatal(err)
	}
}

// testOutside checks that a server on this machine can serve an aggregated API.
func testOutside(ctx context.Context, t *testing.T, c *Cluster) {
	server, address := serveDiscovery(t, c.HostIP())
	defer server.Close()
	if err := c.RegisterAPIService(ctx, "outside.weir.test", "v1", address); err != nil {
		t.Fatal(err)
	}
	var list struct{ GroupVersion string }
	if err := json.Unmarshal([]byte(kubectl(ctx, t, c, "get", "--raw", "/apis/outside.weir.test/v1")), &list); err != nil {
		t.Fatal(err)
	}
	if list.GroupVersion != "outside.weir.test/v1" {
		t.Errorf("group version of the outside API: got %q", list.GroupVersion)
	}
	if err := c.UnregisterAPIService(ctx, "outside.weir.test", "v1"); err != nil {
		t.Fatal(err)
	}
}

// testRestart checks that pods continue to run while their kubelet and runtime
// restart.
func testRestart(ctx context.Context, t *testing.T, c *Cluster) {
	const restarts = "jsonpath={.items[*].status.containerStatuses[*].restartCount}"
	for _, name := range []string{"containerd", "kubelet"} {
		if err := c.RestartComponent(ctx, name); err != nil {
			t.Fatal(err)
		}
	}
	kubectl(ctx, t, c, "rollout", "status", "deployment/web", "--timeout=60s")
	if got := kubectl(ctx, t, c, "get", "pods", "-l", "app=web", "-o", restarts); got != "0 0" {
		t.Errorf("restarts of web's containers: got %q, want %q", got, "0 0")
	}
	if err := c.RestartComponent(ctx, "cloud"); err == nil {
		t.Error("restart a component that there is not: got no error")
	}
}

func testSideBySide(ctx context.Context, t *testing.T, o Options) {
	o.Name += "-b"
	second, err := Start(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := second.Down(ctx); err != nil {
			t.Error(err)
		}
	}()
	testNode(ctx, t, second)
	testService(ctx, t, second)
}

// testUsers checks that a certificate gives a user its name and groups, and
// nothing more.
func testUsers(ctx context.Context, t *testing.T, c *Cluster) {
	for _, user := range []struct {
		groups []string
		want   int
	}{{nil, http.StatusForbidden}, {[]string{"system:masters"}, http.StatusOK}} {
		config, err := c.UserConfig("jane", user.groups...)
		if err != nil {
			t.Fatal(err)
		}
		client, err := rest.HTTPClientFor(config)
		if err != nil {
			t.Fatal(err)
		}
		defer client.CloseIdleConnections()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+"/api/v1/nodes", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != user.want {
			t.Errorf("list nodes as jane of groups %v: got status %d, want %d", user.groups, resp.StatusCode, user.want)
		}
	}
}

// testFailure checks that a failed start says why and leaves only its logs.
func testFailure(ctx context.Context, t *testing.T, o Options) {
	o.Name += "-f"
	o.APIServerArgs = []string{"--no-such-flag"}
	_, err := Start(ctx, o)
	if err == nil || !strings.Contains(err.Error(), "start kube-apiserver: it ended") || !strings.Contains(err.Error(), "unknown flag: --no-such-flag") {
		t.Errorf("start with an unknown flag: got %v, want an error with the API server's last words", err)
	}
	if left, err := cgroupOf(o.Name).processes(); err != nil || len(left) > 0 {
		t.Errorf("processes after a start that failed: got %v, %v", left, err)
	}
	if _, err := Open(ctx, o); !errors.Is(err, ErrNotFound) {
		t.Errorf("open what did not start: got %v, want %v", err, ErrNotFound)
	}

	// The same name in another folder is another cluster, but it has the same
	// cgroup.
	taken := o
	taken.Name, taken.Dir, taken.APIServerArgs = strings.TrimSuffix(o.Name, "-f"), t.TempDir(), nil
	if _, err := Start(ctx, taken); err == nil || !strings.Contains(err.Error(), "--name") {
		t.Errorf("start a cluster of a running one's name: got %v", err)
	}
}

// serveDiscovery serves the answers that the aggregation layer needs for a
// group.
func serveDiscovery(t *testing.T, host netip.Addr) (io.Closer, netip.AddrPort) {
	t.Helper()
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"outside.weir.test/v1","resources":[]}`)
	})
	return serveTLS(t, host, handler)
}
