//go:build e2e

package install

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	metricsclient "k8s.io/metrics/pkg/client/clientset/versioned"

	"github.com/weir-metrics/weir/deploy/dashboards"
	"github.com/weir-metrics/weir/internal/history"
	"github.com/weir-metrics/weir/test/cluster/harness"
	"github.com/weir-metrics/weir/test/promtest"
)

const (
	chart = root + "/deploy/helm/weir"
	// values are those that metrics-server's chart itself is tested with: the cluster's kubelets
	// sign their own certificates, too.
	values = root + "/deploy/testdata/metrics-server/ci-values.yaml"
)

// cluster is a cluster with Helm.
type cluster struct {
	*harness.Cluster
	path string // of helm
}

func startForHelm(t *testing.T) *cluster {
	t.Helper()
	path, err := exec.Command("go", "tool", "-n", "-modfile="+root+"/internal/tools/helm/go.mod", "helm").Output()
	if err != nil {
		t.Fatalf("build helm: %v", err)
	}
	c, err := harness.Start(t.Context(), harness.Options{Name: fmt.Sprintf("chart-%d", os.Getpid()), Progress: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := c.Down(ctx); err != nil {
			t.Error(err)
		}
	})
	if err := c.LoadImage(t.Context(), filepath.Join(root, "bin", "weir-image.tar")); err != nil {
		t.Fatalf("load weir's image (make image writes it): %v", err)
	}
	return &cluster{c, strings.TrimSpace(string(path))}
}

func (c *cluster) helm(t *testing.T, args ...string) string {
	t.Helper()
	began := time.Now()
	cmd := exec.CommandContext(t.Context(), c.path, append(args, "--kubeconfig="+c.Kubeconfig())...)
	cmd.Env = append(os.Environ(), "HOME="+c.Dir(), "NO_PROXY=*", "no_proxy=*")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		state, _, _ := c.Kubectl(context.Background(), "get", "all,events,apiservices", "-A", "-o", "wide")
		t.Fatalf("helm %s: %v\n%s\n%s", strings.Join(args, " "), err, &stderr, state)
	}
	t.Logf("helm %s: %s", strings.Join(args[:2], " "), time.Since(began).Round(100*time.Millisecond))
	return string(out)
}

