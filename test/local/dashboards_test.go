//go:build e2e

package local

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-metrics/weir/deploy/dashboards"
	"github.com/weir-metrics/weir/test/commands"
	"github.com/weir-metrics/weir/test/promtest"
)

// TestDashboards has a Prometheus scrape a weir of simulated kubelets, of which one hangs, and a weir
// of this machine in the place of an agent. The query of each panel must have data, except where
// the endpoint has no series for it.
func TestDashboards(t *testing.T) {
	dir := t.TempDir()
	kubeconfig, ca := filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "ca.pem")
	commands.Start(t, "weir-simulate", "--nodes=3", "--fresh", "--listen-port=0", "--ca-file="+ca, "--api-server="+promtest.Address(t), "--kubeconfig-file="+kubeconfig,
		"--autoscalers", "--fault=hang node=node-0002")
	commands.Eventually(t, 30*time.Second, func() error { _, err := os.Stat(kubeconfig); return err })
	server := commands.Start(t, "weir", "server", "--listen=127.0.0.1:0", "--metric-resolution=2s", "--kubeconfig="+kubeconfig, "--shadow-hpa", "--autoscaler-sync-period=2s",
		"--source=kubelet:?endpoint=summary&timeout=1s&ca="+ca)
	agent := commands.Start(t, "weir", "run", "--listen=127.0.0.1:0", "--metric-resolution=2s")
	address := func(p *commands.Process) string { return strings.TrimPrefix(p.Address(t), "http://") }
	_, client := promtest.StartClient(t, dir, fmt.Sprintf(`
global: {scrape_interval: 1s}
scrape_configs:
  - job_name: weir
    honor_labels: true
    static_configs: [{targets: [%[1]q]}]
  - job_name: weir-cluster
    metrics_path: /metrics/cluster
    honor_labels: true
    static_configs: [{targets: [%[1]q]}]
  - job_name: weir-agent
    static_configs: [{targets: [%[2]q]}]
`, address(server), address(agent)))
	fill := strings.NewReplacer("$namespace", ".*", "$__rate_interval", "30s")
	for _, d := range dashboards.All() {
		for _, row := range d.Rows {
			for _, panel := range row.Panels {
				if panel.Title == "Time lost by CPU limits" {
					t.Logf("%s, %s is left out: %s", d.Name, panel.Title, noThrottledTime)
					continue
				}
				commands.Eventually(t, time.Minute, func() error {
					if err := has(t, client, fill.Replace(panel.Query)); err != nil {
						return fmt.Errorf("%s, %s: %w", d.Name, panel.Title, err)
					}
					return nil
				})
			}
		}
	}
}
