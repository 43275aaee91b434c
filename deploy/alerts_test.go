package deploy

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/test/cmptest"
)

const alerts = "alerts"

// alert is a rule of alerts/weir-rules.yaml.
type alert struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

func readAlerts(t *testing.T) (all []alert) {
	t.Helper()
	var file struct {
		Groups []struct {
			Name  string  `json:"name"`
			Rules []alert `json:"rules"`
		} `json:"groups"`
	}
	path := filepath.Join(alerts, "weir-rules.yaml")
	if err := yaml.UnmarshalStrict(readFile(t, path), &file); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	if len(all) == 0 {
		t.Fatalf("%s: no rules", path)
	}
	return all
}

// TestAlerts runs Prometheus' own checks, and the histories in alerts/weir-rules.test.yaml.
func TestAlerts(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("no promtool in PATH: it comes with Prometheus")
	}
	for _, args := range [][]string{
		{"check", "rules", "weir-rules.yaml"},
		{"test", "rules", "weir-rules.test.yaml"},
		{"check", "config", "--syntax-only", "kubernetes-mixin.yaml"},
		{"check", "config", "--syntax-only", "prometheus.yaml"}, // the token exists only in a cluster
	} {
		cmd := exec.Command(promtool, args...)
		cmd.Dir = alerts
		out, err := cmd.CombinedOutput()
		if bytes.Contains(out, []byte("field kubernetes_sd_configs not found")) {
			t.Log("this promtool was built without Kubernetes: prometheus.yaml is not checked")
			continue
		}
		if err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// TestPrometheusShowsItsTokenToWhatItVerifies looks at the configurations that users copy.
func TestPrometheusShowsItsTokenToWhatItVerifies(t *testing.T) {
	for _, name := range []string{"prometheus.yaml", "kubernetes-mixin.yaml"} {
		var config struct {
			Jobs []struct {
				Name          string `json:"job_name"`
				Authorization any    `json:"authorization"`
				TLS           struct {
					CA       string `json:"ca_file"`
					Insecure bool   `json:"insecure_skip_verify"`
				} `json:"tls_config"`
			} `json:"scrape_configs"`
		}
		if err := yaml.Unmarshal(readFile(t, filepath.Join(alerts, name)), &config); err != nil {
			t.Fatal(err)
		}
		if len(config.Jobs) == 0 {
			t.Errorf("%s has no jobs", name)
		}
		for _, job := range config.Jobs {
			if job.Authorization != nil && (job.TLS.Insecure || job.TLS.CA == "") {
				t.Errorf("%s: job %s shows its token to what it does not verify", name, job.Name)
			}
		}
	}
}

func TestAlertsSayWhatToDo(t *testing.T) {
	seen := map[string]bool{}
	histories := string(readFile(t, filepath.Join(alerts, "weir-rules.test.yaml")))
	for _, a := range readAlerts(t) {
		if seen[a.Alert] || !strings.HasPrefix(a.Alert, "Weir") {
			t.Errorf("alert %s: want a name of its own that begins with Weir", a.Alert)
		}
		seen[a.Alert] = true
		if s := a.Labels["severity"]; s != "critical" && s != "warning" && s != "info" {
			t.Errorf("alert %s has severity %q, want critical, warning or info", a.Alert, s)
		}
		for _, name := range []string{"summary", "description", "runbook_url"} {
			if a.Annotations[name] == "" {
				t.Errorf("alert %s has no %s", a.Alert, name)
			}
		}
		if !strings.Contains(histories, a.Alert) {
			t.Errorf("no history in weir-rules.test.yaml is of alert %s", a.Alert)
		}
	}
}

var (
	reasonsIn = regexp.MustCompile(`reason=~?"([^"]*)"`)
	metricsIn = regexp.MustCompile(`\bweir_[a-z_]+`)
)

// TestAlertsKnowTheReasons compares the reasons that alerts name with weir's: every reason that
// lasts until somebody acts has an alert with severity warning or critical.
func TestAlertsKnowTheReasons(t *testing.T) {
	want, got := map[string]bool{}, map[string]bool{}
	for r := range metric.Reason(metric.NumReasons) {
		// An incomplete pod has a container with its own reason.
		if r.Severity() == metric.Broken && r != metric.Incomplete {
			want[r.String()] = true
		}
	}
	for _, a := range readAlerts(t) {
		if strings.Contains(a.Expr, "weir_autoscaler_") {
			continue // these metrics have other reasons
		}
		for _, m := range reasonsIn.FindAllStringSubmatch(a.Expr, -1) {
			for name := range strings.SplitSeq(m[1], "|") {
				if _, ok := metric.ParseReason(name); !ok {
					t.Errorf("alert %s names %q, which is no reason", a.Alert, name)
				}
				if a.Labels["severity"] != "info" {
					got[name] = true
				}
			}
		}
	}
	cmptest.Equal(t, "reasons that alerts of severity warning or critical name", slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got)))
}

// TestAlertsAreOnMetricsThatExist checks that every metric occurs in weir's source code.
func TestAlertsAreOnMetricsThatExist(t *testing.T) {
	var sources strings.Builder
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
			sources.Write(readFile(t, path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	measured := map[string]bool{}
	for i := range metric.Catalogue {
		for k := range metric.Kind(metric.NumKinds) {
			if d := &metric.Catalogue[i]; d.Kinds.Has(k) {
				measured[d.PrometheusName(k)] = true
			}
		}
	}
	for _, a := range readAlerts(t) {
		names := metricsIn.FindAllString(a.Expr, -1)
		if len(names) == 0 {
			t.Errorf("alert %s is on no metric of weir's", a.Alert)
		}
		for _, name := range names {
			if !measured[name] && !strings.Contains(sources.String(), fmt.Sprintf("%q", name)) {
				t.Errorf("alert %s is on %s, which weir does not have", a.Alert, name)
			}
		}
	}
}

// TestAlertsLeadToTheDocs checks that the links of alerts exist: pages, and in reasons.md a section
// for each reason that an alert may name.
func TestAlertsLeadToTheDocs(t *testing.T) {
	const base = "https://github.com/weir-metrics/weir/blob/main/"
	sections := map[string]bool{}
	for line := range strings.Lines(string(readFile(t, "../docs/reasons.md"))) {
		if title, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); ok && strings.HasPrefix(line, "#") {
			sections[strings.ToLower(strings.TrimSpace(title))] = true
		}
	}
	for _, a := range readAlerts(t) {
		page, ok := strings.CutPrefix(a.Annotations["runbook_url"], base)
		if !ok {
			continue // a link to another site
		}
		page, section, _ := strings.Cut(page, "#")
		readFile(t, filepath.Join("..", page))
		var want []string
		switch {
		case section == "":
		case strings.Contains(section, "$labels.reason"):
			for _, m := range reasonsIn.FindAllStringSubmatch(a.Expr, -1) {
				want = append(want, strings.Split(strings.ToLower(m[1]), "|")...)
			}
		default:
			want = []string{section}
		}
		for _, s := range want {
			if !sections[s] {
				t.Errorf("alert %s leads to docs/reasons.md#%s, which is not there", a.Alert, s)
			}
		}
	}
}
