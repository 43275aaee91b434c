package explainapi

import (
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/metric"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// fixed is a view with the samples of a test.
type fixed struct{ samples []*metric.Sample }

func (f *fixed) Lookup(e metric.Entity) (*metric.Sample, bool) {
	i := slices.IndexFunc(f.samples, func(s *metric.Sample) bool {
		return s.Entity == e || e.Node == "" && s.Entity.Kind == e.Kind && s.Entity.PodRef() == e.PodRef() && s.Entity.Name == e.Name
	})
	if i < 0 {
		return nil, false
	}
	return f.samples[i], true
}

func (f *fixed) Pod(ref metric.PodRef) (pod *metric.Sample, containers []*metric.Sample) {
	for _, s := range f.samples {
		switch {
		case s.Entity.PodRef() != ref:
		case s.Entity.Kind == metric.Pod:
			pod = s
		default:
			containers = append(containers, s)
		}
	}
	return pod, containers
}

func (f *fixed) Samples(kind metric.Kind) iter.Seq[*metric.Sample] {
	return func(yield func(*metric.Sample) bool) {
		for _, s := range f.samples {
			if s.Entity.Kind == kind && !yield(s) {
				return
			}
		}
	}
}

func (f *fixed) EachOn(node metric.NodeName, kind metric.Kind, do func(*metric.Sample) bool) {
	for s := range f.Samples(kind) {
		if s.Entity.Node == node && !do(s) {
			return
		}
	}
}

func (f *fixed) Verdicts() iter.Seq2[metric.Verdict, time.Time] {
	return func(func(metric.Verdict, time.Time) bool) {}
}

func (f *fixed) VerdictsOn(metric.NodeName) iter.Seq2[metric.Verdict, time.Time] { return f.Verdicts() }

func measured(e metric.Entity) *metric.Sample {
	s := &metric.Sample{Entity: e}
	s.Values.Set(metric.CPUUsageRate, 250e6)
	s.Values.Set(metric.MemoryWorkingSet, 180<<20)
	s.Times[metric.CPU], s.Times[metric.Memory] = noon.UnixNano(), noon.UnixNano()
	s.Rates[metric.CPU] = metric.Window{End: noon.UnixNano(), Length: 15 * time.Second}
	s.Reasons[metric.CPU], s.Reasons[metric.Memory] = metric.Measured, metric.Measured
	return s
}

// village is a node with a pod that is measured, and a pod that is not bound to a node yet.
func village() *explain.Explainer {
	var facts *cluster.Facts
	facts = facts.With(cluster.FactsChange{Synced: true, At: noon, Nodes: []*cluster.Node{{Name: "n1"}}, Pods: []*cluster.Pod{
		{PodRef: metric.PodRef{Namespace: "shop", Name: "web"}, Node: "n1", Phase: cluster.Running, Owner: &cluster.Owner{Kind: "StatefulSet", Name: "web"},
			Containers: []cluster.Container{{Name: "app", State: cluster.StateRunning}}},
		{PodRef: metric.PodRef{Namespace: "bank", Name: "vault"}, Phase: cluster.Pending},
	}})
	return &explain.Explainer{Now: noon, Facts: facts, View: &fixed{samples: []*metric.Sample{
		measured(metric.Entity{Kind: metric.Node, Node: "n1"}),
		measured(metric.Entity{Kind: metric.Pod, Node: "n1", Namespace: "shop", Pod: "web"}),
		measured(metric.Entity{Kind: metric.Container, Node: "n1", Namespace: "shop", Pod: "web", Name: "app"}),
		measured(metric.Entity{Kind: metric.System, Node: "n1", Name: "/init.scope"}),
	}}}
}

func serveExplainer(t *testing.T, w *explain.Explainer) *httptest.Server {
	t.Helper()
	return serve(t, Paths(), NewHandler(func() *explain.Explainer { return w }))
}

// The client reads what the handler wrote, and that is the answer of the explainer.
func TestThereAndBack(t *testing.T) {
	w := village()
	c := client(t, serveExplainer(t, w).URL, nil)
	same := func(what string, want, got any, err error) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", what, err)
		} else if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	web := metric.PodRef{Namespace: "shop", Name: "web"}
	pod, ok := w.Pod(web)
	got, err := c.Pod(t.Context(), web)
	same("pod", &pod, got, err)
	cgroup, known := w.Cgroup("n1", "/init.scope")
	got, err = c.Cgroup(t.Context(), "n1", "/init.scope")
	same("cgroup", &cgroup, got, err)
	if _, err := c.Cgroup(t.Context(), "n1", "/none"); !known || err == nil {
		t.Errorf("an unknown cgroup: got no error")
	}
	container, ok2 := w.Container(web, "app")
	got, err = c.Container(t.Context(), web, "app")
	same("container", &container, got, err)
	node, ok3 := w.Node("n1")
	got, err = c.Node(t.Context(), "n1")
	same("node", &node, got, err)
	bank, ok4 := w.Namespace("bank")
	report, err := c.Missing(t.Context(), "bank")
	same("namespace", &bank, report, err)
	set, ok5 := w.Workload("shop", "statefulset", "web")
	report, err = c.Workload(t.Context(), "shop", cluster.Owner{Kind: "statefulset", Name: "web"})
	same("workload", &set, report, err)
	if want := (&explain.Workload{Kind: "StatefulSet", Name: "web", CPUCores: 0.25, MemoryBytes: 180 << 20}); !ok5 || !cmp.Equal(set.Workload, want) {
		t.Errorf("the workload: got %+v, want %+v", set.Workload, want)
	}
	if _, err := c.Workload(t.Context(), "shop", cluster.Owner{Kind: "deployment", Name: "web"}); err == nil {
		t.Error("an unknown workload: got no error")
	}
	all := w.Missing()
	report, err = c.Missing(t.Context(), "")
	same("cluster", &all, report, err)
	if !ok || !ok2 || !ok3 || !ok4 || pod.Kind != "pod" || !pod.Findings[0].Served {
		t.Errorf("the explainer answers too little: pod %v %+v, container %v, node %v, namespace %v", ok, pod, ok2, ok3, ok4)
	}
}

