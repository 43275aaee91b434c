package rules

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/prometheus/model/labels"
	selectors "k8s.io/apimachinery/pkg/labels"

	"github.com/weir-metrics/weir/internal/history"
	"github.com/weir-metrics/weir/metric"
)

// The transcripts contain files of rules with their mistakes, or the query for a caller's request.
//
//	parse
//	FILE
//	remember METRIC... LENGTH
//	FILE, for a weir with such a memory
//	ask METRIC
//	NAMESPACE and, on the next line, optionally a selector; of the file parsed last
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata/transcripts", func(t *testing.T, path string) {
		var r *Rules
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "parse", "remember":
				var m Memory
				for _, arg := range d.CmdArgs {
					if id, ok := metric.ByName(arg.Key); ok {
						m.Metrics = append(m.Metrics, id)
						continue
					}
					var err error
					if m.Length, err = time.ParseDuration(arg.Key); err != nil {
						d.Fatalf(t, "neither a metric nor a length: %v", err)
					}
				}
				var err error
				if r, err = ParseFor(m, "rules.yaml", []byte(d.Input+"\n")); err != nil {
					return err.Error() + "\n"
				}
				var out strings.Builder
				for _, m := range r.Metrics {
					fmt.Fprintf(&out, "%s, line %d", m.ID(), m.Line)
					if o := m.Object; o != nil {
						fmt.Fprintf(&out, ", of %s by %s", o.Kind, o.Label)
					}
					if m.NamespaceLabel != "" {
						fmt.Fprintf(&out, ", by %s", m.NamespaceLabel)
					}
					if m.OverTime != nil {
						fmt.Fprintf(&out, ", %v", m.OverTime)
					}
					if m.Window > 0 {
						fmt.Fprintf(&out, ", over %v", m.Window)
					}
					out.WriteByte('\n')
				}
				return out.String()
			case "ask":
				namespace, selector, _ := strings.Cut(d.Input, "\n")
				s, err := selectors.Parse(selector)
				if err != nil {
					d.Fatalf(t, "selector: %v", err)
				}
				i := slices.IndexFunc(r.Metrics, func(m Rule) bool { return m.ID() == d.CmdArgs[0].Key })
				query, err := r.Metrics[i].QueryFor(namespace, s)
				if err != nil {
					return err.Error() + "\n"
				}
				return query + "\n"
			}
			d.Fatalf(t, "unknown command %q", d.Cmd)
			return ""
		})
	})
}

func TestAWholeFile(t *testing.T) {
	got, err := Parse("rules.yaml", []byte(`prometheus:
  url: https://prometheus.monitoring:9090/prom
  timeout: 3s
  caFile: ca.crt
  basicAuth: {username: weir, passwordFile: password}
  headers:
    X-Scope-OrgID: shop
metrics:
  - name: queue_depth
    help: Jobs that wait.
    query: sum by (queue) (queue_depth)
    namespaceLabel: kubernetes_namespace
    selectorMetrics: [queue_depth]
  - name: requests:rate5m
    query: sum(rate(requests_total[5m]))
    namespaced: false
`))
	if err != nil {
		t.Fatal(err)
	}
	want := &Rules{
		Prometheus: Prometheus{Timeout: 3 * time.Second, Options: history.Options{
			URL: "https://prometheus.monitoring:9090/prom", CAFile: "ca.crt",
			Username: "weir", PasswordFile: "password", Headers: map[string]string{"X-Scope-OrgID": "shop"},
		}},
		Metrics: []Rule{
			{Name: "queue_depth", Help: "Jobs that wait.", Query: "sum by (queue) (queue_depth)", NamespaceLabel: "kubernetes_namespace", SelectorMetrics: []string{"queue_depth"}, Line: 9},
			{Name: "requests:rate5m", Query: "sum(rate(requests_total[5m]))", Window: 5 * time.Minute, Line: 14},
		},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Rules{})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if m := got.External("requests:rate5m"); m != &got.Metrics[1] {
		t.Errorf("External finds %v", m)
	}
	if m := got.External("nothing"); m != nil {
		t.Errorf("External finds %v where there is none", m)
	}
}

