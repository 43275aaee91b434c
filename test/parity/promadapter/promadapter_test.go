package promadapter

import (
	"cmp"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/provider"

	"github.com/weir-metrics/weir/test/apitest"
)

var (
	seed    = flag.Uint64("seed", 1, "of the random configurations; another finds others")
	configs = flag.Int("configs", 10, "how many random configurations")
	every   = flag.Int("every", 5, "of so many questions about testdata/adapter.yaml, one is asked")
)

func TestMain(m *testing.M) {
	klog.SetLogger(logr.Discard()) // of each mistake in a request, the adapter writes a line
	apitest.Main(m)
}

// question is a request to both sides. An external metric has no resource.
type question struct {
	namespace, resource, name, selector, metric, metricSelector string
	// lost is set if weir import says that the metric is not carried over.
	lost bool
}

// isPlain reports whether q asks for everything.
func (q *question) isPlain() bool {
	return q.selector == "" && q.metricSelector == "" && (q.name == "*" || q.resource == "")
}

// path returns the path and parameters of the request.
func (q *question) path() string {
	parameters := url.Values{}
	if q.resource == "" {
		if q.metricSelector != "" {
			parameters.Set("labelSelector", q.metricSelector)
		}
		return fmt.Sprintf("/apis/external.metrics.k8s.io/v1beta1/namespaces/%s/%s?%s", q.namespace, url.PathEscape(q.metric), parameters.Encode())
	}
	if q.selector != "" {
		parameters.Set("labelSelector", q.selector)
	}
	if q.metricSelector != "" {
		parameters.Set("metricLabelSelector", q.metricSelector)
	}
	path := "/apis/custom.metrics.k8s.io/v1beta2"
	switch {
	case q.resource == "namespaces":
		path += fmt.Sprintf("/namespaces/%s/metrics/%s", q.name, url.PathEscape(q.metric))
	case q.namespace != "":
		path += fmt.Sprintf("/namespaces/%s/%s/%s/%s", q.namespace, q.resource, url.PathEscape(q.name), url.PathEscape(q.metric))
	default:
		path += fmt.Sprintf("/%s/%s/%s", q.resource, url.PathEscape(q.name), url.PathEscape(q.metric))
	}
	return path + "?" + parameters.Encode()
}

// selectors choose objects, with every operator.
var selectors = []string{
	"", "app=web", "app==api", "app!=web", "app in (web,api)", "app notin (web)", "app", "!app", "app=web,track!=canary", "track=", "v=1.0", "v in (1.0,2)",
	"zone=b", "zone", "team in (a)", "tier notin (gold)", "public=yes", "none=none", "app in (web),track",
}

// metricSelectors choose series, with every operator and values that matter to regular expressions.
var metricSelectors = []string{
	"", "path=a.b", "path==axb", "path!=a.b", "path in (a.b)", "path in (a.b,x)", "path notin (a.b,x)", "path in (x)", "path in (axb,x)", "path notin (axb)", "path", "!path",
	"path=", "path in (,x)", "path in ()", "path notin ()", "code=200,path!=x", "code in (200,300)", "queue=mail", "queue=a.b", "queue in (mail,bulk)", "queue notin (mail)", "queue in (a.b,mail)", "queue",
	"!queue", "tier=1,queue!=bulk", "none=none", "none!=none", "!none", "path=say hi", "code>200", "path=a=b", "service=front",
}

// names are objects of any kind: some of objects, and some that do not exist or need care in a query.
var names = []string{"gone", "nowhere", `"`, `a"b`, ".*", "web-0|web-1", "web-.", "grün", `back\slash`, "web-0,x"}

