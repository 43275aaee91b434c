//go:build e2e

package local

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/weir-metrics/weir/history"
	"github.com/weir-metrics/weir/test/commands"
	"github.com/weir-metrics/weir/test/promtest"
)

// notServed are the metrics that kubernetes-mixin asks for and that the Prometheus of
// TestKubernetesMixin lacks, and why.
var notServed = map[string]string{
	"container_network_receive_packets_total":          "weir does not read packets",
	"container_network_transmit_packets_total":         "weir does not read packets",
	"container_network_receive_packets_dropped_total":  "weir does not read packets",
	"container_network_transmit_packets_dropped_total": "weir does not read packets",
	"container_fs_reads_total":                         "weir does not read numbers of operations",
	"container_fs_writes_total":                        "weir does not read numbers of operations",
	"container_fs_reads_bytes_total":                   "the simulator has no devices",
	"container_fs_writes_bytes_total":                  "the simulator has no devices",
	"kube_resourcequota":                               "weir does not read ResourceQuotas",
	"node_cpu_seconds_total":                           "node-exporter's",
	"node_memory_MemAvailable_bytes":                   "node-exporter's",
	"node_memory_MemTotal_bytes":                       "node-exporter's",
	"node:node_num_cpu:sum":                            "recorded from node-exporter's",
	":node_memory_MemAvailable_bytes:sum":              "recorded from node-exporter's",
	"node:node_cpu_utilization:ratio_rate5m":           "recorded from node-exporter's",
	"cluster:node_cpu:ratio_rate5m":                    "recorded from node-exporter's",
}

var metricName = regexp.MustCompile(`[a-z:_][a-zA-Z0-9:_]{5,}`)

// missing returns why a query has no data; empty if it should have some.
func missing(query string) string {
	for _, name := range metricName.FindAllString(query, -1) {
		if why := notServed[name]; why != "" {
			return name + ": " + why
		}
	}
	return ""
}

// TestKubernetesMixin has a Prometheus scrape only weir, with the configuration in deploy/alerts, and
// evaluate the recording rules of kubernetes-mixin. Each rule, and each query of the dashboards
// "Compute Resources", must have data.
func TestKubernetesMixin(t *testing.T) {
	dir := t.TempDir()
	kubeconfig, ca := filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "ca.pem")
	commands.Start(t, "weir-simulate", "--nodes=3", "--fresh", "--listen-port=0", "--ca-file="+ca, "--api-server="+promtest.Address(t), "--kubeconfig-file="+kubeconfig)
	commands.Eventually(t, 30*time.Second, func() error { _, err := os.Stat(kubeconfig); return err })
	w := commands.Start(t, "weir", "server", "--listen=127.0.0.1:0", "--metric-resolution=5s", "--kubeconfig="+kubeconfig,
		"--source=kubelet:?endpoint=cadvisor&ca="+ca)
	rules, err := filepath.Abs("testdata/kubernetes-mixin/rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	url, log := promtest.Start(t, dir, mixinConfig(t, strings.TrimPrefix(w.Address(t), "http://"), rules))
	client, err := history.New(history.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	query := func(q string) ([]map[string]string, error) {
		answer, err := client.Query(t.Context(), q, time.Now())
		if err != nil {
			return nil, fmt.Errorf("%s: %w", q, err)
		}
		var all []map[string]string
		for _, s := range answer.Series {
			all = append(all, s.Labels)
		}
		if len(all) == 0 {
			return nil, fmt.Errorf("%s: no data", q)
		}
		return all, nil
	}

	var chosen map[string]string // a pod that has everything
	commands.Eventually(t, 2*time.Minute, func() error {
		found, err := query(`kube_pod_container_resource_limits{resource="cpu"}
			* on (namespace, pod) group_left(workload, workload_type) namespace_workload_pod:kube_pod_owner:relabel{workload_type="deployment"}
			and on (namespace, pod) rate(container_network_receive_bytes_total[1m]) and on (namespace, pod) rate(container_cpu_cfs_periods_total[1m])
			and on (namespace, pod) node_namespace_pod_container:container_cpu_usage_seconds_total:sum_rate5m`)
		if err == nil {
			chosen = found[0]
		}
		return err
	})
	fill := strings.NewReplacer("$cluster", "", "$namespace", chosen["namespace"], "$pod", chosen["pod"], "$node", chosen["node"],
		"$workload", chosen["workload"], "$type", chosen["workload_type"], "$__rate_interval", "1m")

	asked := map[string]string{}
	var groups struct {
		Groups []struct{ Rules []struct{ Record string } }
	}
	readYAML(t, "testdata/kubernetes-mixin/rules.yaml", &groups)
	for _, g := range groups.Groups {
		for _, r := range g.Rules {
			asked["rule "+r.Record] = `{__name__="` + r.Record + `"}`
		}
	}
	dashboards := map[string]string{}
	readYAML(t, "testdata/kubernetes-mixin/queries.yaml", &dashboards)
	maps.Copy(asked, dashboards)
	with, without := 0, map[string]int{}
	for _, name := range slices.Sorted(maps.Keys(asked)) {
		q := fill.Replace(asked[name])
		why := missing(q)
		if why != "" {
			without[why]++
			if strings.Contains(why, "kube_resourcequota") {
				continue // scalar() of nothing is NaN, so there is always an answer
			}
		}
		// A rule is evaluated some seconds after its inputs are there.
		deadline := time.Now().Add(10 * time.Second)
		_, err := query(q)
		for err != nil && why == "" && time.Now().Before(deadline) {
			_, err = query(q)
		}
		switch {
		case err != nil && why == "":
			t.Errorf("%s: %v", name, err)
		case err == nil && why != "":
			t.Errorf("%s has data although %s: take it off the list", name, why)
		case err == nil:
			with++
		}
	}
	for _, kind := range []string{"deployment", "daemonset", "statefulset", "staticpod"} {
		if _, err := query(`namespace_workload_pod:kube_pod_owner:relabel{workload_type="` + kind + `"}`); err != nil {
			t.Error(err)
		}
	}
	t.Logf("%d of %d rules and queries have data; without: %v", with, len(asked), without)
	if t.Failed() {
		t.Logf("Prometheus wrote:\n%s", log())
	}
}

// mixinConfig returns the scrape configuration in deploy/alerts, with another target, and the rules.
func mixinConfig(t *testing.T, target, rules string) string {
	t.Helper()
	config := map[string]any{}
	readYAML(t, "../../deploy/alerts/kubernetes-mixin.yaml", &config)
	jobs, _ := config["scrape_configs"].([]any)
	if len(jobs) != 1 {
		t.Fatal(errors.New("want one job"))
	}
	job, _ := jobs[0].(map[string]any)
	for _, name := range []string{"scheme", "authorization", "tls_config", "scrape_timeout"} {
		delete(job, name)
	}
	job["static_configs"] = []any{map[string]any{"targets": []string{target}}}
	config["global"] = map[string]any{"scrape_interval": "1s", "evaluation_interval": "1s"}
	config["rule_files"] = []string{rules}
	text, err := yaml.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func readYAML(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}