// A broken rule affects no other rule: its earlier version stays.
func TestABrokenRule(t *testing.T) {
	const head = "prometheus: {url: http://p}\nmetrics:\n"
	earlier, err := Parse("r", []byte(head+"- {name: a, query: a}\n- {name: b, query: b, for: pod}\n- {name: b, query: b}\n- {name: c, query: c}\n"))
	if err != nil {
		t.Fatal(err)
	}
	f := func(file, want string) {
		t.Helper()
		r, err := Parse("r", []byte(file))
		got := "nothing"
		if r != nil {
			r.KeepBroken(earlier)
			var all []string
			for i := range r.Metrics {
				m := &r.Metrics[i]
				if r.byID[m.id()] != m {
					t.Errorf("%s is not found", m.ID())
				}
				all = append(all, m.ID()+" "+m.Query)
			}
			got = strings.Join(all, ", ")
		}
		if err == nil || got != want {
			t.Errorf("%s\n got %s with the mistakes %v\nwant %s", file, got, err, want)
		}
	}
	f(head+"- {name: a, query: a2}\n- {name: b, query: 'b('}\n", "a a2, pods/b b, b b")
	f(head+"- {name: a, query: a2}\n- {name: b, query: b2, for: pod}\n- {name: b, query: 'b('}\n", "a a2, pods/b b2, b b")
	f(head+"- {name: new, query: 'a('}\n- {name: c, query: c2}\n", "c c2")
	f(head+"- {query: a}\n", "")
	f("prometheus: {url: p}\nmetrics: [{name: a, query: a}]\n", "nothing")
	f(head+"- {name: a, query: a}\n?", "nothing")
}

func TestMayHaveLabel(t *testing.T) {
	f := func(query string, want bool) {
		t.Helper()
		expr, err := queryParser.ParseExpr(query)
		if err != nil {
			t.Fatal(err)
		}
		if got := MayHaveLabel(expr, "pod"); got != want {
			t.Errorf("%s: got %v, want %v", query, got, want)
		}
	}
	for _, query := range []string{
		`x`, `x{pod=~".+"}`, `(-x)`, `sum by (pod) (x)`, `sum without (instance) (x)`, `topk(3, x)`, `count_values("pod", x)`,
		`rate(x[5m])`, `max_over_time(sum by (pod) (x)[1h:1m])`, `sum by (pod) (x) / 2`, `2 * x`, `x / on (pod) y`, `x / y`, `x / ignoring (a) y`,
		`x * on (node) group_left () y`, `sum(x) * on (node) group_right () y`, `sum(x) * on () group_left (pod) y`, `sum(x) or y`, `x and on () sum(y)`, `x unless y`,
		`label_replace(sum(x), "pod", "$1", "a", "(.*)")`, `label_join(x, "a", "b")`, `histogram_quantile(0.9, sum by (le, pod) (x))`, `absent(x{pod="a"})`, `x @ end()`,
	} {
		f(query, true)
	}
	for _, query := range []string{
		`1`, `x{pod=""}`, `sum(x)`, `sum by (service) (x)`, `sum without (pod) (x)`, `topk(1, sum(x))`, `count_values("version", x)`, `vector(1)`, `scalar(x)`, `time()`,
		`x / on (service) y`, `x / ignoring (pod) y`, `sum(x) and y`, `sum(x) * on (node) group_left () y`, `sum(x) or vector(0)`,
		`label_replace(sum(x), "a", "$1", "pod", "(.*)")`, `max_over_time(sum(x)[1h:1m])`,
	} {
		f(query, false)
	}
}

func TestSuggestionsAreData(t *testing.T) {
	_, err := Parse("rules.yaml", []byte("prometheus: {url: http://p}\nmetrics: [{nam: x, query: up}]\n"))
	var ms Mistakes
	if !errors.As(err, &ms) || len(ms) != 2 {
		t.Fatalf("got %v, want two mistakes", err)
	}
	m := ms[1]
	if m.Wrong != "nam" || len(m.Known) == 0 || m.Known[0] != "name" || m.Line != 2 || m.Column != 12 {
		t.Errorf("got %+v, want what is wrong and what is known", m)
	}
}

