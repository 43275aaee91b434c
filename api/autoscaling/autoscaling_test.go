package autoscaling

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-metrics/weir/api/rights"
	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/autoscaler/decisionreport"
	"github.com/weir-metrics/weir/autoscaler/evaluate"
	"github.com/weir-metrics/weir/autoscaler/manifest"
	"github.com/weir-metrics/weir/autoscaler/scaleclient"
	"github.com/weir-metrics/weir/cluster"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

const hpa = `apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web, namespace: shop}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  maxReplicas: 10
`

// village has one Deployment of three pods. Each pod uses 40% of its request.
type village struct{}

func (village) Pods(string, labels.Selector) (pods []autoscaler.PodInput, err error) {
	for _, name := range []string{"web-1", "web-2", "web-3"} {
		pods = append(pods, autoscaler.PodInput{Name: name, Phase: cluster.Running, Ready: cluster.ReadyTrue, Started: noon.Add(-time.Hour),
			Containers: []autoscaler.ContainerInput{{Name: "app", Requests: autoscaler.Requests{CPU: autoscaler.MilliQuantity{Milli: 100, Set: true}}}}})
	}
	return pods, nil
}

func (village) Readings(_ context.Context, _ string, _ labels.Selector, _ *autoscalingv2.HorizontalPodAutoscalerSpec, pods []autoscaler.PodInput) func(int) autoscaler.Reading {
	r := autoscaler.Reading{At: noon}
	for i := range pods {
		r.Samples = append(r.Samples, autoscaler.PodSample{Pod: pods[i].Name, Milli: 40, At: noon, Window: 15 * time.Second})
	}
	return func(int) autoscaler.Reading { return r }
}

func (village) Verdicts(string, *autoscalingv2.HorizontalPodAutoscalerSpec) func(int, string) (decisionreport.PodVerdict, bool) {
	return func(int, string) (decisionreport.PodVerdict, bool) { return decisionreport.PodVerdict{}, false }
}

func (village) Get(context.Context, string, autoscalingv2.CrossVersionObjectReference) (autoscaler.Scale, *scaleclient.Handle, error) {
	return autoscaler.Scale{SpecReplicas: 3, StatusReplicas: 3, Selector: "app=web"}, nil, nil
}

// report is the controller's report on the only autoscaler it knows.
var report = &decisionreport.DecisionReport{Autoscaler: decisionreport.Object{Kind: manifest.Autoscaler, Namespace: "shop", Name: "api"}, At: noon, Mode: decisionreport.DryRun,
	Summary: "api: would stay at 1 replica", Current: 1, Desired: 1, Metrics: []decisionreport.MetricReport{}, Steps: []decisionreport.StepReport{}}

// options are those of a weir with a controller that knows only shop/api.
func options() Options {
	now := func() time.Time { return noon }
	return Options{
		Now: now,
		Explain: func(kind, namespace, name string) (*decisionreport.DecisionReport, bool) {
			return report, kind == report.Autoscaler.Kind && namespace+"/"+name == "shop/api"
		},
		Evaluator: &evaluate.Evaluator{PodMetrics: village{}, Scales: village{}, Now: now, PodMetricsAt: func(at time.Time) (evaluate.PodMetrics, error) {
			if at.Before(noon.Add(-15 * time.Minute)) {
				return nil, errors.New("memory reaches back 15m")
			}
			return village{}, nil
		}},
		WorkloadID: func(_ context.Context, namespace string, ref autoscalingv2.CrossVersionObjectReference) (scaleclient.WorkloadID, error) {
			if ref.Kind != "Deployment" {
				return scaleclient.WorkloadID{}, &meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: ref.Kind}}
			}
			return scaleclient.WorkloadID{Namespace: namespace, Resource: schema.GroupResource{Group: "apps", Resource: "deployments"}, Name: ref.Name}, nil
		},
		Read: func(_ context.Context, kind, namespace, name string) (*manifest.Manifest, error) {
			resource := schema.GroupResource{Group: "autoscaling", Resource: HPAs}
			switch {
			case namespace == "secret":
				return nil, apierrors.NewForbidden(resource, name, errors.New("no"))
			case kind == manifest.HorizontalPodAutoscaler && namespace+"/"+name == "shop/web":
				return manifest.Read([]byte(hpa))
			}
			return nil, apierrors.NewNotFound(resource, name)
		},
		Memory: func(kind, namespace, name string) (autoscaler.Memory, bool) {
			return autoscaler.Memory{Recommendations: []autoscaler.ReplicaRecommendation{{Replicas: 3, At: noon.Add(-time.Minute)}}}, name == "remembered"
		},
	}
}