// TestWorkload has a Deployment with two pods that are measured, one that waits and one without numbers,
// and a pod of another Deployment.
func TestWorkload(t *testing.T) {
	w := village()
	add := func(workload, name string, phase cluster.Phase, numbers bool) {
		p := &cluster.Pod{
			PodRef: metric.PodRef{Namespace: "shop", Name: metric.PodName(name)}, Node: "n1", Phase: phase,
			Labels: map[string]string{"pod-template-hash": "5dff"}, Owner: &cluster.Owner{Kind: "ReplicaSet", Name: workload + "-5dff"},
			Containers: []cluster.Container{{Name: "app", State: cluster.StateRunning}},
		}
		w.Facts = w.Facts.With(cluster.FactsChange{Synced: true, At: noon, Pods: []*cluster.Pod{p}})
		if numbers {
			view := w.View.(*fixed)
			view.samples = append(view.samples, measured(metric.Entity{Kind: metric.Pod, Node: "n1", Namespace: "shop", Pod: p.Name}))
		}
	}
	add("api", "api-1", cluster.Running, true)
	add("api", "api-2", cluster.Running, true)
	add("api", "api-3", cluster.Pending, false)
	add("api", "api-4", cluster.Running, false)
	add("other", "other-1", cluster.Running, true)
	w.Autoscalers = func(p *cluster.Pod) []string { return []string{"shop/" + p.Workload().Name} }
	report, ok := w.Workload("shop", "deployment", "api")
	want := explain.Workload{Kind: "Deployment", Name: "api", CPUCores: 0.5, MemoryBytes: 360 << 20, Autoscalers: []string{"shop/api"}}
	if !ok || report.Workload == nil || !cmp.Equal(*report.Workload, want) {
		t.Errorf("got %+v, want %+v", report.Workload, want)
	}
	if got, want := report.Pods, (explain.Tally{Expected: 3, Served: 2, Idle: 1}); got != want {
		t.Errorf("pods: got %+v, want %+v", got, want)
	}
	if len(report.Causes) != 1 || !cmp.Equal(report.Causes[0].Names, []string{"shop/api-4"}) {
		t.Errorf("causes: got %+v, want one, of shop/api-4", report.Causes)
	}
	const summary = "Deployment shop/api: 2 of 3 pods have CPU and memory. 1 pod is waiting or finished and has no metrics. Together they use 500m of CPU and 360Mi of memory."
	if report.Summary != summary {
		t.Errorf("got %q, want %q", report.Summary, summary)
	}
}

// A report of a whole namespace is no answer about a workload.
func TestWorkloadIsNotItsNamespace(t *testing.T) {
	namespace, _ := village().Namespace("shop")
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { weirdev.Respond(w, NewReport(namespace), nil) }))
	t.Cleanup(srv.Close)
	_, err := client(t, srv.URL, nil).Workload(t.Context(), "shop", cluster.Owner{Kind: "statefulset", Name: "web"})
	if err == nil || !strings.Contains(err.Error(), "statefulset/web in namespace shop: the report is not about a workload") {
		t.Errorf("got error %v", err)
	}
}

