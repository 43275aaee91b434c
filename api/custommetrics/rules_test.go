package custommetrics

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	genericserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/apiserver"
	generated "sigs.k8s.io/custom-metrics-apiserver/pkg/generated/openapi/custommetrics"

	"github.com/weir-metrics/weir/api/externalmetrics"
	"github.com/weir-metrics/weir/test/apitest"
	"github.com/weir-metrics/weir/test/background"
	"github.com/weir-metrics/weir/test/promtest"
)

// exposition is the text that the Prometheus of the tests scrapes. The pods are those of village.
const exposition = `# TYPE requests gauge
requests{namespace="shop",pod="web-0",path="a.b"} 12.5
requests{namespace="shop",pod="web-0",path="axb"} 100
requests{namespace="shop",pod="web-1",path="a.b"} 3
requests{namespace="shop",pod="other-owner",path="a.b"} 7
requests{namespace="kube-system",pod="web-0",path="a.b"} 1000
# TYPE errors gauge
errors{namespace="shop",pod="web-0"} 0
# TYPE front gauge
front{exported_namespace="shop",ingress="front"} 40
front{exported_namespace="shop",ingress="side"} 2
front{exported_namespace="bank",ingress="front"} 9
# TYPE load gauge
load{node="n1"} 0.25
`

const objectRules = `prometheus:
  url: %s
metrics:
  - name: requests
    for: pod
    query: sum by (pod) (requests)
  - name: cpu_usage_cores
    for: pod
    query: sum by (pod) (requests) * 0 + 4
  - name: share
    for: pod
    query: errors / errors
  - name: requests
    for: namespace
    query: sum by (namespace) (requests)
  - name: requests
    for: {group: apps, resource: deployments, label: ingress}
    namespaceLabel: exported_namespace
    query: sum by (ingress) (front)
  - name: load
    for: node
    query: load
  - name: broken
    for: pod
    query: sum(
`

// inFolder matches the file of rules with its folder.
var inFolder = regexp.MustCompile(`/\S+/rules\.yaml`)