func serve(t *testing.T, o Options) *Client {
	t.Helper()
	h := NewHandler(o)
	mux := http.NewServeMux()
	for _, path := range Paths() {
		mux.Handle(path, h)
	}
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	c, err := weirdev.NewClient(srv.URL, srv.Client())
	if err != nil {
		t.Fatal(err)
	}
	return &Client{c}
}

// The client reads the controller's report.
func TestExplanation(t *testing.T) {
	c := serve(t, options())
	got, err := c.Autoscaler(t.Context(), manifest.Autoscaler, "shop", "api")
	if diff := cmp.Diff(report, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// If the controller does not know an autoscaler, the handler makes a decision for the answer, and
// the answer says so.
func TestExplanationOfTheUnknown(t *testing.T) {
	c := serve(t, options())
	got, err := c.Autoscaler(t.Context(), manifest.HorizontalPodAutoscaler, "shop", "web")
	if err != nil {
		t.Fatal(err)
	}
	want := "web: would go 3 → 2 replicas, because cpu is at 40% of its request and the target is 80%"
	if got.Summary != want || len(got.Notes) != 1 || !strings.Contains(got.Notes[0], "No earlier decision is known") || len(got.Metrics[0].Pods) != 3 {
		t.Errorf("got %+v; want %q, three pods, and a note that no earlier decision is known", got, want)
	}
}

func TestEvaluation(t *testing.T) {
	c := serve(t, options())
	six := int32(6)
	f := func(name string, e Evaluation, want string) {
		t.Helper()
		e.Namespace = "shop"
		got, err := c.Evaluate(t.Context(), e)
		if err != nil || got.Summary != want {
			t.Errorf("%s: got %+v, %v; want %q", name, got, err, want)
		}
	}
	f("now", Evaluation{Manifest: []byte(hpa)}, "web: would go 3 → 2 replicas, because cpu is at 40% of its request and the target is 80%")
	f("in no namespace", Evaluation{Manifest: []byte(strings.Replace(hpa, ", namespace: shop", "", 1))}, "web: would go 3 → 2 replicas, because cpu is at 40% of its request and the target is 80%")
	f("from six, ten minutes ago", Evaluation{Manifest: []byte(hpa), At: "10m", Replicas: &six}, "web: would go 6 → 2 replicas, because cpu is at 40% of its request and the target is 80%, over 3 ready pods")
	f("of one that is remembered", Evaluation{Manifest: []byte(strings.Replace(hpa, "name: web", "name: remembered", 1))},
		"remembered: would stay at 3 replicas, because cpu is at 40% of its request and the target is 80%; that asks for 2, but 3 was recommended at 11:59:00 UTC, within the scaleDown window of 5m")
}

// An evaluation needs the caller's right to everything that its manifest names.
func TestRightsOfAnEvaluation(t *testing.T) {
	const metrics = `  metrics:
  - {type: Resource, resource: {name: cpu, target: {type: AverageValue, averageValue: 1}}}
  - {type: Pods, pods: {metric: {name: requests}, target: {type: AverageValue, averageValue: 1}}}
  - {type: Object, object: {metric: {name: hits}, describedObject: {apiVersion: networking.k8s.io/v1, kind: Ingress, name: front}, target: {type: Value, value: 1}}}
  - {type: Object, object: {metric: {name: orders}, describedObject: {apiVersion: v1, kind: Namespace, name: bank}, target: {type: Value, value: 1}}}
  - {type: External, external: {metric: {name: queue}, target: {type: Value, value: 1}}}
`
	const scale = `get deployments/scale.apps "web" in namespace shop`
	f := func(name, body string, needed ...string) {
		t.Helper()
		ask := func(refused string) (status int, reviewed []string, answer string) {
			r := httptest.NewRequest("POST", weirdev.Path+"namespaces/shop/evaluations", strings.NewReader(body))
			r = r.WithContext(rights.WithReviewer(r.Context(), func(_ context.Context, all []rights.Right) (missing []string, err error) {
				for _, right := range all {
					if reviewed = append(reviewed, right.String()); right.String() == refused {
						missing = append(missing, refused)
					}
				}
				return missing, nil
			}))
			w := httptest.NewRecorder()
			NewHandler(options()).ServeHTTP(w, r)
			return w.Code, reviewed, w.Body.String()
		}
		status, reviewed, answer := ask("")
		if diff := cmp.Diff(needed, reviewed); diff != "" || status != http.StatusOK {
			t.Errorf("%s: with all rights: got %d %s; rights (-want +got):\n%s", name, status, answer, diff)
		}
		for _, right := range needed {
			if status, _, answer := ask(right); status != http.StatusForbidden || !strings.Contains(strings.ReplaceAll(answer, `\"`, `"`), "it needs: "+right) {
				t.Errorf("%s: without the right to %s: got %d %s; want 403 and that right", name, right, status, answer)
			}
		}
	}
	f("CPU alone", hpa, scale)
	f("all types of metrics", hpa+metrics, `get pods/requests.custom.metrics.k8s.io "*" in namespace shop`,
		`get ingresses.networking.k8s.io/hits.custom.metrics.k8s.io "front" in namespace shop`, `get metrics.custom.metrics.k8s.io "orders" in namespace shop`,
		`list queue.external.metrics.k8s.io in namespace shop`, scale)
	f("one that is remembered", strings.Replace(hpa, "name: web", "name: remembered", 1), scale,
		`get horizontalpodautoscalers.autoscaling "remembered" in namespace shop`, `list pods.metrics.k8s.io in namespace shop`)
	f("a kind that does not exist", strings.Replace(hpa, "kind: Deployment", "kind: Deploymnet", 1))
}

// A problem says what is wrong and what to do, and it has the Kubernetes reason.
func TestProblems(t *testing.T) {
	bare := Options{Now: options().Now}
	slow := options()
	slow.Timeout = time.Nanosecond
	const evaluations = "namespaces/shop/evaluations"
	for name, test := range map[string]struct {
		options            Options
		method, path, body string
		status             int
		message            string
	}{
		"no such HPA":       {options(), "GET", "namespaces/shop/horizontalpodautoscalers/wbe/explanation", "", 404, "the cluster has no HorizontalPodAutoscaler shop/wbe"},
		"may not read":      {options(), "GET", "namespaces/secret/horizontalpodautoscalers/x/explanation", "", 503, `weir may not read HorizontalPodAutoscaler secret/x: horizontalpodautoscalers.autoscaling "x" is forbidden: no`},
		"nobody decides":    {bare, "GET", "namespaces/shop/autoscalers/api/explanation", "", 404, "weir does not know Autoscaler shop/api"},
		"nobody evaluates":  {bare, "POST", evaluations, hpa, 503, "this weir cannot evaluate autoscalers: it has no API server to ask about their targets"},
		"a parameter":       {options(), "GET", "namespaces/shop/autoscalers/api/explanation?at=5m", "", 400, `unknown parameter "at"`},
		"another parameter": {options(), "POST", evaluations + "?form=1", hpa, 400, `unknown parameter "form"`},
		"no time":           {options(), "POST", evaluations + "?at=yesterday", hpa, 400, `at: "yesterday" is neither a time nor how long ago; write a time as 2026-01-02T12:00:00Z, or how long ago: 5m`},
		"too long ago":      {options(), "POST", evaluations + "?at=1h", hpa, 400, "at: weir has no data of that time: memory reaches back 15m"},
		"the future":        {options(), "POST", evaluations + "?at=2026-01-02T12:00:01Z", hpa, 400, "at: weir has no data of that time: 2026-01-02T12:00:01Z is in the future"},
		"the beginning":     {options(), "POST", evaluations + "?at=0001-01-01T00:00:00Z", hpa, 400, `at: "0001-01-01T00:00:00Z" is too long ago; write a time as 2026-01-02T12:00:00Z, or how long ago: 5m`},
		"too many metrics": {options(), "POST", evaluations, hpa + "  metrics:\n" + strings.Repeat("  - {type: Resource, resource: {name: cpu, target: {type: AverageValue, averageValue: 1}}}\n", 65), 400,
			"spec.metrics: 65 are too many"},
		"no count":         {options(), "POST", evaluations + "?replicas=-1", hpa, 400, `replicas: "-1" is not a number from 0 to 1000000`},
		"twice":            {options(), "POST", evaluations + "?replicas=1&replicas=2", hpa, 400, "parameter replicas needs one value"},
		"nothing":          {options(), "POST", evaluations, "", 400, "the manifest is empty"},
		"a wrong field":    {options(), "POST", evaluations, strings.Replace(hpa, "maxReplicas", "maxReplica", 1), 400, `read manifest: strict decoding error: unknown field "spec.maxReplica"`},
		"elsewhere":        {options(), "POST", "namespaces/bank/evaluations", hpa, 400, "metadata.namespace: the manifest is of namespace shop, the request of bank"},
		"too long":         {options(), "POST", evaluations, strings.Repeat(" ", manifest.MaxBytes+1), 413, "the manifest is longer than 1048576 bytes"},
		"too slow":         {slow, "POST", evaluations, hpa, 504, "the evaluation took too long: evaluate shop/web: context deadline exceeded"},
		"get":              {options(), "GET", evaluations, "", 405, "this path accepts only POST, with the manifest as the body"},
		"post":             {options(), "POST", "namespaces/shop/autoscalers/api/explanation", "", 405, "an explanation is read-only"},
		"elsewhere at all": {options(), "GET", "namespaces/shop/horizontalpodautoscalers", "", 404, `unknown path "/apis/weir.dev/v1alpha1/namespaces/shop/horizontalpodautoscalers"`},
	} {
		t.Run(name, func(t *testing.T) {
			w := httptest.NewRecorder()
			NewHandler(test.options).ServeHTTP(w, httptest.NewRequest(test.method, weirdev.Path+test.path, strings.NewReader(test.body)))
			var got struct {
				Kind, Reason, Message, Hint string
				Code                        int
			}
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
				t.Fatalf("%v: %s", err, w.Body)
			}
			if w.Code != test.status || got.Code != test.status || got.Kind != "Status" || got.Message != test.message || got.Hint == "" || got.Reason == "" {
				t.Errorf("got %d, %+v; want %d, %q and a hint", w.Code, got, test.status, test.message)
			}
		})
	}
}

// A path and a query are parsed into a request, and the request leads to the same path and query
// again.
func FuzzRequest(f *testing.F) {
	for _, seed := range []string{"namespaces/shop/horizontalpodautoscalers/web/explanation", "namespaces/shop/autoscalers/web/explanation?timeout=5s",
		"namespaces/shop/evaluations?at=5m&replicas=3", "namespaces/a%2fb/evaluations?at=2026-01-02T12:00:00Z"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, target string) {
		u, err := url.Parse("http://weir" + weirdev.Path + target)
		if err != nil {
			return
		}
		r, err := ParseRequest(&http.Request{URL: u}, noon)
		if err != nil {
			var p *weirdev.Problem
			if !errors.As(err, &p) || p.Message == "" {
				t.Fatalf("%s: %#v is no problem", target, err)
			}
			return
		}
		path, query := r.pathAndQuery()
		for i := range path {
			path[i] = url.PathEscape(path[i])
		}
		again, err := ParseRequest(&http.Request{URL: &url.URL{Path: weirdev.Path + unescaped(strings.Join(path, "/")), RawPath: weirdev.Path + strings.Join(path, "/"), RawQuery: query.Encode()}}, noon)
		if diff := cmp.Diff(r, again); err != nil || diff != "" {
			t.Errorf("%s: %v (-first +again):\n%s", target, err, diff)
		}
	})
}

func unescaped(path string) string {
	p, err := url.PathUnescape(path)
	if err != nil {
		return path
	}
	return p
}

// Every body gets an answer: a report that can be read, or a problem.
func FuzzEvaluate(f *testing.F) {
	f.Add([]byte(hpa))
	f.Add([]byte(strings.Replace(hpa, "maxReplicas: 10", "maxReplicas: 10\n  metrics: [{type: External, external: {metric: {name: q}, target: {type: Value, value: 3}}}]", 1)))
	h := NewHandler(options())
	f.Fuzz(func(t *testing.T, body []byte) {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("POST", weirdev.Path+"namespaces/shop/evaluations", bytes.NewReader(body)))
		answer, err := io.ReadAll(w.Body)
		if err != nil {
			t.Fatal(err)
		}
		switch w.Code {
		case http.StatusOK:
			var r Response
			if err := json.Unmarshal(answer, &r); err != nil || r.Summary == "" {
				t.Errorf("%q: %v: %s", body, err, answer)
			}
			if err := r.WriteText(io.Discard, true); err != nil {
				t.Error(err)
			}
		case http.StatusBadRequest:
		default:
			t.Errorf("%q: %d %s", body, w.Code, answer)
		}
	})
}