// Every answer has its kind.
func TestKinds(t *testing.T) {
	srv := serveExplainer(t, village())
	for path, want := range map[string]string{
		"namespaces/shop/pods/web/explanation":               "PodExplanation",
		"namespaces/shop/pods/web/explanation?container=app": "ContainerExplanation",
		"nodes/n1/explanation?timeout=5s":                    "NodeExplanation",
		"missing?limit=500":                                  "MissingReport",
		"namespaces/bank/missing":                            "MissingReport",
		"namespaces/shop/missing?workload=statefulset/web":   "MissingReport",
		"namespaces/shop/missing?workload=web":               "Status",
		"missing?workload=statefulset/web":                   "Status",
		"namespaces/bank/pods/nope/explanation":              "Status",
	} {
		resp, err := http.Get(srv.URL + weirdev.Path + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var is struct{ APIVersion, Kind string }
		if err := json.NewDecoder(resp.Body).Decode(&is); err != nil || is.Kind != want || want != "Status" && is.APIVersion != "weir.dev/v1alpha1" {
			t.Errorf("%s: got %+v, %v; want a %s", path, is, err, want)
		}
		if got := resp.Header.Get("Cache-Control"); got != "no-store" {
			t.Errorf("%s: Cache-Control is %q", path, got)
		}
	}
}

// A problem says what is wrong and what to do, and it has the Kubernetes reason.
func TestProblems(t *testing.T) {
	var unsynced *cluster.Facts
	unsynced = unsynced.With(cluster.FactsChange{})
	alone := village()
	alone.Facts = nil
	for name, test := range map[string]struct {
		explainer    *explain.Explainer
		method, path string
		status       int
		message      string
		hint         string
	}{
		"pod":         {village(), "GET", "namespaces/shop/pods/wbe/explanation", 404, "weir does not know pod shop/wbe", "Neither the API server nor any node has reported it. Is it in another namespace?"},
		"container":   {village(), "GET", "namespaces/shop/pods/web/explanation?container=ap", 404, "weir does not know container ap of pod shop/web", "The pod has app."},
		"node":        {village(), "GET", "nodes/n2/explanation", 404, "weir does not know node n2", "Neither the API server nor any node has reported it. Is the name right?"},
		"no cluster":  {alone, "GET", "nodes/n2/explanation", 404, "weir does not know node n2", "No node that is read reports it, and this weir has no API server to ask. Is the name right?"},
		"namespace":   {village(), "GET", "namespaces/x/missing", 404, "weir knows no pods in namespace x", "Neither the API server nor any node has reported it. Is the name right?"},
		"parameter":   {village(), "GET", "missing?container=app", 400, `unknown parameter "container"`, "This path takes no parameters."},
		"twice":       {village(), "GET", "namespaces/shop/pods/web/explanation?container=a&container=b", 400, "parameter container needs one value", "Parameters of this path: container."},
		"method":      {village(), "POST", "missing", 405, "an explanation is read-only", "Use GET."},
		"too early":   {&explain.Explainer{Now: noon}, "GET", "missing", 503, "nothing has been measured yet", "Ask again in a few seconds; weir's /readyz shows what weir is waiting for."},
		"not synced":  {&explain.Explainer{Now: noon, Facts: unsynced}, "GET", "missing", 503, "nothing has been measured yet", "Ask again in a few seconds; weir's /readyz shows what weir is waiting for."},
		"too early 2": {&explain.Explainer{Now: noon}, "GET", "nodes/n1/explanation", 503, "nothing has been measured yet", "Ask again in a few seconds; weir's /readyz shows what weir is waiting for."},
	} {
		t.Run(name, func(t *testing.T) {
			w := httptest.NewRecorder()
			NewHandler(func() *explain.Explainer { return test.explainer }).ServeHTTP(w, httptest.NewRequest(test.method, weirdev.Path+test.path, nil))
			var got struct {
				Kind, APIVersion, Status, Reason, Message, Hint string
				Code                                            int
			}
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
				t.Fatalf("%v: %s", err, w.Body)
			}
			want := got
			want.Kind, want.APIVersion, want.Status, want.Code, want.Message, want.Hint = "Status", "v1", "Failure", test.status, test.message, test.hint
			want.Reason = strings.ReplaceAll(http.StatusText(test.status), " ", "") // the form of Kubernetes reasons
			if diff := cmp.Diff(want, got); diff != "" || w.Code != test.status {
				t.Errorf("status %d (-want +got):\n%s", w.Code, diff)
			}
		})
	}
}

// Before the first read, an explanation uses what the API server says.
func TestExplainsBeforeTheFirstRead(t *testing.T) {
	w := village()
	w.View = nil
	c := client(t, serveExplainer(t, w).URL, nil)
	e, err := c.Pod(t.Context(), metric.PodRef{Namespace: "bank", Name: "vault"})
	if err != nil || len(e.Findings) == 0 || e.Findings[0].Reason != "PodPending" {
		t.Errorf("a pending pod: got %+v, %v; want PodPending", e, err)
	}
	if _, err := c.Missing(t.Context(), ""); err != nil {
		t.Errorf("what is missing: %v", err)
	}
}