// byRules returns a fixture and the rules, with the URL of a real Prometheus.
func byRules(t *testing.T) (*fixture, *externalmetrics.Provider) {
	t.Helper()
	url := promtest.Scraped(t, exposition, "count(load) == 1")
	file := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, objectRules, url), 0o600); err != nil {
		t.Fatal(err)
	}
	rules, err := externalmetrics.New(externalmetrics.Options{File: file, Reread: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(rules.Close)
	return village(t), rules
}

func serveRules(t *testing.T, w *fixture, rules RuleMetrics) *rest.Config {
	t.Helper()
	o := w.options()
	o.Rules = rules
	return apitest.Serve(t, apiserver.Scheme, generated.GetOpenAPIDefinitions, func(s *genericserver.GenericAPIServer) error {
		return Install(s, New(o))
	})
}

// withoutTime removes the time from lines, because Prometheus' time is the present.
func withoutTime(lines string) string {
	all := strings.Split(lines, "\n")
	for i, l := range all {
		before, rest, found := strings.Cut(l, " at ")
		if _, window, ok := strings.Cut(rest, " over "); found && ok {
			all[i] = before + " over " + window
		}
	}
	return strings.Join(all, "\n")
}

// TestRulesOfARealPrometheus asks as an autoscaler does, through a real API server.
func TestRulesOfARealPrometheus(t *testing.T) {
	w, rules := byRules(t)
	config := serveRules(t, w, rules)
	c, warnings := client(t, config)
	shop := c.NamespacedMetrics("shop")
	for _, test := range []struct{ kind, selector, metric, metricSelector, want, warning string }{
		{"Pod", "app=web", "requests", "", "Pod shop/web-0 112500m over -\nPod shop/web-1 3 over -", "2 of 4 pods have no series of requests: web-lost and web-young"},
		{"Pod", "app=web", "requests", "path=a.b", "Pod shop/web-0 12500m over -\nPod shop/web-1 3 over -", "2 of 4 pods have no series of requests: web-lost and web-young"},
		{"Pod", "app=web", "requests", "path in (a.b,none)", "Pod shop/web-0 12500m over -\nPod shop/web-1 3 over -", "2 of 4 pods have no series of requests: web-lost and web-young"},
		// The rule answers, not weir's own measurement.
		{"Pod", "app=web", "cpu_usage_cores", "", "Pod shop/web-0 4 over -\nPod shop/web-1 4 over -", "2 of 4 pods have no series of cpu_usage_cores: web-lost and web-young"},
		{"Pod", "app=web", "memory_rss_bytes", "", "", ""},
		{"Pod", "app=api", "requests", "", "pods shop/api has no requests: no series of the query of requests has pod=api", ""},
		{"Pod", "app=none", "requests", "", "no pods in namespace shop have labels that match app=none", ""},
		{"Pod", "app=web", "share", "", "the query of share returns NaN for pod=web-0: perhaps it divides by zero", ""},
		{"Pod", "app=web", "requests", "path=none", "pods shop/web-0 has no requests: the query of requests returns nothing for namespace=shop,path=none", ""},
		{"Deployment.apps", "", "requests", "", "Deployment shop/front 40 over -\nDeployment shop/side 2 over -", ""},
		{"Deployment.apps", "a=b", "requests", "", "this weir does not know the labels of deployments.apps: leave the label selector out, or ask for one by its name", ""},
	} {
		got := list(t, shop, test.kind, test.selector, test.metric, test.metricSelector)
		said := strings.Join(warnings.Take(), "\n")
		if test.want == "" {
			if strings.Contains(got, "rule") {
				t.Errorf("%s of weir itself: got %s", test.metric, got)
			}
			continue
		}
		if got := withoutTime(got); got != test.want || said != test.warning {
			t.Errorf("%s{%s} of %s{%s}\n got %s\n     %s\nwant %s\n     %s", test.metric, test.metricSelector, test.kind, test.selector, got, said, test.want, test.warning)
		}
	}
	for _, test := range []struct {
		group, object, metric, want string
	}{
		{"", "Pod shop/web-1", "requests", "Pod shop/web-1 3 over -"},
		{"", "Pod kube-system/web-0", "requests", "Pod kube-system/web-0 1k over -"},
		{"", "Pod shop/none", "requests", "pods shop/none has no requests: no series of the query of requests has pod=none"},
		{"", "Namespace shop", "requests", "Namespace shop 122500m over -"},
		{"", "Node n1", "load", "Node n1 250m over -"},
		{"", "Node n2", "load", "nodes n2 has no load: no series of the query of load has node=n2"},
		{"apps", "Deployment shop/front", "requests", "Deployment shop/front 40 over -"},
		{"apps", "Deployment bank/side", "requests", "deployments.apps bank/side has no requests: no series of the query of requests has ingress=side"},
		{"", "Pod shop/web-0", "broken", "the rule of broken has a mistake: rules.yaml:25:16: query does not parse: unclosed left parenthesis"},
		{"", "Pod shop/web-0", "other", "pods have no metric other: no rule defines it; GET /apis/custom.metrics.k8s.io/v1beta2 lists those there are"},
		{"apps", "Deployment shop/front", "other", "deployments.apps have no metric other: no rule defines it; GET /apis/custom.metrics.k8s.io/v1beta2 lists those there are"},
	} {
		kind, of, _ := strings.Cut(test.object, " ")
		m := c.RootScopedMetrics()
		if namespace, name, ok := strings.Cut(of, "/"); ok {
			m, of = c.NamespacedMetrics(namespace), name
		}
		v, err := m.GetForObject(schema.GroupKind{Group: test.group, Kind: kind}, of, test.metric, mustParse(t, ""))
		got := inFolder.ReplaceAllString(fmt.Sprint(err), "rules.yaml")
		if err == nil {
			got = withoutTime(line(v))
			if age := time.Since(v.Timestamp.Time); age < -time.Second || age > time.Minute {
				t.Errorf("%s of %s is of %v ago, want now", test.metric, test.object, age)
			}
		}
		if got != test.want {
			t.Errorf("%s of %s\n got %s\nwant %s", test.metric, test.object, got, test.want)
		}
	}
}

// Discovery has the rules beside weir's own metrics, and follows them at once.
func TestRulesAreDiscovered(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rules.yaml")
	write := func(rules string) {
		t.Helper()
		if err := os.WriteFile(file+".new", []byte("prometheus: {url: http://127.0.0.1:1}\nmetrics:\n"+rules), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+".new", file); err != nil {
			t.Fatal(err)
		}
	}
	write("- {name: requests, for: pod, query: x}\n- {name: cpu_usage_cores, for: pod, query: x}\n")
	rules, err := externalmetrics.New(externalmetrics.Options{File: file, Reread: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	background.Run(t, rules.Run)
	d, err := discovery.NewDiscoveryClientForConfig(serveRules(t, village(t), rules))
	if err != nil {
		t.Fatal(err)
	}
	discovered := func(aggregated bool) (names []string) {
		if aggregated {
			_, byVersion, _, err := d.GroupsAndMaybeResources()
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range byVersion[schema.GroupVersion{Group: "custom.metrics.k8s.io", Version: "v1beta2"}].APIResources {
				names = append(names, r.Name)
			}
			return names
		}
		l, err := d.ServerResourcesForGroupVersion("custom.metrics.k8s.io/v1beta2")
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range l.APIResources {
			names = append(names, r.Name)
		}
		return names
	}
	own := len(catalogue())
	for _, aggregated := range []bool{false, true} {
		if got := discovered(aggregated); len(got) != own+1 || !slices.Contains(got, "pods/requests") {
			t.Errorf("aggregated %v: %d metrics, want %d with pods/requests", aggregated, len(got), own+1)
		}
	}
	write("- {name: lag, for: {group: example.com, resource: replicators, label: x}, query: x}\n")
	deadline := time.Now().Add(20 * time.Second)
	for _, aggregated := range []bool{false, true} {
		var got []string
		for time.Now().Before(deadline) {
			if got = discovered(aggregated); slices.Contains(got, "replicators.example.com/lag") {
				break
			}
			<-time.After(10 * time.Millisecond)
		}
		if diff := cmp.Diff(own+1, len(got)); diff != "" || slices.Contains(got, "pods/requests") {
			t.Errorf("aggregated %v: %d metrics after a change, want %d with replicators.example.com/lag", aggregated, len(got), own+1)
		}
	}
}