func TestALargeFile(t *testing.T) {
	_, err := Parse("rules.yaml", []byte(strings.Repeat("#", MaxSize+1)))
	if want := "rules.yaml: the file has 1048577 bytes: at most 1048576 are read"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// FuzzParse checks that mistakes are inside the file, and that rules without mistakes can be used.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"", "a", "\"\r\r", "prometheus:\n  url: http://p:9090\nmetrics:\n- name: up\n  query: up\n",
		"prometheus: {url: http://p}\nmetrics:\n- {name: a, query: 'sum(rate(x{a=\"b\"}[5m]))', namespaceLabel: ns}\n- {name: a, query: }\n",
		"&a [*a, *a]\n---\nb", "metrics: &m\n- *m\n", "prometheus:\n  url: http://p\nmetrics:\n- name: x\n  query: |\n    sum(\n      x{\n  help: >\n    a\n    b\n",
		"metrics: [{name: a, for: pod, overTime: {metric: cpu_usage_cores, function: p99.9, window: 5m}}]\n",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, file string) {
		r, err := Parse("f", []byte(file))
		if err != nil {
			var ms Mistakes
			if !errors.As(err, &ms) || len(ms) == 0 {
				t.Fatalf("%v is no Mistakes", err)
			}
			for _, m := range ms {
				if lines := strings.Count(file, "\n") + 1; m.Line < 0 || m.Line > lines || m.Line > 0 && m.Column < 1 || m.Text == "" {
					t.Errorf("%+v is outside of a file of %d lines", m, lines)
				}
			}
			return
		}
		for i := range r.Metrics {
			m := &r.Metrics[i]
			if r.byID[m.id()] != m {
				t.Errorf("%q is not found by its name", m.ID())
			}
			if m.OverTime != nil {
				if m.OverTime.Window <= 0 || m.OverTime.Of([]float64{1}) != 1 || m.Query != "" {
					t.Errorf("%q is over time, and cannot be: %+v", m.ID(), m.OverTime)
				}
				continue
			}
			if s := r.Server(m); s.URL == "" || s.Timeout <= 0 {
				t.Errorf("no mistake in %q, and nobody to ask: %+v", m.ID(), s)
			}
			narrowed(t, m, "shop", selectors.Everything())
		}
	})
}

// narrowed builds the query of m and checks that every metric in it has the matchers of the
// namespace and of the selector, and that the query is m's without them.
func narrowed(t *testing.T, m *Rule, namespace string, selector selectors.Selector) {
	t.Helper()
	query, err := m.QueryFor(namespace, selector)
	if err != nil {
		t.Fatalf("For(%q, %q): %v", namespace, selector, err)
	}
	expr, err := queryParser.ParseExpr(query)
	if err != nil {
		t.Fatalf("%q became %q, which does not parse: %v", m.Query, query, err)
	}
	want, err := Matchers(selector)
	if err != nil {
		t.Fatal(err)
	}
	if m.NamespaceLabel != "" {
		want = append(want, labels.MustNewMatcher(labels.MatchEqual, m.NamespaceLabel, namespace))
	}
	for _, v := range VectorSelectors(expr) {
		for _, w := range want {
			found := false
			for _, g := range v.LabelMatchers {
				found = found || g.Name == w.Name && g.Type == w.Type && g.Value == w.Value
			}
			if !found {
				t.Errorf("%q became %q, where %v lacks %v", m.Query, query, v, w)
			}
		}
		for _, w := range want {
			i := slices.IndexFunc(v.LabelMatchers, func(g *labels.Matcher) bool { return g.Name == w.Name && g.Type == w.Type && g.Value == w.Value })
			if i >= 0 {
				v.LabelMatchers = slices.Delete(v.LabelMatchers, i, i+1)
			}
		}
	}
	original, err := queryParser.ParseExpr(m.Query)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := expr.String(), original.String(); got != want {
		t.Errorf("%q became %q, which is %q without the matchers, want %q", m.Query, query, got, want)
	}
}

// FuzzSelector checks that the query for any selector parses back to the same matchers, and that
// they choose what the selector chooses.
func FuzzSelector(f *testing.F) {
	for _, s := range []string{"", "a=b", "a!=b,c in (d,e.f,g-h),i notin (j),k,!l", "app.kubernetes.io/name=x", "a in (,b)", "a=", "a notin (b,c_.d)"} {
		f.Add(s, "shop", "b")
	}
	f.Add(`a in (x.y,"z|w")`, `a"} or up{x=~".*`, "\\")
	m := &Rule{Query: `sum by (queue) (rate(depth{a="b"}[5m])) / on () group_left () limit`, NamespaceLabel: "namespace"}
	f.Fuzz(func(t *testing.T, selector, namespace, value string) {
		s, err := selectors.Parse(selector)
		if err != nil {
			return
		}
		matchers, err := Matchers(s)
		if err != nil {
			return // the selector compares by < or >
		}
		if strings.ToValidUTF8(namespace, "") == namespace {
			narrowed(t, m, namespace, s)
		}
		requirements, _ := s.Requirements()
		for i, r := range requirements {
			for _, v := range append(r.ValuesUnsorted(), value, "x"+value) {
				if v == "" {
					continue // for Prometheus an empty label is a missing one
				}
				if got, want := matchers[i].Matches(v), r.Matches(selectors.Set{r.Key(): v}); got != want {
					t.Errorf("%v: %v says %v of %q, want %v", &r, matchers[i], got, v, want)
				}
			}
			if got, want := matchers[i].Matches(""), r.Matches(selectors.Set{}); got != want && !r.Values().Has("") {
				t.Errorf("%v: %v says %v of a label that is not there, want %v", &r, matchers[i], got, want)
			}
		}
	})
}