// questionsAbout returns questions about a custom metric.
func questionsAbout(info provider.CustomMetricInfo) (all []question) {
	namespaces := []string{"shop", "bank", "idle"}
	if !info.Namespaced {
		namespaces = []string{""}
	}
	for _, namespace := range namespaces {
		base := question{namespace: namespace, resource: info.GroupResource.String(), metric: info.Metric, name: "*"}
		for _, s := range selectors {
			q := base
			q.selector = s
			all = append(all, q)
		}
		for _, s := range metricSelectors {
			q := base
			q.metricSelector = s
			all = append(all, q)
		}
		existing := names
		for _, o := range objects {
			if o.resource == info.GroupResource.Resource && (o.namespace == namespace || o.namespace == "") {
				existing = append(slices.Clip(existing), o.name)
			}
		}
		for i, name := range existing {
			if info.GroupResource.Resource == "namespaces" && strings.ContainsAny(name, `",|*\`) {
				continue // no name of a namespace in a path
			}
			q := base
			q.name = name
			all = append(all, q)
			q.metricSelector = metricSelectors[1+i%(len(metricSelectors)-1)]
			all = append(all, q)
		}
	}
	return all
}

// questionsAboutExternal returns questions about an external metric.
func questionsAboutExternal(metric string) (all []question) {
	for _, namespace := range []string{"shop", "bank", "idle"} {
		for _, s := range metricSelectors {
			all = append(all, question{namespace: namespace, metric: metric, metricSelector: s})
		}
	}
	return all
}

// comparison asks both sides and counts.
type comparison struct {
	adapter, weir  *side
	notes, rules   string
	asked, answers int
	met            map[string]int // by the docs of a difference
	failures       int
}

func compare(t *testing.T, content []byte, prometheus, objectsURL string) *comparison {
	t.Helper()
	c := &comparison{adapter: adapterSide(t, content, prometheus, objectsURL), met: map[string]int{}}
	c.weir, c.notes, c.rules = weirSide(t, content, objects, prometheus, objectsURL)
	return c
}

// isLost reports whether weir import names a metric as not carried over.
func (c *comparison) isLost(metric string) bool {
	return regexp.MustCompile(`(?m)not carried over: ` + regexp.QuoteMeta(metric) + `: `).MatchString(c.notes)
}

// discovery compares the metrics of both sides. Those that weir import names as not carried over are left out.
func (c *comparison) discovery(t *testing.T) {
	t.Helper()
	var adapter, weir []string
	for _, info := range c.adapter.custom {
		if !c.isLost(info.Metric) {
			adapter = append(adapter, info.String())
		}
	}
	for _, info := range c.adapter.external {
		if !c.isLost(info.Metric) {
			adapter = append(adapter, info.Metric)
		}
	}
	for _, info := range c.weir.custom {
		if !c.isLost(info.Metric) {
			weir = append(weir, info.String())
		}
	}
	for _, info := range c.weir.external {
		if !c.isLost(info.Metric) {
			weir = append(weir, info.Metric)
		}
	}
	slices.Sort(adapter)
	slices.Sort(weir)
	if !slices.Equal(adapter, weir) {
		c.failures++
		t.Errorf("prometheus-adapter lists\n%s\nweir lists\n%s\nafter\n%s", strings.Join(adapter, "\n"), strings.Join(weir, "\n"), c.notes)
	}
}

// maxFailures is the number of differences that a test prints.
const maxFailures = 12

func (c *comparison) ask(t *testing.T, q question) {
	t.Helper()
	q.lost = c.isLost(q.metric)
	path := q.path()
	adapter, weir := c.adapter.ask(t, path), c.weir.ask(t, path)
	c.asked++
	if adapter.status == 200 && len(adapter.values) > 0 {
		c.answers++
	}
	if adapter.same(weir) {
		return
	}
	for i := range differences {
		if d := &differences[i]; d.explains(&q, adapter, weir) {
			c.met[d.docs]++
			return
		}
	}
	if c.failures++; c.failures <= maxFailures {
		t.Errorf("%s\nprometheus-adapter: %v\nweir:               %v", path, adapter, weir)
	}
}

// everything asks about all metrics of the adapter, and about some that do not exist. It asks the plain questions, and
// of the others those for which keep returns true.
func (c *comparison) everything(t *testing.T, keep func() bool) {
	t.Helper()
	c.discovery(t)
	custom := slices.SortedFunc(slices.Values(c.adapter.custom), func(a, b provider.CustomMetricInfo) int { return cmp.Compare(a.String(), b.String()) })
	for _, info := range custom {
		for _, q := range questionsAbout(info) {
			if keep() || q.isPlain() {
				c.ask(t, q)
			}
		}
		other := info
		other.Namespaced = !info.Namespaced // in the other scope
		if info.GroupResource.Resource != "namespaces" {
			for _, q := range questionsAbout(other)[:2] {
				c.ask(t, q)
			}
		}
	}
	for _, info := range c.adapter.external {
		for _, q := range questionsAboutExternal(info.Metric) {
			if keep() || q.isPlain() {
				c.ask(t, q)
			}
		}
	}
	c.ask(t, question{namespace: "shop", resource: "pods", name: "*", metric: "unknown"})
	c.ask(t, question{namespace: "shop", resource: "secrets", name: "a", metric: "http_requests"})
	c.ask(t, question{namespace: "shop", metric: "unknown"})
}

// docsOf returns the pages that list the differences.
func docsOf(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, page := range []string{"from-prometheus-adapter.md", "external-metrics.md"} {
		content, err := os.ReadFile("../../../docs/" + page)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(content)
	}
	return all.String()
}

// TestSameAnswers asks about a configuration that has everything that a configuration can have.
func TestSameAnswers(t *testing.T) {
	content, err := os.ReadFile("testdata/adapter.yaml")
	if err != nil {
		t.Fatal(err)
	}
	prometheus := startPrometheus(t)
	objectsURL, _ := serveObjects(t, objects)
	c := compare(t, content, prometheus, objectsURL)
	g := generator{rand.New(rand.NewPCG(*seed, 0))}
	c.everything(t, func() bool { return g.IntN(*every) == 0 })
	for name := range c.met {
		t.Logf("%5d answers differ as wanted: %s", c.met[name], name)
	}
	t.Logf("%d questions on %d rules, %d answers with values, %d metrics", c.asked, strings.Count(string(content), "- seriesQuery"), c.answers, len(c.adapter.custom)+len(c.adapter.external))
	if c.failures > 0 {
		t.Logf("%d differences in all; rules:\n%s\nnotes:\n%s", c.failures, c.rules, c.notes)
	}
	docs := docsOf(t)
	for i := range differences {
		d := &differences[i]
		if c.met[d.docs] == 0 {
			t.Errorf("no answer differs because %s: remove the difference, or ask for it", d.docs)
		}
		if !strings.Contains(docs, "| "+d.docs+" |") {
			t.Errorf("docs/from-prometheus-adapter.md and docs/external-metrics.md have no row for: %s", d.docs)
		}
	}
}
