//go:build e2e

package apis

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestDropIn runs weir from metrics-server's own Deployment, with its arguments
// and its rights. Only the image and the command are changed.
func TestDropIn(t *testing.T) {
	w := sharedCluster
	if err := w.install(t.Context(), filepath.Join("testdata", "drop-in")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.uninstall(t, filepath.Join("testdata", "drop-in")) })
	c, err := w.direct(t.Context(), "metrics-server-drop-in", "k8s-app=metrics-server", 10250)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the node and metrics-server's pod are served", time.Minute, func() error {
		nodes, err := c.MetricsV1beta1().NodeMetricses().List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		a, err := list(t.Context(), c, "metrics-server")
		if err != nil {
			return err
		}
		if len(nodes.Items) != 1 || len(a) != 1 {
			return fmt.Errorf("%d nodes and containers %v", len(nodes.Items), a)
		}
		return nil
	})
}
