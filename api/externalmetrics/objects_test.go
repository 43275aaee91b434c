package externalmetrics

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/provider"

	"github.com/weir-metrics/weir/test/cmptest"
)

var podsRequests = provider.CustomMetricInfo{GroupResource: schema.GroupResource{Resource: "pods"}, Namespaced: true, Metric: "requests"}

// requestsOf is a file of rules with one rule, of pods.
func requestsOf(url string) string {
	return fmt.Sprintf("prometheus:\n  url: %s\n  timeout: 2s\nmetrics:\n  - name: requests\n    for: pod\n    query: requests\n", url)
}

// vector returns the answer of Prometheus with a series for each "LABELS VALUE".
func vector(series ...string) string {
	var all []string
	for _, s := range series {
		of, value, _ := strings.Cut(s, " ")
		set, err := labels.ConvertSelectorToLabelsMap(of)
		if err != nil {
			panic(err)
		}
		var pairs []string
		for k, v := range set {
			pairs = append(pairs, fmt.Sprintf("%q:%q", k, v))
		}
		all = append(all, fmt.Sprintf(`{"metric":{%s},"value":[1767355200,%q]}`, strings.Join(pairs, ","), value))
	}
	return fmt.Sprintf(`{"status":"success","data":{"resultType":"vector","result":[%s]}}`, strings.Join(all, ","))
}

