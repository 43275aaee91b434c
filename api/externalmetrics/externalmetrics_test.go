package externalmetrics

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/discovery"
	"k8s.io/metrics/pkg/apis/external_metrics/v1beta1"
	"k8s.io/metrics/pkg/client/external_metrics"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/provider"

	"github.com/weir-metrics/weir/api/externalmetrics/rules"
	"github.com/weir-metrics/weir/test/background"
)

// ask lists a metric as an autoscaler does. It returns one line for each value, in order, with its
// labels, value and window, or it returns the error.
func ask(t *testing.T, c external_metrics.ExternalMetricsClient, namespace, metric, selector string) string {
	t.Helper()
	s, err := labels.Parse(selector)
	if err != nil {
		t.Fatal(err)
	}
	list, err := c.NamespacedMetrics(namespace).List(metric, s)
	if err != nil {
		return err.Error()
	}
	var lines []string
	for _, v := range list.Items {
		if v.MetricName != metric {
			t.Errorf("a value of %s is called %s", metric, v.MetricName)
		}
		lines = append(lines, line(&v))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func line(v *v1beta1.ExternalMetricValue) string {
	window := "-"
	if v.WindowSeconds != nil {
		window = fmt.Sprintf("%ds", *v.WindowSeconds)
	}
	of := labels.Set(v.MetricLabels)
	delete(of, "__name__")
	delete(of, "namespace")
	delete(of, "instance")
	delete(of, "job")
	return fmt.Sprintf("%s %s over %s", of, v.Value.String(), window)
}

// up is a file of rules with one rule.
func up(url string) string {
	return fmt.Sprintf("prometheus:\n  url: %s\n  timeout: 2s\nmetrics:\n  - name: up\n    query: up\n", url)
}

// answering starts a server that gives this answer to every query.
func answering(t *testing.T, status int, body string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func TestWhatPrometheusMaySay(t *testing.T) {
	for name, test := range map[string]struct {
		status     int
		body, want string
	}{
		"a vector":    {200, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{"__name__":"up","job":"a","zone":"b"},"value":[1.5,"1"]}]}}`, "zone=b 1 over -"},
		"a scalar":    {200, `{"status":"success","data":{"resultType":"scalar","result":[1.5,"0.25"]}}`, " 250m over -"},
		"a refusal":   {422, `{"status":"error","errorType":"execution","error":"too many samples"}`, "up: Prometheus answered 422: execution: too many samples"},
		"too slow":    {503, `{"status":"error","errorType":"timeout","error":"query timed out"}`, "up: Prometheus answered 503: timeout: query timed out"},
		"a proxy":     {502, "<html>\n<h1>Bad Gateway</h1>\n", "up: Prometheus answered 502: <html> <h1>Bad Gateway</h1>"},
		"no token":    {401, "", "up: Prometheus answered 401"},
		"not JSON":    {200, "# HELP", "up: read Prometheus' answer: invalid character '#' looking for beginning of value: is it the address of a Prometheus?"},
		"other JSON":  {200, "{}", "up: read Prometheus' answer: it has no status: is it the address of a Prometheus?"},
		"a matrix":    {200, `{"status":"success","data":{"resultType":"matrix","result":[]}}`, `up: the query returns a "matrix" and not a number or a vector`},
		"a histogram": {200, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"histogram":[1,{}]}]}}`, "up: the query returns a histogram instead of a number: put histogram_quantile(), histogram_count() or the like around it"},
		"no value":    {200, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1]}]}}`, "up: read Prometheus' answer: read a value: [1] is not a time and a number"},
		"too much":    {200, strings.Repeat(" ", 5<<20), "up: read Prometheus' answer: it has more than 4194304 bytes: change the query to return fewer series"},
		"NaN":         {200, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{"a":"b"},"value":[1,"1"]},{"metric":{"a":"c"},"value":[1,"NaN"]}]}}`, "the query of up returns NaN for a=c: perhaps it divides by zero"},
		"elsewhere":   {302, "", "up: Prometheus answered 302: it redirects to : put that address in url"},
	} {
		t.Run(name, func(t *testing.T) {
			c := client(t, provide(t, Options{}, up(answering(t, test.status, test.body))))
			if got := ask(t, c, "shop", "up", ""); got != test.want {
				t.Errorf("\n got %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestNobodyAnswers(t *testing.T) {
	c := client(t, provide(t, Options{}, up("http://127.0.0.1:1")))
	got := ask(t, c, "shop", "up", "")
	if want := "up: ask Prometheus:"; !strings.Contains(got, want) || !strings.Contains(got, "connection refused") {
		t.Errorf("got %s, want %s … connection refused", got, want)
	}
}

// A Prometheus that hangs delays no request beyond the timeout, whether the query runs or waits for
// a slot.
func TestPrometheusHangs(t *testing.T) {
	hang := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		r.ParseForm()
		<-r.Context().Done()
	}))
	defer hang.Close()
	p := provide(t, Options{MaxQueries: 2, Registerer: prometheus.NewRegistry()}, strings.Replace(up(hang.URL), "2s", "300ms", 1))
	ask := func(namespace, want string) {
		t.Helper()
		_, err := p.GetExternalMetric(t.Context(), namespace, labels.Everything(), provider.ExternalMetricInfo{Metric: "up"})
		if err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	ask("shop", "up: Prometheus did not answer within 300ms")
	// All slots are taken for longer than a query may take.
	slots := p.state.Load().servers[""].slots
	for range cap(slots) {
		slots <- struct{}{}
	}
	ask("bank", "up: 2 other queries did not end in time: Prometheus is slow")
	if got := testutil.ToFloat64(p.telemetry.queries.WithLabelValues("up", resultTimeout)); got != 2 {
		t.Errorf("%v timeouts counted, want 2", got)
	}
}

// A failure is kept for a short time: a server that hangs is not asked again for each pod. It is asked
// again afterwards, and at once if the caller gave up or if no answer is shared.
func TestFailuresAreKept(t *testing.T) {
	var asked atomic.Int32
	hang := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		r.ParseForm()
		asked.Add(1)
		<-r.Context().Done()
	}))
	defer hang.Close()
	rules := strings.Replace(up(hang.URL), "2s", "100ms", 1)
	p := provide(t, Options{}, rules)
	ask := func(ctx context.Context, p *Provider, wantAsked int32) {
		t.Helper()
		_, err := p.GetExternalMetric(ctx, "shop", labels.Everything(), provider.ExternalMetricInfo{Metric: "up"})
		if err == nil {
			t.Error("got an answer of a server that hangs")
		}
		if got := asked.Load(); got != wantAsked {
			t.Errorf("the server was asked %d times, want %d", got, wantAsked)
		}
	}
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	ask(short, p, 1)
	ask(t.Context(), p, 2)
	ask(t.Context(), p, 2)
	expire := func() {
		p.shared.mu.Lock()
		defer p.shared.mu.Unlock()
		for _, q := range p.shared.mu.queries {
			if age := time.Until(q.expires); age > failureAge {
				t.Errorf("the failure is kept for %v, want %v", age, failureAge)
			}
			q.expires = time.Now().Add(-time.Nanosecond)
		}
	}
	expire()
	ask(t.Context(), p, 3)
	if n, series := len(p.shared.mu.queries), p.shared.mu.series; n != 1 || series != 0 {
		t.Errorf("%d queries with %d series are kept, want the failure", n, series)
	}
	once := provide(t, Options{AnswerAge: -1}, rules)
	ask(t.Context(), once, 4)
	ask(t.Context(), once, 5)
}

