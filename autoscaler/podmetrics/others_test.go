package podmetrics_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/metrics/pkg/apis/external_metrics"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/provider"

	"github.com/weir-metrics/weir/api/custommetrics"
	"github.com/weir-metrics/weir/api/externalmetrics"
	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/autoscaler/podmetrics"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/test/cmptest"
)

// shop has two pods of an application, with one container each, and one pod of another application.
func shop(t *testing.T) *fixture {
	w := newFixture(t)
	web := map[string]string{"app": "web"}
	pods := []*cluster.Pod{
		running("shop", "web-0", "n1", web, "app"), running("shop", "web-1", "n1", web, "app"),
		running("shop", "other", "n1", map[string]string{"app": "other"}, "app"),
	}
	w.know(pods...)
	w.readAll(pods, 1)
	return w
}

// readAll reads the containers of all pods now. Each uses times × 250m and times × 1000 bytes.
func (w *fixture) readAll(pods []*cluster.Pod, times float64) {
	b := w.batch("n1")
	for i, p := range pods {
		for _, c := range p.Containers {
			measured(b, p, c.Name, time.Duration(i+1)*300*time.Millisecond, 14*time.Second, times*250e6, times*1000)
		}
	}
	w.write(b)
}

func pod(name string, selector *metav1.LabelSelector) autoscalingv2.MetricSpec {
	return autoscalingv2.MetricSpec{Type: autoscalingv2.PodsMetricSourceType, Pods: &autoscalingv2.PodsMetricSource{Metric: autoscalingv2.MetricIdentifier{Name: name, Selector: selector}}}
}

func object(kind, name, metric string) autoscalingv2.MetricSpec {
	return autoscalingv2.MetricSpec{Type: autoscalingv2.ObjectMetricSourceType, Object: &autoscalingv2.ObjectMetricSource{
		DescribedObject: autoscalingv2.CrossVersionObjectReference{APIVersion: "v1", Kind: kind, Name: name},
		Metric:          autoscalingv2.MetricIdentifier{Name: metric},
	}}
}

func external(name string, selector *metav1.LabelSelector) autoscalingv2.MetricSpec {
	return autoscalingv2.MetricSpec{Type: autoscalingv2.ExternalMetricSourceType, External: &autoscalingv2.ExternalMetricSource{Metric: autoscalingv2.MetricIdentifier{Name: name, Selector: selector}}}
}

// read reads one metric of the pods of app=web.
func read(t *testing.T, l *podmetrics.Reader, m autoscalingv2.MetricSpec) autoscaler.Reading {
	t.Helper()
	sel := selector(t, "app=web")
	pods, err := l.Pods("shop", sel)
	if err != nil {
		t.Fatal(err)
	}
	spec := &autoscalingv2.HorizontalPodAutoscalerSpec{Metrics: []autoscalingv2.MetricSpec{m}}
	return l.Readings(t.Context(), "shop", sel, spec, pods)(0)
}

func TestCustomMetrics(t *testing.T) {
	w := shop(t)
	l := podmetrics.New(w.options())
	f := func(m autoscalingv2.MetricSpec, want autoscaler.Reading) {
		t.Helper()
		if diff := cmp.Diff(want, read(t, l, m), compareErrors); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	no := func(text string) autoscaler.Reading { return autoscaler.Reading{Err: fmt.Errorf("%s", text)} }
	before := noon.Add(-time.Second) // the API has whole seconds

	f(pod("cpu_usage_cores", nil), autoscaler.Reading{At: before, Samples: []autoscaler.PodSample{
		{Pod: "web-0", Milli: 250, At: before, Window: 14 * time.Second},
		{Pod: "web-1", Milli: 250, At: before, Window: 14 * time.Second},
	}})
	f(pod("memory_working_set_bytes", &metav1.LabelSelector{MatchLabels: map[string]string{"container": "app"}}),
		autoscaler.Reading{At: before, Samples: []autoscaler.PodSample{{Pod: "web-0", Milli: 1e6, At: before}, {Pod: "web-1", Milli: 1e6, At: before}}})
	f(pod("cpu_usage_cores", &metav1.LabelSelector{}), read(t, l, pod("cpu_usage_cores", nil)))
	f(pod("requests", nil), no("unable to fetch metrics from custom metrics API: pods have no metric requests: GET /apis/custom.metrics.k8s.io/v1beta2 lists those there are"))
	f(pod("x", &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}), no(`"Near" is not a valid label selector operator`))

	f(object("Pod", "other", "cpu_usage_cores"), autoscaler.Reading{At: before, Values: []int64{250}})
	// An object of kind Namespace is always the autoscaler's own namespace.
	f(object("Namespace", "kube-system", "cpu_usage_cores"), autoscaler.Reading{At: before, Values: []int64{750}})
	f(object("Pod", "gone", "cpu_usage_cores"), no("unable to fetch metrics from custom metrics API: there is no pod shop/gone"))
	f(object("Node", "n1", "cpu_usage_cores"), no("unable to fetch metrics from custom metrics API: nodes are in no namespace, so an autoscaler in one cannot refer to them: ask for nodes/NAME/cpu_usage_cores"))
	f(object("Service", "web", "requests"), no("unable to fetch metrics from custom metrics API: weir has metrics of pods, nodes and namespaces, not of services"))

	f(external("queue_length", nil), no("unable to fetch metrics from external metrics API: weir has no external metrics: set rules with --external-rules"))
	f(autoscalingv2.MetricSpec{Type: "Resource"}, no(`a metric of type "Resource" without its source cannot be read`))

	o := w.options()
	o.Custom = nil
	l = podmetrics.New(o)
	f(pod("cpu_usage_cores", nil), no("unable to fetch metrics from custom metrics API: weir serves no custom metrics here: see --apis"))
}

