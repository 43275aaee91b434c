//go:build e2e

package apis

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-metrics/weir/api/explainapi"
)

// anotherWeirPort is the port of the first additional weir of a test.
const anotherWeirPort = 18443

// another starts an additional weir as a process on the node, with the
// administrator's rights and these options. It reads kubelets every five
// seconds. It has not read anything yet, so it has no last known values.
func (w *testCluster) another(t *testing.T, name string, port int, options ...string) *explainapi.Client {
	t.Helper()
	binary, err := filepath.Abs(filepath.Join(root, "bin", "weir"))
	if err != nil {
		t.Fatal(err)
	}
	args := []string{
		"server", "--kubeconfig=" + w.Kubeconfig(), fmt.Sprintf("--secure-port=%d", port), "--log-format=json",
		"--metric-resolution=5s", "--source=kubelet:?" + strings.Join(append(options, "timeout=3s"), "&"),
	}
	address := fmt.Sprintf("https://%s:%d", w.NodeIP(), port)
	if err := w.StartProcess(t.Context(), name, binary, args, address+"/livez"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.StopProcess(context.Background(), name); err != nil {
			t.Error(err)
		}
	})
	return w.explainer(t, w.NodeIP().String(), port)
}
