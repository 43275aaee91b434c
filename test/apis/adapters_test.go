//go:build e2e

package apis

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
)

// Ports of the foreign adapter and of the weir in front of it, on the node.
const (
	foreignPort = 18543
	routerPort  = 18544
)

// TestForeignAdapter puts weir in front of the test adapter of
// custom-metrics-apiserver, which nobody here wrote. Through weir its answers are
// those that it gives itself, except for the time of a value, which is that of
// the request. Then it is stopped: weir's own metrics are answered as before.
func TestForeignAdapter(t *testing.T) {
	t.Parallel()
	w := sharedCluster
	dir := t.TempDir()
	adapter := filepath.Join(dir, "test-adapter")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", adapter, "sigs.k8s.io/custom-metrics-apiserver/test-adapter")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the test adapter: %v\n%s", err, out)
	}
	node := w.NodeIP().String()
	start := func(name, program, address string, args ...string) {
		t.Helper()
		if err := w.StartProcess(t.Context(), name, program, args, address+"/livez"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = w.StopProcess(context.Background(), name) }) // the adapter has ended already
	}
	kubeconfig := w.Kubeconfig()
	start("foreign-adapter", adapter, fmt.Sprintf("https://%s:%d", node, foreignPort),
		fmt.Sprintf("--secure-port=%d", foreignPort), "--cert-dir="+dir, "--lister-kubeconfig="+kubeconfig,
		"--authentication-kubeconfig="+kubeconfig, "--authorization-kubeconfig="+kubeconfig)

	namespace := w.namespace(t, "adapters")
	w.kubectl(t, "create", "serviceaccount", "weir-adapters", "-n", namespace)
	w.kubectl(t, "create", "clusterrolebinding", "weir-adapters", "--clusterrole=cluster-admin", "--serviceaccount="+namespace+":weir-adapters")
	t.Cleanup(func() {
		if _, _, err := w.Kubectl(context.Background(), "delete", "clusterrolebinding", "weir-adapters"); err != nil {
			t.Error(err)
		}
	})
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	file("token", w.kubectl(t, "create", "token", "weir-adapters", "-n", namespace))
	entries := file("adapters.yaml", fmt.Sprintf(`adapters:
  - name: foreign
    url: https://127.0.0.1:%d
    caFile: apiserver.crt
    bearerTokenFile: token
    custom: ["packets-*"]
    external: ["my-*", "other-*"]
`, foreignPort))
	weir, err := filepath.Abs(filepath.Join(root, "bin", "weir"))
	if err != nil {
		t.Fatal(err)
	}
	start("weir-router", weir, fmt.Sprintf("https://%s:%d", node, routerPort), "server", "--kubeconfig="+kubeconfig,
		fmt.Sprintf("--secure-port=%d", routerPort), "--adapters="+entries, "--metric-resolution=5s", "--source=kubelet:?timeout=3s")

	foreign, router := w.to(node, foreignPort), w.to(node, routerPort)
	post, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
		fmt.Sprintf("http://%s:8080/write-metrics/namespaces/default/services/kubernetes/packets-per-second", node), strings.NewReader(`"300m"`))
	if err != nil {
		t.Fatal(err)
	}
	post.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(post)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()

	const (
		external = "/apis/external.metrics.k8s.io/v1beta1/namespaces/default/"
		custom   = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/default/services/"
		own      = "/apis/custom.metrics.k8s.io/v1beta2/nodes/%2A/memory_working_set_bytes"
	)
	times := regexp.MustCompile(`"timestamp":"[^"]*"`)
	answer := func(c *rest.Config, path string) string {
		t.Helper()
		client, err := rest.HTTPClientFor(c)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Get(c.Host + path)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%d %s", response.StatusCode, times.ReplaceAllString(string(body), `"timestamp":""`))
	}
	eventually(t, "weir has numbers of its own", time.Minute, func() error {
		if got := answer(router, own); !strings.HasPrefix(got, "200 ") {
			return fmt.Errorf("its own metric is %s", got)
		}
		return nil
	})
	for _, path := range []string{
		external + "my-external-metric", external + "my-external-metric?labelSelector=foo%3Dbar", external + "other-external-metric",
		custom + "kubernetes/packets-per-second", custom + "%2A/packets-per-second",
	} {
		want := answer(foreign, path)
		if diff := cmp.Diff(want, answer(router, path)); !strings.HasPrefix(want, "200 ") || diff != "" {
			t.Errorf("%s (-adapter +weir):\n%s", path, diff)
		}
	}
	if err := w.StopProcess(t.Context(), "foreign-adapter"); err != nil {
		t.Fatal(err)
	}
	got := answer(router, external+"my-external-metric")
	var status struct{ Message string }
	if err := json.Unmarshal([]byte(got[4:]), &status); err != nil || !strings.HasPrefix(got, "503 ") || !strings.HasPrefix(status.Message, "adapter foreign cannot be reached: ") {
		t.Errorf("without the adapter: got %s, want 503 with its name", got)
	}
	if got := answer(router, own); !strings.HasPrefix(got, "200 ") {
		t.Errorf("weir's own metric without the adapter: got %s, want 200", got)
	}
}