// routed is weir's own custom metrics behind a router.
type routed struct{ podmetrics.CustomMetrics }

func (routed) CustomAnsweredBy(namespace, metric string, selector labels.Selector) string {
	return fmt.Sprintf("custom %q %s %s", namespace, metric, selector)
}

func (routed) ExternalAnsweredBy(namespace, metric string, selector labels.Selector) string {
	return fmt.Sprintf("external %q %s %s", namespace, metric, selector)
}

// TestAnsweredBy checks that a reading names who was asked, by what the request has, also if it fails.
func TestAnsweredBy(t *testing.T) {
	w := shop(t)
	o := w.options()
	o.Custom = routed{o.Custom}
	l := podmetrics.New(o)
	by := &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
	for _, test := range []struct {
		metric autoscalingv2.MetricSpec
		want   string
	}{
		{pod("cpu_usage_cores", nil), `custom "shop" cpu_usage_cores `},
		{object("Service", "web", "requests"), `custom "shop" requests `},
		{object("Namespace", "other", "cpu_usage_cores"), `custom "" cpu_usage_cores `},
		{external("queue_length", by), `external "shop" queue_length a=b`},
		{autoscalingv2.MetricSpec{Type: "Resource", Resource: &autoscalingv2.ResourceMetricSource{Name: "cpu"}}, ""},
	} {
		if got := read(t, l, test.metric).AnsweredBy; got != test.want {
			t.Errorf("%+v: got %q, want %q", test.metric, got, test.want)
		}
	}
	if got := read(t, podmetrics.New(w.options()), pod("cpu_usage_cores", nil)).AnsweredBy; got != "" {
		t.Errorf("without adapters: got %q, want nothing", got)
	}
}

