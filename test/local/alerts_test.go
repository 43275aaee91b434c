//go:build e2e

package local

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql/parser"

	"github.com/weir-metrics/weir/internal/history"
	"github.com/weir-metrics/weir/test/commands"
	"github.com/weir-metrics/weir/test/promtest"
)

// quiet are the alerts that must not fire in TestAlerts, because their cause cannot be brought about
// here. deploy tests each with a history.
var quiet = map[string]string{
	"WeirAmbiguous":            "a second read tells all simulated duplicates apart",
	"WeirSinkDropping":         "the sinks keep up",
	"WeirPanicked":             "it would be a bug",
	"WeirCertificateEnds":      "weir signs its certificate for a year",
	"WeirEventsFailing":        "the simulated API server takes all Events",
	"WeirAutoscalerConflict":   "there are no Autoscalers",
	"WeirAutoscalerWritesFail": "there are no Autoscalers",
	"WeirAutoscalerLate":       "there are fewer than a hundred autoscalers",
	"WeirShadowDiffers":        "weir compares only after a stabilization window",
	"WeirCPULimitCostsTime":    noThrottledTime,
	"WeirPodKilledForMemory":   "no agent runs here that could count kills",
	"WeirKubeletTokens":        "no account's tokens are shown to the simulated kubelets",
}

// noThrottledTime is why what asks for throttled time has no series here.
const noThrottledTime = "the endpoint that is read has no throttled time"

// elsewhere are the alerts whose series only other endpoints, agents or a weir with an account for kubelets have.
var elsewhere = []string{"WeirCPULimitCostsTime", "WeirPodKilledForMemory", "WeirKubeletTokens"}

// TestAlerts has a Prometheus evaluate the alerts in deploy/alerts while weir reads simulated kubelets
// with faults. Every series that an alert asks for must exist, except those of
// elsewhere, and every alert that is not in quiet must fire. The alerts do not wait
// (for) before they fire.
func TestAlerts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server, local, broken := promtest.Address(t), promtest.Address(t), promtest.Address(t)
	var rules struct {
		Groups []struct {
			Name  string           `json:"name"`
			Rules []map[string]any `json:"rules"`
		} `json:"groups"`
	}
	readYAML(t, "../../deploy/alerts/weir-rules.yaml", &rules)
	expressions := map[string]string{}
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			delete(r, "for")
			expressions[r["alert"].(string)] = r["expr"].(string)
		}
	}
	file := filepath.Join(dir, "rules.yaml")
	write(t, file, marshalYAML(t, rules))
	url, client := promtest.StartClient(t, dir, fmt.Sprintf(`
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [%q]
scrape_configs:
  - job_name: weir
    honor_labels: true
    static_configs: [{targets: [%q, %q, %q]}]
  - job_name: weir-cluster
    metrics_path: /metrics/cluster
    honor_labels: true
    static_configs: [{targets: [%q]}]
`, file, server, local, broken, server))
	fired := func() ([]string, error) {
		answer, err := client.Query(t.Context(), `count by (alertname) (max_over_time(ALERTS{alertstate="firing"}[15m]))`, time.Now())
		if err != nil {
			return nil, err
		}
		var names []string
		for _, s := range answer.Series {
			names = append(names, s.Labels["alertname"])
		}
		slices.Sort(names)
		return names, nil
	}
	awaitAlert := func(name string) {
		t.Helper()
		commands.Eventually(t, time.Minute, func() error {
			names, err := fired()
			if err == nil && !slices.Contains(names, name) {
				err = fmt.Errorf("%s does not fire, but %v", name, names)
			}
			return err
		})
	}

	awaitAlert("WeirAbsent")
	commands.Start(t, "weir", "run", "--listen="+local)
	awaitAlert("WeirServesNothing") // of this weir, only /metrics is scraped

	kubeconfig, ca, external := filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "ca.pem"), filepath.Join(dir, "external.yaml")
	commands.Start(t, "weir-simulate", "--nodes=4", "--fresh", "--listen-port=0", "--ca-file="+ca, "--api-server="+promtest.Address(t), "--kubeconfig-file="+kubeconfig, "--autoscalers",
		"--fault=hang node=node-0002", "--fault=clockstep node=node-0003 by=2m at=1s",
		"--fault=missing pod=*-store-0-*", "--fault=missing pod=*-store-1-*", "--fault=missing pod=*-store-2-*", "--fault=missing pod=kube-proxy-*",
		"--fault=twonodes pod=*-store-3-* node=node-0001", "--fault=twonodes pod=*-store-4-* node=node-0001", "--fault=twonodes pod=*-store-5-* node=node-0001")
	commands.Eventually(t, 30*time.Second, func() error { _, err := os.Stat(kubeconfig); return err })
	_, port, err := net.SplitHostPort(promtest.Address(t))
	if err != nil {
		t.Fatal(err)
	}
	write(t, external, "prometheus: {url: \""+url+"\"}\nmetrics: [{name: up, query: up}]\n")
	commands.Start(t, "weir", "server", "--listen="+server, "--metric-resolution=2s", "--kubeconfig="+kubeconfig, "--source=kubelet:?timeout=1s&max-samples=70&ca="+ca,
		"--sink=prometheus:?limit=1000", "--external-rules="+external, // which only the secure port serves
		"--secure-port="+port, "--bind-address=127.0.0.1", "--authentication-skip-lookup", "--shutdown-delay-duration=0s",
		"--shadow-hpa", "--autoscaler-sync-period=2s", "--hpa-events")
	commands.Start(t, "weir", "server", "--listen="+broken, "--metric-resolution=2s", "--source=kubelet:?targets=gone=127.0.0.1:1&insecure-tls=true")
	commands.Eventually(t, time.Minute, func() error { return has(t, client, "weir_external_rules_valid == 1") })
	write(t, external, "metrics: none\n")

	p := parser.NewParser(parser.Options{})
	for _, name := range elsewhere {
		delete(expressions, name)
	}
	for name, expression := range expressions {
		parsed, err := p.ParseExpr(expression)
		if err != nil {
			t.Fatal(err)
		}
		parser.Inspect(parsed, func(n parser.Node, _ []parser.Node) error {
			if s, ok := n.(*parser.VectorSelector); ok {
				commands.Eventually(t, time.Minute, func() error {
					if err := has(t, client, s.String()); err != nil {
						return fmt.Errorf("%s: %w", name, err)
					}
					return nil
				})
			}
			return nil
		})
		if quiet[name] == "" {
			awaitAlert(name)
		}
	}
	names, err := fired()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if quiet[name] != "" {
			t.Errorf("%s fires although %s: take it off the list", name, quiet[name])
		}
	}
	t.Logf("%d of %d alerts have fired: %v", len(names), len(expressions), names)
}

// has returns an error if a query has no data now.
func has(t *testing.T, client *history.Client, query string) error {
	answer, err := client.Query(t.Context(), query, time.Now())
	if err == nil && len(answer.Series) == 0 {
		err = fmt.Errorf("%s has no data", query)
	}
	return err
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