// answeringOverTime starts a Prometheus with one answer now, and another one for ten minutes ago. It
// counts the queries.
func answeringOverTime(t *testing.T, now, earlier string) (url string, queries *atomic.Int64) {
	t.Helper()
	queries = new(atomic.Int64)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		queries.Add(1)
		at, err := strconv.ParseFloat(r.FormValue("time"), 64)
		if err != nil || r.Method != http.MethodPost {
			t.Errorf("%s at %q: want a POST with a time", r.Method, r.FormValue("time"))
		}
		if time.Since(time.UnixMilli(int64(at*1000))) > 9*time.Minute {
			fmt.Fprint(w, earlier)
		} else {
			fmt.Fprint(w, now)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL, queries
}

func TestValuesOfObjects(t *testing.T) {
	now := vector("pod=web-0,zone=a 12.5", "pod=web-1 NaN", "pod=twice,zone=a 1", "pod=twice,zone=b 2", "pod= 3", "pod=deep +Inf")
	url, _ := answeringOverTime(t, now, vector("pod=gone 7"))
	p := provide(t, Options{}, requestsOf(url))
	o, err := p.GetObjectMetric(t.Context(), "shop", labels.Everything(), podsRequests)
	if err != nil {
		t.Fatal(err)
	}
	cmptest.Equal(t, "names", []string{"deep", "twice", "web-0", "web-1"}, o.Names())
	for name, want := range map[string]string{
		"web-0": "Pod v1 shop/web-0 12500m at 1767355200",
		"web-1": "the query of requests returns NaN for pod=web-1: perhaps it divides by zero",
		"deep":  "the query of requests returns +Inf for pod=deep, which is not a number that an autoscaler can use",
		"twice": "the query of requests returns several series for pod=twice: aggregate them, as in sum by (pod) (…)",
		"none":  "NoSeries: no series of the query of requests has pod=none",
		"gone":  "SeriesEnded: the query of requests returned 7 for pod=gone ten minutes ago, and returns nothing now",
	} {
		v, err := o.Value(name)
		var got string
		switch {
		case err != nil:
			got = err.Error()
		case v == nil:
			f := o.WhyMissing(t.Context(), name)
			got = f.Reason + ": " + f.Message
		default:
			d := v.DescribedObject
			got = fmt.Sprintf("%s %s %s/%s %s at %d", d.Kind, d.APIVersion, d.Namespace, d.Name, v.Value.String(), v.Timestamp.Unix())
		}
		if got != want {
			t.Errorf("%s\n got %s\nwant %s", name, got, want)
		}
	}
}

func TestWhyNoObjectHasAValue(t *testing.T) {
	f := func(now, earlier, want string) {
		t.Helper()
		url, _ := answeringOverTime(t, now, earlier)
		p := provide(t, Options{Registerer: prometheus.NewRegistry()}, requestsOf(url))
		o, err := p.GetObjectMetric(t.Context(), "shop", labels.SelectorFromSet(labels.Set{"path": "home"}), podsRequests)
		if err != nil {
			t.Fatal(err)
		}
		why := o.WhyMissing(t.Context(), "web-0")
		if got := why.Reason + ": " + why.Message; got != want || why.Advice == "" {
			t.Errorf("got %s (%s), want %s", got, why.Advice, want)
		}
	}
	f(vector("instance=a 1", "instance=b 2"), vector(), "NoLabel: the query of requests returns 2 series for namespace=shop,path=home, and none has the label pod")
	f(vector(), vector(), "NoSeries: the query of requests returns nothing for namespace=shop,path=home")
	f(vector(), vector("pod=web-0 5"), "SeriesEnded: the query of requests returned 5 for pod=web-0 ten minutes ago, and returns nothing now")
	f(vector("pod=web-1 1"), "no JSON", "NoSeries: no series of the query of requests has pod=web-0")
}

func TestObjectsThatRulesDoNotKnow(t *testing.T) {
	p := provide(t, Options{}, requestsOf("http://127.0.0.1:1")+"  - name: load\n    for: node\n    query: load\n  - name: requests\n    query: requests\n")
	nodes := provider.CustomMetricInfo{GroupResource: schema.GroupResource{Resource: "nodes"}, Metric: "load"}
	cmptest.Equal(t, "metrics", []provider.CustomMetricInfo{podsRequests, nodes}, p.ListObjectMetrics())
	if got := p.ListAllExternalMetrics(); len(got) != 1 || got[0].Metric != "requests" {
		t.Errorf("external metrics: got %v, want requests alone", got)
	}
	for _, info := range []provider.CustomMetricInfo{
		{GroupResource: schema.GroupResource{Resource: "services"}, Metric: "requests"}, {GroupResource: podsRequests.GroupResource, Metric: "load"},
	} {
		if o, err := p.GetObjectMetric(t.Context(), "shop", nil, info); o != nil || err != nil {
			t.Errorf("%v: got %v, %v, want nothing", info, o, err)
		}
	}
	for _, test := range []struct {
		namespace string
		info      provider.CustomMetricInfo
		want      string
	}{
		{"shop", nodes, "nodes are in no namespace, so an autoscaler in one cannot refer to them: ask for nodes/NAME/load"},
		{"", podsRequests, "requests is read in a namespace: ask for namespaces/NAMESPACE/requests"},
	} {
		if _, err := p.GetObjectMetric(t.Context(), test.namespace, nil, test.info); err == nil || err.Error() != test.want {
			t.Errorf("%v in %q: got %v, want %s", test.info, test.namespace, err, test.want)
		}
	}
}

// 5,000 requests, at one time and later, need one query for each namespace and selector.
func TestRequestsShareQueries(t *testing.T) {
	url, queries := answeringOverTime(t, vector("pod=web-0 1"), vector())
	registry := prometheus.NewRegistry()
	p := provide(t, Options{Registerer: registry}, requestsOf(url))
	var wait sync.WaitGroup
	for i := range 5000 {
		wait.Go(func() {
			selector := labels.Everything()
			if i%2 == 0 {
				selector = labels.SelectorFromSet(labels.Set{"path": "home"})
			}
			if _, err := p.GetObjectMetric(t.Context(), fmt.Sprintf("ns-%d", i%10), selector, podsRequests); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if got := queries.Load(); got != 10 { // even namespaces have the selector
		t.Errorf("%d queries, want 10", got)
	}
	if got := testutil.ToFloat64(p.telemetry.queries.WithLabelValues("pods/requests", resultOK)); got != 5000 {
		t.Errorf("%v requests counted, want 5000", got)
	}
}

func TestAnswersAreUsedForAWhile(t *testing.T) {
	url, queries := answeringOverTime(t, vector("pod=web-0 1"), vector())
	p := provide(t, Options{AnswerAge: time.Nanosecond}, requestsOf(url))
	for range 3 {
		if _, err := p.GetObjectMetric(t.Context(), "shop", nil, podsRequests); err != nil {
			t.Fatal(err)
		}
	}
	if got := queries.Load(); got != 3 {
		t.Errorf("%d queries, want 3: each answer was too old", got)
	}
	if n, series := len(p.shared.mu.queries), p.shared.mu.series; n != 1 || series != 1 {
		t.Errorf("%d answers with %d series are kept, want the last one only", n, series)
	}
}

// A query ends when no request waits for it, and nothing of it is kept. An error of the server is kept for
// a short time.
func TestNobodyWaitsForAQuery(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	ended, answer := make(chan struct{}), make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.ParseForm()
		cancel()
		select {
		case <-r.Context().Done():
			close(ended)
		case <-answer:
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	defer s.Close()
	p := provide(t, Options{}, strings.Replace(requestsOf(s.URL), "2s", "60s", 1))
	if _, err := p.GetObjectMetric(ctx, "shop", nil, podsRequests); err == nil {
		t.Error("got an answer, want none for a request that has ended")
	}
	<-ended
	kept := func(want int) {
		t.Helper()
		p.shared.mu.Lock()
		defer p.shared.mu.Unlock()
		if n := len(p.shared.mu.queries); n != want {
			t.Errorf("%d queries are kept, want %d", n, want)
		}
	}
	kept(0)
	close(answer)
	if _, err := p.GetObjectMetric(t.Context(), "shop", nil, podsRequests); err == nil {
		t.Error("got an answer, want an error")
	}
	kept(1)
}

func TestTooManySeries(t *testing.T) {
	var many []string
	for i := range maxSeries + 1 {
		many = append(many, fmt.Sprintf("pod=p%d 1", i))
	}
	url, _ := answeringOverTime(t, vector(many...), "")
	_, err := provide(t, Options{}, requestsOf(url)).GetObjectMetric(t.Context(), "shop", nil, podsRequests)
	if want := "requests: the query returns 20001 series, at most 20000 are used: aggregate them"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// A broken rule takes only itself along, at the start and later.
func TestARuleBreaks(t *testing.T) {
	f := func(p *Provider, want string) {
		t.Helper()
		var ids []string
		for _, m := range p.Rules().Metrics {
			ids = append(ids, m.ID()+" "+m.Query)
		}
		if got := strings.Join(ids, ", "); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	p := provide(t, Options{Registerer: prometheus.NewRegistry()}, requestsOf("http://127.0.0.1:1")+"  - name: broken\n    query: sum(\n")
	f(p, "pods/requests requests")
	if got := testutil.ToFloat64(p.telemetry.valid); got != 0 {
		t.Errorf("valid is %v, want 0", got)
	}
	changes := 0
	p.OnListChange(func() { changes++ })
	next := strings.Replace(requestsOf("http://127.0.0.1:1"), "query: requests", "query: requests(", 1) + "  - name: broken\n    query: sum(x)\n"
	if err := os.WriteFile(p.options.File, []byte(next), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		_, err := p.reload()
		if err == nil {
			t.Error("no error, want the mistake")
		}
	}
	f(p, "broken sum(x), pods/requests requests")
	if changes != 2 { // at once, and after the change
		t.Errorf("%d changes, want 2", changes)
	}
}

// A rule can name another server, with its own headers and timeout.
func TestRulesNameTheirServer(t *testing.T) {
	answering := func(value, tenant string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if got := r.Header.Get("X-Scope-OrgID"); got != tenant {
				t.Errorf("the tenant is %q, want %q", got, tenant)
			}
			fmt.Fprint(w, vector("pod=web-0 "+value))
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	file := requestsOf(answering("1", "")) + "  - {name: requests, query: requests, prometheus: mimir}\n" +
		fmt.Sprintf("prometheuses:\n  mimir:\n    url: %s\n    headers: {X-Scope-OrgID: shop}\n", answering("2", "shop"))
	p := provide(t, Options{}, file)
	o, err := p.GetObjectMetric(t.Context(), "shop", nil, podsRequests)
	if err != nil {
		t.Fatal(err)
	}
	v, err := o.Value("web-0")
	if err != nil || v.Value.String() != "1" {
		t.Errorf("of the pod: got %v, %v, want 1", v, err)
	}
	list, err := p.GetExternalMetric(t.Context(), "shop", nil, provider.ExternalMetricInfo{Metric: "requests"})
	if err != nil || list.Items[0].Value.String() != "2" {
		t.Errorf("external: got %v, %v, want 2", list, err)
	}
}
