package promadapter

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/weir-metrics/weir/test/promtest"
)

// The cluster of BenchmarkHPAs. Each HPA is of the pods of one workload, and follows one rule.
const (
	hpaNamespaces = 50
	hpasEach      = 100 // in a namespace
	podsEach      = 5   // of an HPA
	hpaRules      = 20
)

// BenchmarkHPAs asks what 5,000 HPAs ask every 15 seconds, and counts what that costs at Prometheus and at the API server.
// weir uses an answer for ten seconds, so run it with -benchtime 1x.
func BenchmarkHPAs(b *testing.B) {
	var cluster []object
	var asked []string
	var series strings.Builder
	now := time.Now().Truncate(time.Second)
	for n := range hpaNamespaces {
		for h := range hpasEach {
			namespace, app := fmt.Sprintf("team-%d", n), fmt.Sprintf("app-%d", h)
			q := question{namespace: namespace, resource: "pods", name: "*", metric: fmt.Sprintf("load_%d", h%hpaRules), selector: "app=" + app}
			asked = append(asked, q.path())
			for p := range podsEach {
				pod := object{"pods", namespace, fmt.Sprintf("%s-%d", app, p), labels.Set{"app": app}, false}
				cluster = append(cluster, pod)
				for at := now.Add(-time.Minute); at.Before(now.Add(20 * time.Minute)); at = at.Add(time.Minute) {
					fmt.Fprintf(&series, "%s{namespace=%q,pod=%q} %d %d\n", q.metric, namespace, pod.name, n+h+p, at.Unix())
				}
			}
		}
	}
	var content strings.Builder
	content.WriteString("rules:\n")
	for r := range hpaRules {
		fmt.Fprintf(&content, "- {seriesQuery: 'load_%d{pod!=\"\"}', resources: {overrides: {namespace: {resource: namespace}, pod: {resource: pod}}}, metricsQuery: 'sum(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)'}\n", r)
	}
	prometheus, _ := promtest.FilledURL(b, func(w io.Writer) { io.WriteString(w, series.String()+"# EOF\n") }, "count(load_1)", now, 1)
	counted, queries, bytes := countingProxy(b, prometheus)
	objectsURL, lists := serveObjects(b, cluster)
	weir, _, _ := weirSide(b, []byte(content.String()), cluster, counted, objectsURL)
	for _, one := range []struct {
		name string
		*side
	}{{"weir", weir}, {"prometheus-adapter", adapterSide(b, []byte(content.String()), counted, objectsURL)}} {
		b.Run(one.name, func(b *testing.B) {
			queries.Store(0)
			bytes.Store(0)
			lists.Store(0)
			var took []time.Duration
			for b.Loop() {
				took = append(took, one.round(b, asked)...)
			}
			slices.Sort(took)
			perMinute := 4 / float64(b.N)
			b.ReportMetric(float64(queries.Load())*perMinute, "queries/min")
			b.ReportMetric(float64(bytes.Load())*perMinute/1e6, "MB/min")
			b.ReportMetric(float64(lists.Load())*perMinute, "lists/min")
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "ms-p50")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "ms-p99")
		})
	}
}

// round asks all questions, some at a time, and returns how long each took.
func (s *side) round(t testing.TB, paths []string) []time.Duration {
	took := make([]time.Duration, len(paths))
	var next atomic.Int64
	var wait sync.WaitGroup
	for range 5 { // as kube-controller-manager has workers
		wait.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(paths)); i = next.Add(1) - 1 {
				began := time.Now()
				if a := s.ask(t, paths[i]); len(a.values) != podsEach {
					t.Errorf("%s: %v, want %d values", paths[i], a, podsEach)
				}
				took[i] = time.Since(began)
			}
		})
	}
	wait.Wait()
	return took
}

// countingProxy starts a proxy in front of a Prometheus that counts queries and the bytes of answers.
func countingProxy(t testing.TB, to string) (proxyURL string, queries, bytes *atomic.Int64) {
	target, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	queries, bytes = new(atomic.Int64), new(atomic.Int64)
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) },
		ModifyResponse: func(r *http.Response) error {
			queries.Add(1)
			r.Body = &countedBody{r.Body, bytes}
			return nil
		},
		Transport: &http.Transport{MaxIdleConnsPerHost: 100},
	}
	s := httptest.NewServer(proxy)
	t.Cleanup(s.Close)
	return s.URL, queries, bytes
}

// countedBody counts the bytes that are read.
type countedBody struct {
	io.ReadCloser
	bytes *atomic.Int64
}

func (c *countedBody) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.bytes.Add(int64(n))
	return n, err
}