func TestClientPassesOnWhatIsWrong(t *testing.T) {
	for name, test := range map[string]struct {
		status int
		body   string
		want   string
	}{
		"kubernetes":   {404, `{"kind":"Status","message":"pods.weir.dev is forbidden"}`, "pods.weir.dev is forbidden"},
		"a page":       {502, "<html>", "502 Bad Gateway"},
		"text":         {503, "service unavailable\n", "service unavailable"},
		"someone else": {200, `{"kind":"List","apiVersion":"v1"}`, "read the answer about pod shop/web: got a List of v1, want an explanation of weir.dev/v1alpha1"},
		"no JSON":      {200, `hello`, "read the answer about pod shop/web: invalid character 'h' looking for beginning of value"},
	} {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(test.status)
				io.WriteString(w, test.body)
			}))
			defer srv.Close()
			c := client(t, srv.URL, srv.Client())
			if _, err := c.Pod(t.Context(), metric.PodRef{Namespace: "shop", Name: "web"}); err == nil || err.Error() != test.want {
				t.Errorf("got error %v, want %s", err, test.want)
			}
		})
	}
}

// The client refuses a name that would change the path.
func TestClientRefusesWhatIsNoName(t *testing.T) {
	c := client(t, "http://127.0.0.1:1/proxy", nil)
	for _, name := range []metric.PodName{"", ".", ".."} {
		if _, err := c.Pod(t.Context(), metric.PodRef{Namespace: "shop", Name: name}); err == nil || !strings.Contains(err.Error(), "nothing can be called") {
			t.Errorf("pod %q: got %v, want a refusal", name, err)
		}
	}
}

func TestParseRequestRefuses(t *testing.T) {
	f := func(status int, targets ...string) {
		t.Helper()
		for _, target := range targets {
			u, err := url.Parse("http://weir" + target)
			if err != nil {
				t.Fatal(err)
			}
			got, err := ParseRequest(&http.Request{URL: u})
			var p *weirdev.Problem
			if !errors.As(err, &p) || p.Status != status || status == http.StatusNotFound && p.Hint == "" {
				t.Errorf("%s: got %+v, %#v; want status %d", target, got, err, status)
			}
		}
	}
	f(http.StatusNotFound, "/missing", weirdev.Path, weirdev.Path+"missing/", weirdev.Path+"%6Dissing", weirdev.Path+"nodes/explanation", weirdev.Path+"nodes//explanation", weirdev.Path+"nodes/../explanation",
		weirdev.Path+"namespaces/shop/pods/web", weirdev.Path+"namespaces/shop/pods/web/explanation/x", weirdev.Path+"namespaces/%2E%2E/pods/web/explanation", weirdev.Path+"pods/web/explanation")
	f(http.StatusBadRequest, weirdev.Path+"missing?a", weirdev.Path+"missing?a=%zz", weirdev.Path+"nodes/n1/explanation?container=a", weirdev.Path+"namespaces/shop/pods/web/explanation?container=")
}

// A path is parsed into a request, and the request leads to the same path again. One of Paths
// matches it with the same names.
func FuzzRequest(f *testing.F) {
	for _, seed := range []string{"missing", "nodes/n1/explanation", "namespaces/shop/missing", "namespaces/shop/pods/web/explanation?container=app", "namespaces/a%2fb/pods/%2e/explanation"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, target string) {
		u, err := url.Parse("http://weir" + weirdev.Path + target)
		if err != nil {
			return
		}
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.URL = u
		got, err := ParseRequest(r)
		if err != nil {
			return
		}
		path, query := got.target()
		again := &url.URL{Scheme: "http", Host: "weir", Path: "/", RawQuery: query.Encode()}
		again = again.JoinPath(weirdev.Path)
		for _, part := range path {
			again = again.JoinPath(url.PathEscape(part))
		}
		r2 := httptest.NewRequest(http.MethodGet, "/", nil)
		r2.URL = again
		if back, err := ParseRequest(r2); err != nil || back != got {
			t.Errorf("%q is %+v, which leads to %s and back to %+v, %v", target, got, again, back, err)
		}
		mux := http.NewServeMux()
		found := false
		for _, pattern := range Paths() {
			mux.HandleFunc(pattern, func(_ http.ResponseWriter, r *http.Request) {
				found = r.PathValue("namespace") == string(got.Namespace) && r.PathValue("name") == string(got.Node)+string(got.Pod)
			})
		}
		if mux.ServeHTTP(httptest.NewRecorder(), r); !found {
			t.Errorf("%q is read as %+v, and no path leads there", target, got)
		}
	})
}

// client returns a client of the weir at base.
func client(t *testing.T, base string, through *http.Client) *Client {
	t.Helper()
	weir, err := weirdev.NewClient(base, through)
	if err != nil {
		t.Fatal(err)
	}
	return &Client{weir}
}