// TestMetricsByRules reads a metric that a rule defines from a real provider with a fake Prometheus. A
// pod without a series has no sample, and a verdict says why.
func TestMetricsByRules(t *testing.T) {
	prometheus := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("query") != `sum by (pod) (requests{namespace="shop"})` {
			t.Errorf("the query is %s", r.FormValue("query"))
		}
		fmt.Fprint(w, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{"pod":"web-1"},"value":[1767355200.75,"12.5"]},{"metric":{"pod":"other"},"value":[1767355200,"7"]}]}}`)
	}))
	t.Cleanup(prometheus.Close)
	file := filepath.Join(t.TempDir(), "rules.yaml")
	text := fmt.Sprintf("prometheus: {url: %q}\nmetrics:\n  - {name: requests, for: pod, query: sum by (pod) (requests)}\n", prometheus.URL)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	rules, err := externalmetrics.New(externalmetrics.Options{File: file})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(rules.Close)
	w := shop(t)
	o := w.options()
	o.Custom = custommetrics.New(custommetrics.Options{
		View: func() custommetrics.SampleReader { return nil }, Facts: func() *cluster.Facts { return w.facts }, Sources: noSources, Rules: rules,
	})
	l := podmetrics.New(o)
	at := time.Unix(1767355200, 0)
	want := autoscaler.Reading{At: at, Samples: []autoscaler.PodSample{{Pod: "web-1", Milli: 12500, At: at, Window: time.Minute}}}
	if diff := cmp.Diff(want, read(t, l, pod("requests", nil)), compareErrors); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	spec := &autoscalingv2.HorizontalPodAutoscalerSpec{Metrics: []autoscalingv2.MetricSpec{pod("requests", nil)}}
	verdicts := l.Verdicts("shop", spec)
	if v, missing := verdicts(0, "web-0"); !missing || v.Reason != "NoSeries" || v.Message != "no series of the query of requests has pod=web-0" || v.Advice == "" {
		t.Errorf("the pod without a series: got %+v, %v", v, missing)
	}
	if v, missing := verdicts(0, "web-1"); missing {
		t.Errorf("the pod with a series: got %+v", v)
	}
	for _, test := range []struct {
		metric autoscalingv2.MetricSpec
		want   bool
	}{
		{pod("requests", nil), false}, {pod("cpu_usage_cores", nil), true}, {object("Pod", "web-0", "requests"), false},
		{object("Service", "web", "requests"), true}, {external("queue", nil), false}, {of("cpu", ""), true},
	} {
		if got := l.IsInMemory(&test.metric); got != test.want {
			t.Errorf("%+v is in memory: %v, want %v", test.metric, got, test.want)
		}
	}
}

// TestExternalMetrics reads external metrics from a real provider with a fake Prometheus.
func TestExternalMetrics(t *testing.T) {
	prometheus := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.FormValue("query")
		switch {
		case strings.Contains(query, "nothing"):
			fmt.Fprint(w, `{"status":"success","data":{"resultType":"vector","result":[]}}`)
		case strings.Contains(query, `queue="jobs"`):
			fmt.Fprint(w, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{"queue":"jobs"},"value":[1767355200.75,"12.5"]}]}}`)
		case strings.Contains(query, "slow"):
			<-r.Context().Done()
		default:
			fmt.Fprint(w, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{"queue":"a"},"value":[1767355200,"3"]},{"metric":{"queue":"b"},"value":[1767355200,"-0.0004"]}]}}`)
		}
	}))
	t.Cleanup(prometheus.Close)
	file := filepath.Join(t.TempDir(), "rules.yaml")
	text := fmt.Sprintf("prometheus:\n  url: %s\n  timeout: 20s\nmetrics:\n  - name: queue_length\n    query: queue\n  - name: nothing\n    query: nothing\n  - name: slow\n    query: slow\n", prometheus.URL)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	provider, err := externalmetrics.New(externalmetrics.Options{File: file})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(provider.Close)
	o := shop(t).options()
	o.External = provider
	at := time.Unix(1767355200, 0)
	for _, test := range []struct {
		metric autoscalingv2.MetricSpec
		want   autoscaler.Reading
	}{
		{external("queue_length", nil), autoscaler.Reading{Values: []int64{3000, 0}, At: at}},
		{external("queue_length", &metav1.LabelSelector{MatchLabels: map[string]string{"queue": "jobs"}}), autoscaler.Reading{Values: []int64{12500}, At: at}},
		{external("nothing", nil), autoscaler.Reading{Err: fmt.Errorf("unable to fetch metrics from external metrics API: the query of nothing returns nothing for namespace=shop")}},
		{external("absent", nil), autoscaler.Reading{Err: fmt.Errorf("unable to fetch metrics from external metrics API: there is no external metric absent: the file of rules has queue_length, nothing and slow")}},
		{external("slow", nil), autoscaler.Reading{Err: fmt.Errorf("unable to fetch metrics from external metrics API: slow: the request ended before Prometheus answered")}},
	} {
		name := test.metric.External.Metric.Name
		if o.Timeout = time.Minute; name == "slow" {
			o.Timeout = 200 * time.Millisecond
		}
		cmptest.Equal(t, name, test.want, read(t, podmetrics.New(o), test.metric), compareErrors)
	}
}

// unevenServers are external metrics of several servers: one hangs, one has a bug, the others answer after a
// second.
type unevenServers struct{}

func (unevenServers) GetExternalMetric(ctx context.Context, _ string, _ labels.Selector, info provider.ExternalMetricInfo) (*external_metrics.ExternalMetricValueList, error) {
	var answer <-chan time.Time
	switch info.Metric {
	case "hangs":
	case "panics":
		panic("a bug")
	default:
		answer = time.After(time.Second)
	}
	select {
	case <-answer:
		return &external_metrics.ExternalMetricValueList{Items: []external_metrics.ExternalMetricValue{{Value: *resource.NewQuantity(3, resource.DecimalSI)}}}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// TestAMetricHangs checks that a metric that hangs makes no other metric of the decision fail, and that a
// bug is a panic of the caller, who recovers from it.
func TestAMetricHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := shop(t).options()
		o.External = unevenServers{}
		spec := &autoscalingv2.HorizontalPodAutoscalerSpec{Metrics: []autoscalingv2.MetricSpec{external("hangs", nil), external("a", nil), external("panics", nil), external("b", nil)}}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		began := time.Now()
		read := podmetrics.New(o).Readings(ctx, "shop", labels.Everything(), spec, nil)
		if r := read(0); r.Err == nil || time.Since(began) != 10*time.Second {
			t.Errorf("the metric that hangs: got %+v after %v, want an error after 10s", r, time.Since(began))
		}
		for _, i := range []int{1, 3} {
			if r := read(i); r.Err != nil || !slices.Equal(r.Values, []int64{3000}) {
				t.Errorf("metric %d: got %+v, want the value 3", i, r)
			}
		}
		defer func() {
			if v := recover(); v == nil {
				t.Error("the caller does not notice the panic")
			}
		}()
		read(2)
	})
}