// A server that hangs takes no slots of another server, and the error names it.
func TestSlotsOfAServer(t *testing.T) {
	url := answering(t, 200, `{"status":"success","data":{"resultType":"scalar","result":[1,"1"]}}`)
	p := provide(t, Options{MaxQueries: 2}, up(url)+"  - {name: slow, prometheus: thanos, query: slow}\nprometheuses:\n  thanos: {url: "+url+", timeout: 100ms}\n")
	slots := p.state.Load().servers["thanos"].slots
	for range cap(slots) {
		slots <- struct{}{}
	}
	for metric, want := range map[string]string{"up": "<nil>", "slow": "slow: 2 other queries did not end in time: Prometheus thanos is slow"} {
		_, err := p.GetExternalMetric(t.Context(), "shop", labels.Everything(), provider.ExternalMetricInfo{Metric: metric})
		if got := fmt.Sprint(err); got != want {
			t.Errorf("%s: got %s, want %s", metric, got, want)
		}
	}
}

// Among many queries, the maximum number runs at once, and no more.
func TestQueriesTakeTurns(t *testing.T) {
	var mu sync.Mutex
	now, most := 0, 0
	meet := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		now++
		most = max(most, now)
		mu.Unlock()
		select { // each query waits for another one
		case meet <- struct{}{}:
		case <-meet:
		case <-r.Context().Done():
		}
		mu.Lock()
		now--
		mu.Unlock()
		fmt.Fprint(w, `{"status":"success","data":{"resultType":"scalar","result":[1,"1"]}}`)
	}))
	defer s.Close()
	p := provide(t, Options{MaxQueries: 2}, strings.Replace(up(s.URL), "2s", "30s", 1))
	var wait sync.WaitGroup
	for i := range 6 {
		wait.Go(func() {
			if _, err := p.GetExternalMetric(t.Context(), fmt.Sprint("shop", i), labels.Everything(), provider.ExternalMetricInfo{Metric: "up"}); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if most != 2 {
		t.Errorf("%d queries ran at once, want 2", most)
	}
}

func TestCredentialsAreReadAgain(t *testing.T) {
	seen := make(chan http.Header, 10)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen <- r.Header
		fmt.Fprint(w, `{"status":"success","data":{"resultType":"scalar","result":[1,"1"]}}`)
	}))
	defer s.Close()
	token := filepath.Join(t.TempDir(), "token")
	get := func(p *Provider) http.Header {
		t.Helper()
		if _, err := p.GetExternalMetric(t.Context(), "shop", labels.Everything(), provider.ExternalMetricInfo{Metric: "up"}); err != nil {
			t.Fatal(err)
		}
		return <-seen
	}
	p := provide(t, Options{AnswerAge: -1, MayName: []string{token}}, strings.Replace(up(s.URL), "metrics:", "  bearerTokenFile: "+token+"\n  headers: {X-Scope-OrgID: shop}\nmetrics:", 1))
	for _, secret := range []string{"first", "second"} {
		if err := os.WriteFile(token, []byte(secret+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		h := get(p)
		if got, want := h.Get("Authorization"), "Bearer "+secret; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if got := h.Get("X-Scope-OrgID"); got != "shop" {
			t.Errorf("got header %q, want shop", got)
		}
	}
	p = provide(t, Options{MayName: []string{token}}, strings.Replace(up(s.URL), "metrics:", "  basicAuth: {username: weir, passwordFile: "+token+"}\nmetrics:", 1))
	if got, want := get(p).Get("Authorization"), "Basic d2VpcjpzZWNvbmQ="; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestQuantity(t *testing.T) {
	f := func(v float64, want string) {
		t.Helper()
		q, ok := quantity(v)
		got := q.String()
		if !ok {
			got = "none"
		}
		if got != want {
			t.Errorf("quantity(%v) = %s, want %s", v, got, want)
		}
	}
	f(0, "0")
	f(1.0004, "1")
	f(1.0006, "1001m")
	f(-0.5, "-500m")
	f(12345678.9, "12345678900m")
	f(9.1e15, "9100T")
	f(9.3e15, "9300T")
	f(9.2e18, "9200P")
	f(9.3e18, "none")
	f(math.NaN(), "none")
	f(math.Inf(-1), "none")
}

func TestMistakesAtTheStart(t *testing.T) {
	_, err := New(Options{File: write(t, "metrics: []\n")})
	var mistakes rules.Mistakes
	if !errors.As(err, &mistakes) || len(mistakes) != 2 {
		t.Errorf("got %v, want two mistakes", err)
	}
	_, err = New(Options{File: filepath.Join(t.TempDir(), "none")})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want that there is no file", err)
	}
	if _, err = New(Options{}); err == nil {
		t.Error("no error without a file")
	}
}

// eventually waits until got is want.
func eventually(t *testing.T, what string, want any, got func() any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for {
		g := got()
		if cmp.Equal(g, want) {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: got %v, want %v", what, g, want)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// TestAConfigMapIsSwapped changes the rules as a kubelet does.
func TestAConfigMapIsSwapped(t *testing.T) {
	dir := t.TempDir()
	version := 0
	swap := func(content string) {
		t.Helper()
		version++
		data := fmt.Sprintf("..%d", version)
		for _, err := range []error{
			os.Mkdir(filepath.Join(dir, data), 0o700),
			os.WriteFile(filepath.Join(dir, data, "rules.yaml"), []byte(content), 0o600),
			os.Symlink(data, filepath.Join(dir, "..data_tmp")),
			os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	swap(up("http://127.0.0.1:1"))
	if err := os.Symlink("..data/rules.yaml", filepath.Join(dir, "rules.yaml")); err != nil {
		t.Fatal(err)
	}
	core, logged := observer.New(zap.InfoLevel)
	p, err := New(Options{File: filepath.Join(dir, "rules.yaml"), Reread: 20 * time.Millisecond, Logger: zap.New(core), Registerer: prometheus.NewRegistry()})
	if err != nil {
		t.Fatal(err)
	}
	d, err := discovery.NewDiscoveryClientForConfig(serve(t, p))
	if err != nil {
		t.Fatal(err)
	}
	background.Run(t, p.Run)
	names := func() any {
		var all []string
		for _, info := range p.ListAllExternalMetrics() {
			all = append(all, info.Metric)
		}
		return all
	}
	// Clients use the aggregated form of discovery. Both forms must follow the rules.
	discovered := func() any {
		groups, byVersion, _, err := d.GroupsAndMaybeResources()
		if err != nil || len(groups.Groups) != 1 {
			return err
		}
		list, err := d.ServerResourcesForGroupVersion("external.metrics.k8s.io/v1beta1")
		if err != nil {
			return err
		}
		var all []string
		for gv := range byVersion {
			for _, r := range byVersion[gv].APIResources {
				all = append(all, "aggregated "+r.Name)
			}
		}
		for _, r := range list.APIResources {
			all = append(all, r.Name)
		}
		return all
	}
	eventually(t, "at first", []string{"up"}, names)
	eventually(t, "discovered at first", []string{"aggregated up", "up"}, discovered)

	two := up("http://127.0.0.1:1") + "  - name: jobs\n    query: jobs\n"
	swap(two)
	eventually(t, "after a change", []string{"up", "jobs"}, names)
	eventually(t, "discovered after a change", []string{"aggregated up", "aggregated jobs", "up", "jobs"}, discovered)

	swap("metrics: 1\n")
	eventually(t, "valid", 0.0, func() any { return testutil.ToFloat64(p.telemetry.valid) })
	if got := names(); !cmp.Equal(got, []string{"up", "jobs"}) {
		t.Errorf("with mistakes in the file: %v, want the rules before it", got)
	}
	errors := logged.FilterLevelExact(zap.ErrorLevel).All()
	if len(errors) != 1 || !strings.Contains(errors[0].Message, "weir check rules") {
		t.Errorf("logged %v, want the mistakes once with what to do", errors)
	}

	swap(up("http://127.0.0.1:2"))
	eventually(t, "valid", 1.0, func() any { return testutil.ToFloat64(p.telemetry.valid) })
	eventually(t, "mended", []string{"up"}, names)
	eventually(t, "reloads", 3.0, func() any { return testutil.ToFloat64(p.telemetry.reloads.WithLabelValues("ok")) })
	if got := testutil.ToFloat64(p.telemetry.rules); got != 1 {
		t.Errorf("%v rules counted, want 1", got)
	}
}

// Rules name files in their own folder, or files that a flag names. They cannot have weir send the
// token of its account.
func TestRulesNameOnlyTheirOwnFiles(t *testing.T) {
	folder, elsewhere := t.TempDir(), filepath.Join(t.TempDir(), "token")
	own := filepath.Join(folder, "secrets", "token")
	if err := os.Mkdir(filepath.Dir(own), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{own, elsewhere} {
		if err := os.WriteFile(path, []byte("secret"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(folder, "rules.yaml")
	f := func(line string, mayName []string, want string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(strings.Replace(up("http://127.0.0.1:1"), "metrics:", "  "+line+"\nmetrics:", 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		p, err := New(Options{File: file, MayName: mayName})
		if err == nil {
			p.Close()
		}
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want %q", line, err, want)
		}
	}
	f("bearerTokenFile: "+own, nil, "")
	f("bearerTokenFile: "+elsewhere, []string{elsewhere}, "")
	f("bearerTokenFile: "+elsewhere, nil, "give --external-rules-file="+elsewhere)
	f("bearerTokenFile: "+folder+"/../"+filepath.Base(filepath.Dir(elsewhere))+"/token", nil, "outside their folder")
	f("basicAuth: {username: weir, passwordFile: "+elsewhere+"}", nil, "passwordFile "+elsewhere+", which is outside")
	f("caFile: "+elsewhere, nil, "caFile "+elsewhere+", which is outside")
}
