//go:build e2e

package local

import (
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/weir-metrics/weir/internal/history"
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
	url, log := promtest.Start(t, dir, marshalYAML(t, map[string]any{
		"global":         map[string]any{"scrape_interval": "1s", "evaluation_interval": "1s"},
		"rule_files":     []string{rules},
		"scrape_configs": []any{mixinJob(t, map[string]any{"targets": []string{strings.TrimPrefix(w.Address(t), "http://")}})},
	}))
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

	asked := mixinQueries(t)
	for name := range asked {
		if record, ok := strings.CutPrefix(name, "rule "); ok {
			asked[name] = `{__name__="` + record + `"}`
		}
	}
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

// mixinQueries returns the expressions of kubernetes-mixin's rules, as "rule NAME", and the queries of
// its dashboards.
func mixinQueries(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	readYAML(t, "testdata/kubernetes-mixin/queries.yaml", &all)
	var groups struct {
		Groups []struct {
			Rules []struct{ Record, Expr string }
		}
	}
	readYAML(t, "testdata/kubernetes-mixin/rules.yaml", &groups)
	for _, g := range groups.Groups {
		for _, r := range g.Rules {
			all["rule "+r.Record] = r.Expr
		}
	}
	return all
}

// mixinJob returns the scrape in deploy/alerts/kubernetes-mixin.yaml, with other targets and labels.
func mixinJob(t *testing.T, targets map[string]any) map[string]any {
	t.Helper()
	var config struct {
		Jobs []map[string]any `json:"scrape_configs"`
	}
	readYAML(t, "../../deploy/alerts/kubernetes-mixin.yaml", &config)
	if len(config.Jobs) != 1 {
		t.Fatal("kubernetes-mixin.yaml: want one job")
	}
	job := config.Jobs[0]
	for _, name := range []string{"scheme", "authorization", "tls_config", "scrape_timeout"} {
		delete(job, name)
	}
	job["static_configs"] = []any{targets}
	return job
}

func marshalYAML(t *testing.T, v any) string {
	t.Helper()
	text, err := yaml.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestKubernetesMixinBesideKubelets has a Prometheus scrape the kubelets' own cAdvisor as the cluster
// "kubelets", and weir as the cluster "weir". Where both have a value, the rules and queries of
// kubernetes-mixin must give the same within 1%. Ranges are a minute instead of five, so that the test
// need not wait for five.
func TestKubernetesMixinBesideKubelets(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	kubeconfig, ca, targets := filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "ca.pem"), filepath.Join(dir, "targets")
	commands.Start(t, "weir-simulate", "--nodes=3", "--listen-port=0", "--ca-file="+ca, "--targets-file="+targets, "--api-server="+promtest.Address(t), "--kubeconfig-file="+kubeconfig)
	var kubelets []string
	commands.Eventually(t, 30*time.Second, func() error {
		if _, err := os.Stat(kubeconfig); err != nil {
			return err
		}
		text, err := os.ReadFile(targets)
		for _, line := range strings.Fields(string(text)) {
			_, address, _ := strings.Cut(line, "=")
			kubelets = append(kubelets, address)
		}
		return err
	})
	w := commands.Start(t, "weir", "server", "--listen=127.0.0.1:0", "--metric-resolution=5s", "--kubeconfig="+kubeconfig,
		"--source=kubelet:?endpoint=cadvisor&ca="+ca)
	address := []string{strings.TrimPrefix(w.Address(t), "http://")}
	facts := mixinJob(t, map[string]any{"targets": address, "labels": map[string]string{"cluster": "kubelets"}})
	facts["job_name"], facts["params"] = "facts", map[string]any{"names": []string{"kubernetes"}, "metric": []string{"kube_*"}}
	begin := time.Now()
	url, log := promtest.Start(t, dir, marshalYAML(t, map[string]any{
		"global": map[string]any{"scrape_interval": "2s"},
		"scrape_configs": []any{
			mixinJob(t, map[string]any{"targets": address, "labels": map[string]string{"cluster": "weir"}}),
			facts,
			map[string]any{
				"job_name": "cadvisor", "scheme": "https", "metrics_path": "/metrics/cadvisor", "tls_config": map[string]string{"ca_file": ca},
				"static_configs": []any{map[string]any{"targets": kubelets, "labels": map[string]string{"cluster": "kubelets"}}},
			},
		},
	}))
	client, err := history.New(history.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)

	// All that is compared was scraped in a whole range and is as old as weir's rounds and the
	// housekeeping of kubelets: a sample may be in the one place earlier than in the other.
	const span, lag = time.Minute, 20 * time.Second
	at := begin.Add(lag + span + 5*time.Second)
	select {
	case <-time.After(time.Until(at.Add(lag))):
	case <-t.Context().Done():
		t.Fatal(t.Context().Err())
	}
	fill := strings.NewReplacer("[5m]", "[1m]", "$__rate_interval", "1m", `namespace="$namespace"`, `namespace=~".+"`, `pod="$pod"`, `pod=~".+"`)
	values := func(query, clusterName string) map[string]float64 {
		answer, err := client.Query(t.Context(), strings.ReplaceAll(fill.Replace(query), "$cluster", clusterName), at)
		if err != nil {
			t.Fatalf("%s: %v\n%s", query, err, log())
		}
		found := map[string]float64{}
		for _, s := range answer.Series {
			if s.Labels["cluster"] != "" && s.Labels["cluster"] != clusterName {
				continue
			}
			delete(s.Labels, "cluster")
			delete(s.Labels, "instance")
			found[fmt.Sprint(s.Labels)] = s.Value
		}
		return found
	}
	compared, largest := 0, 0.0
	for name, query := range mixinQueries(t) {
		// Recorded series lag behind the newest samples of both sides, by different times.
		if !strings.Contains(query, "container_") || recorded.MatchString(query) {
			continue
		}
		own := values(query, "kubelets")
		for labels, got := range values(query, "weir") {
			want, both := own[labels]
			if !both {
				continue
			}
			compared++
			difference := 0.0
			if got != want {
				difference = math.Abs(got-want) / math.Abs(want)
			}
			if largest = max(largest, difference); difference > 0.01 {
				t.Errorf("%s %s: weir's series give %v, the kubelets' %v", name, labels, got, want)
			}
		}
	}
	t.Logf("%d values compared; the largest difference is %.2g%%", compared, 100*largest)
	if compared < 1000 {
		t.Errorf("%d values were compared, want at least 1000", compared)
	}
}

// recorded matches the name of a series that a rule records.
var recorded = regexp.MustCompile(`[a-z_]:[a-z_]`)

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