func (c *cluster) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	out, _, err := c.Kubectl(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// metricsServer writes a chart that installs metrics-server with the names, selectors and labels of
// its own chart, and returns its folder. The manifests are those of test/apis.
func metricsServer(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, "test", "apis", "testdata", "metrics-server", "metrics-server.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(data), "\n---\n") // without the Namespace
	text = strings.ReplaceAll(text, "namespace: metrics-server", "namespace: kube-system")
	text = regexp.MustCompile(`(?m)^( *)k8s-app: metrics-server$`).ReplaceAllString(text, "${1}app.kubernetes.io/name: metrics-server\n${1}app.kubernetes.io/instance: metrics-server")
	// Ready as soon as it has numbers.
	text = strings.NewReplacer("initialDelaySeconds: 20", "initialDelaySeconds: 1", "periodSeconds: 10", "periodSeconds: 1", "resolution=15s", "resolution=12s").Replace(text)
	text += `
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata:
  name: v1beta1.metrics.k8s.io
spec:
  group: metrics.k8s.io
  version: v1beta1
  groupPriorityMinimum: 100
  versionPriority: 100
  insecureSkipTLSVerify: true
  service: {name: metrics-server, namespace: kube-system, port: 443}
`
	dir := t.TempDir()
	for name, text := range map[string]string{
		"Chart.yaml":         "apiVersion: v2\nname: metrics-server\nversion: 3.13.1\n",
		"templates/all.yaml": text,
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// metrics returns a client of metrics.k8s.io.
func (c *cluster) metrics(t *testing.T) *metricsclient.Clientset {
	t.Helper()
	config, err := c.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	http, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(http.CloseIdleConnections)
	client, err := metricsclient.NewForConfigAndClient(config, http)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// nodeMeasured returns an error unless the cluster's one node has metrics.
func nodeMeasured(t *testing.T, client *metricsclient.Clientset) error {
	list, err := client.MetricsV1beta1().NodeMetricses().List(t.Context(), metav1.ListOptions{})
	if err == nil && len(list.Items) != 1 {
		err = fmt.Errorf("%d nodes have metrics", len(list.Items))
	}
	return err
}

// define applies files with CustomResourceDefinitions.
func (c *cluster) define(t *testing.T, files ...string) {
	t.Helper()
	for _, file := range files {
		c.kubectl(t, "apply", "--server-side", "-f", file)                 // too large for an annotation
		await(t, file+" to be established", 30*time.Second, func() error { // kubectl fails while there is no status
			_, _, err := c.Kubectl(t.Context(), "wait", "--for=condition=Established", "--timeout=30s", "-f", file)
			return err
		})
	}
}

// TestChart lets weir's chart take over a release of metrics-server and gives it back. Then it
// installs all that the chart has, and removes it. It is one test because it needs a cluster.
func TestChart(t *testing.T) {
	c := startForHelm(t)
	tarball := filepath.Join(t.TempDir(), "image.tar")
	program, err := harness.BuildMetricsServer(t.Context(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	if err := c.BuildImage(t.Context(), tarball, "weir.test/metrics-server:v0.9.0", program); err != nil {
		t.Fatal(err)
	}
	if err := c.LoadImage(t.Context(), tarball); err != nil {
		t.Fatal(err)
	}
	client := c.metrics(t)
	nodes := func() error { return nodeMeasured(t, client) }
	top := func() error {
		_, _, err := c.Kubectl(t.Context(), "top", "nodes")
		return err
	}
	// The operators themselves do not run. Their definitions check what the chart has for them.
	c.define(t, definitions(t)...)
	c.createPrometheusAccount(t)
	before := c.objects(t)

	c.helm(t, "install", "metrics-server", metricsServer(t), "--namespace=kube-system", "--values="+values,
		"--set=image.tag=v0.9.0", "--wait", "--timeout=2m")
	await(t, "metrics-server to serve", time.Minute, nodes)

	c.kubectl(t, "create", "namespace", "short")
	failed, failedTop := probe(t, "LIST", nodes), probe(t, "kubectl top", top)
	deleted := make(chan time.Duration, 1) // of a namespace during the upgrade
	time.AfterFunc(2*time.Second, func() {
		began := time.Now()
		if _, _, err := c.Kubectl(t.Context(), "delete", "namespace", "short", "--timeout=1m"); err != nil {
			t.Errorf("delete a namespace during the upgrade: %v", err)
		}
		deleted <- time.Since(began)
	})
	c.helm(t, "upgrade", "metrics-server", chart, "--namespace=kube-system", "--reset-then-reuse-values", "--set=nameOverride=metrics-server", "--wait", "--timeout=2m")
	if image := c.kubectl(t, "-n", "kube-system", "get", "deployment", "metrics-server", "-o", "jsonpath={.spec.template.spec.containers[*].image}"); image != "weir.invalid/weir:dev" {
		t.Errorf("the Deployment metrics-server has the image %s, want weir's", image)
	}
	c.kubectl(t, "get", "clusterrole", "system:metrics-server-aggregated-reader") // bindings may name it
	await(t, "v1 of metrics.k8s.io, which metrics-server does not have", time.Minute, func() error {
		_, err := client.RESTClient().Get().AbsPath("/apis/metrics.k8s.io/v1/nodes/" + c.Node()).DoRaw(t.Context())
		return err
	})
	if out := c.kubectl(t, "top", "nodes"); !strings.Contains(out, c.Node()) {
		t.Errorf("kubectl top nodes: %s", out)
	}
	// metrics-server's pod ends at once, while some requests still go to it.
	t.Logf("a namespace was deleted in %v during the upgrade", <-deleted)
	if n, top := failed(), failedTop(); n > 5 || top > 5 {
		t.Errorf("%d LISTs and %d kubectl top failed during the upgrade, want at most those of a second, 5", n, top)
	}
	failed, failedTop = probe(t, "LIST", nodes), probe(t, "kubectl top", top)
	c.helm(t, "rollback", "metrics-server", "--namespace=kube-system", "--wait", "--timeout=2m")
	if n, top := failed(), failedTop(); n > 0 || top > 0 {
		t.Errorf("%d LISTs and %d kubectl top failed during the rollback, want none", n, top)
	}
	c.helm(t, "uninstall", "metrics-server", "--namespace=kube-system", "--wait", "--timeout=1m")

	// Everything that the chart has, except what cert-manager would have to fill.
	all := []string{"weir", chart, "--namespace=weir-system", "--values=" + values,
		"--set=replicas=2,shareReads=true,agent.enabled=true,agent.eviction=evict,agent.conditions=true,autoscaler.enabled=true,hpaEvents.enabled=true,customMetrics.enabled=true,networkPolicy.enabled=true,tls.type=helm,serviceMonitor.enabled=true,serviceMonitor.agentTLSConfig.insecureSkipVerify=true,prometheusRule.enabled=true,dashboards.enabled=true,events.enabled=true,defaultArgs={--shadow-hpa}"}
	c.kubectl(t, "create", "namespace", "weir-system")
	c.kubectl(t, "create", "namespace", "weir-agents") // a dry run creates none
	for _, more := range []string{"tls.type=helm", "tls.type=cert-manager,tls.certManager.duration=2160h,tls.certManager.renewBefore=360h,serviceMonitor.interval=30s,serviceMonitor.scrapeTimeout=10s"} {
		manifests := filepath.Join(t.TempDir(), "all.yaml")
		if err := os.WriteFile(manifests, []byte(c.helm(t, append(append([]string{"template"}, all...), "--set="+more)...)), 0o600); err != nil {
			t.Fatal(err)
		}
		c.kubectl(t, "apply", "--dry-run=server", "--validate=strict", "-f", manifests)
	}
	c.kubectl(t, "delete", "namespace", "weir-agents")
	c.helm(t, append(append([]string{"install"}, all...), "--wait", "--timeout=2m")...)
	c.kubectl(t, "-n", "weir-system", "get", "servicemonitors/weir", "prometheusrules/weir")
	c.kubectl(t, "-n", "weir-agents", "get", "servicemonitors/weir-agent", "service/weir-agent")
	prometheus := c.scrape(t)
	await(t, "weir to serve", time.Minute, nodes)
	if out := c.kubectl(t, "top", "pods", "-n", "weir-system"); strings.Count(out, "\nweir-") != 2 {
		t.Errorf("kubectl top pods: %s", out)
	}
	await(t, "weir to have the Events of its pods", time.Minute, func() error {
		answer, err := client.RESTClient().Get().AbsPath("/apis/weir.dev/v1alpha1/namespaces/weir-system/events").DoRaw(t.Context())
		if err == nil && !strings.Contains(string(answer), `"Scheduled"`) {
			err = fmt.Errorf("it has %s", answer)
		}
		return err
	})
	// The cluster's HPA controller reads what weir itself uses. It cannot scale.
	c.kubectl(t, "-n", "weir-system", "autoscale", "deployment", "weir", "--cpu=50%", "--min=2", "--max=2")
	await(t, "the HPA to have a number", time.Minute, func() error {
		if c.kubectl(t, "-n", "weir-system", "get", "hpa", "weir", "-o", "jsonpath={.status.currentMetrics[*].resource.current.averageUtilization}") == "" {
			return errors.New("it has none")
		}
		return nil
	})
	testDashboards(t, prometheus)
	c.kubectl(t, "-n", "weir-system", "delete", "hpa", "weir")
	c.helm(t, "uninstall", "weir", "--namespace=weir-system", "--wait", "--timeout=1m")
	c.awaitNothingBut(t, before, "Namespace/weir-system")
}

// awaitNothingBut waits until the cluster has only the objects of before and those of left.
func (c *cluster) awaitNothingBut(t *testing.T, before []string, left ...string) {
	t.Helper()
	await(t, "nothing to be left of weir", time.Minute, func() error {
		got := slices.DeleteFunc(c.objects(t), func(o string) bool { return slices.Contains(before, o) })
		if diff := cmp.Diff(left, got); diff != "" {
			return fmt.Errorf("what is left (-want +got):\n%s", diff)
		}
		return nil
	})
}

// createPrometheusAccount creates the service account of a Prometheus, with the rights that
// docs/install.md gives it.
func (c *cluster) createPrometheusAccount(t *testing.T) {
	t.Helper()
	c.kubectl(t, "create", "namespace", "monitoring")
	c.kubectl(t, "-n", "monitoring", "create", "serviceaccount", "prometheus")
	n := 0
	for _, step := range stepsOf(t, "docs/install.md", "## Alerts") {
		if args, ok := strings.CutPrefix(step.Command, "kubectl create clusterrole"); ok {
			n++
			c.kubectl(t, strings.Fields("create clusterrole"+strings.ReplaceAll(args, "MONITORING:PROMETHEUS", "monitoring:prometheus"))...)
		}
	}
	if n != 3 {
		t.Fatalf("docs/install.md has %d commands that give Prometheus its rights, want 3", n)
	}
}

// discovered finds how deploy/alerts/prometheus.yaml selects pods.
var discovered = regexp.MustCompile(`kubernetes_sd_configs:\n.*\n +namespaces: \{names: \[(.*)\]\}\n.*\n.*label: (.*)\}`)

// scrape starts a Prometheus with the configuration in deploy/alerts. It runs on this machine with the
// token of its account, without the cluster's DNS and the files of a pod. Debian's Prometheus has no
// discovery of Kubernetes, so the pods that the selectors find are its targets.
func (c *cluster) scrape(t *testing.T) *history.Client {
	t.Helper()
	config, err := os.ReadFile(filepath.Join(root, "deploy", "alerts", "prometheus.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	token := filepath.Join(dir, "token")
	if err := os.WriteFile(token, []byte(c.kubectl(t, "-n", "monitoring", "create", "token", "prometheus")), 0o600); err != nil {
		t.Fatal(err)
	}
	ca := filepath.Join(dir, "ca.crt")
	certificate, err := base64.StdEncoding.DecodeString(c.kubectl(t, "-n", "weir-system", "get", "secret", "weir-serving-cert", "-o", `jsonpath={.data.tls\.crt}`))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(ca, certificate, 0o600); err != nil {
		t.Fatal(err)
	}
	here := strings.NewReplacer(
		"ca_file: /etc/prometheus/weir/agents-ca.crt", "insecure_skip_verify: true", // agents sign their own here
		"/etc/prometheus/weir/ca.crt", ca,
		"- weir-rules.yaml", "",
		"scrape_timeout: 10s", "",
		"/var/run/secrets/kubernetes.io/serviceaccount/token", token,
		"[weir.weir-system.svc:", "["+c.kubectl(t, "-n", "weir-system", "get", "service", "weir", "-o", "jsonpath={.spec.clusterIP}")+":",
	).Replace(string(config))
	here = discovered.ReplaceAllStringFunc(here, func(found string) string {
		by := discovered.FindStringSubmatch(found)
		targets := c.kubectl(t, "-n", by[1], "get", "pods", "-l", by[2], "-o", "jsonpath={range .items[*]}'{.status.podIP}:{.spec.containers[0].ports[0].containerPort}',{end}")
		return "static_configs: [{targets: [" + targets + "]}]"
	})
	_, client := promtest.StartClient(t, dir, "global: {scrape_interval: 2s, scrape_timeout: 2s}\n"+here)
	return client
}

// empty are the panels that have no data in a healthy cluster whose kubelets are
// read at /metrics/resource, which has no throttled time.
var empty = []string{"Nodes that are not read", "Time lost by CPU limits"}

// testDashboards checks that the query of each other panel has data.
func testDashboards(t *testing.T, prometheus *history.Client) {
	began := time.Now()
	fill := strings.NewReplacer("$namespace", ".*", "$__rate_interval", "1m")
	for _, d := range dashboards.All() {
		for _, row := range d.Rows {
			for _, panel := range row.Panels {
				if slices.Contains(empty, panel.Title) {
					continue
				}
				query := fill.Replace(panel.Query)
				await(t, fmt.Sprintf("data of %s, %s: %s", d.Name, panel.Title, query), time.Minute, func() error {
					answer, err := prometheus.Query(t.Context(), query, time.Now())
					if err == nil && len(answer.Series) == 0 {
						err = errors.New("there is none")
					}
					return err
				})
			}
		}
	}
	for _, mode := range []string{"server", "agent"} { // alerts tell them apart
		if answer, err := prometheus.Query(t.Context(), fmt.Sprintf("weir_build_info{mode=%q}", mode), time.Now()); err != nil || len(answer.Series) == 0 {
			t.Errorf("weir_build_info of mode %s: got %v, %v", mode, answer, err)
		}
	}
	await(t, "weir to find that it answers its APIs itself", 2*time.Minute, func() error {
		answer, err := prometheus.Query(t.Context(), "weir_api_answered_by_weir == 1", time.Now())
		if err == nil && len(answer.Series) < 3 { // metrics.k8s.io, custom metrics, weir.dev
			err = fmt.Errorf("got %v", answer.Series)
		}
		return err
	})
	t.Logf("every panel has data after another %s", time.Since(began).Round(100*time.Millisecond))
}

// definitions returns the files with the CustomResourceDefinitions of the Prometheus Operator and of
// cert-manager that the chart has objects of. They are in the Go modules of both.
func definitions(t *testing.T) (files []string) {
	t.Helper()
	for module, paths := range map[string][]string{
		"github.com/prometheus-operator/prometheus-operator@v0.85.0": {
			"example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml",
			"example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml",
		},
		"github.com/cert-manager/cert-manager@v1.21.2": {
			"deploy/crds/cert-manager.io_issuers.yaml",
			"deploy/crds/cert-manager.io_certificates.yaml",
		},
	} {
		cmd := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", module)
		cmd.Dir = t.TempDir() // not a module that requires it
		out, err := cmd.Output()
		var downloaded struct{ Dir string }
		if err := errors.Join(err, json.Unmarshal(out, &downloaded)); err != nil {
			t.Fatalf("download %s: %v\n%s", module, err, out)
		}
		for _, path := range paths {
			files = append(files, filepath.Join(downloaded.Dir, path))
		}
	}
	return files
}

// probe calls do, a request, five times in a second, until stop is called, which returns how many
// calls failed.
func probe(t *testing.T, request string, do func() error) (stop func() int) {
	end, failed := make(chan struct{}), make(chan int, 1)
	go func() {
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		n, all := 0, 0
		for {
			select {
			case <-t.Context().Done(): // the test has failed
				return
			case <-end:
				t.Logf("%s: %d of %d failed", request, n, all)
				failed <- n
				return
			case <-tick.C:
			}
			all++
			if err := do(); err != nil {
				n++
				t.Logf("%s %d: %v", request, all, err)
			}
		}
	}()
	return func() int { close(end); return <-failed }
}

// objects returns the names of all objects of the cluster, except Events, the Leases of nodes, which
// kubelets create some time after they are ready, and what Kubernetes keeps in each namespace.
func (c *cluster) objects(t *testing.T) (list []string) {
	t.Helper()
	kinds := strings.Fields(c.kubectl(t, "api-resources", "--verbs=list", "-o", "name"))
	kinds = slices.DeleteFunc(kinds, func(k string) bool {
		return strings.HasPrefix(k, "events") || strings.Contains(k, "metrics.k8s.io") || strings.HasSuffix(k, "weir.dev")
	})
	for name := range strings.Lines(c.kubectl(t, "get", strings.Join(kinds, ","), "-A", "-o", `go-template={{range .items}}{{.kind}}/{{with .metadata.namespace}}{{.}}/{{end}}{{.metadata.name}}{{"\n"}}{{end}}`)) {
		name = strings.TrimSpace(name)
		if !strings.HasSuffix(name, "/kube-root-ca.crt") && !strings.HasPrefix(name, "Lease/kube-node-lease/") && name != "ServiceAccount/weir-system/default" {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}
