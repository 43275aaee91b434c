package resizeapi

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/resize"
	"github.com/weir-metrics/weir/test/cmptest"
)

var now = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// view has fifteen minutes of every container, always with the same usage, and of pods with twice that.
type view struct{ cores, bytes float64 }

func (v view) Points(e metric.Entity, id metric.ID, from, to time.Time) iter.Seq2[time.Time, float64] {
	return func(yield func(time.Time, float64) bool) {
		value := map[metric.ID]float64{metric.CPUUsageRate: v.cores * 1e9, metric.MemoryWorkingSet: v.bytes}[id]
		if e.Kind == metric.Pod {
			value *= 2
		}
		for at := now.Add(-15 * time.Minute); !at.After(now); at = at.Add(15 * time.Second) {
			if e.Kind != metric.Container && e.Kind != metric.Pod || e.Node != "n1" || at.Before(from) || at.After(to) || !yield(at, value) {
				return
			}
		}
	}
}

// PastContainers yields two pods of the Deployment web that are gone, and one of another workload.
func (v view) PastContainers(metric.Namespace) iter.Seq[metric.Entity] {
	return func(yield func(metric.Entity) bool) {
		for _, pod := range []metric.PodName{"web-5d4f8c7b9-x2x2x", "web-6c6c6c6c6-b4b4b", "other-5d4f8c7b9-x2x2x"} {
			if !yield(metric.Entity{Kind: metric.Container, Node: "n1", Namespace: "shop", Pod: pod, Name: "app"}) {
				return
			}
		}
	}
}

func facts() *cluster.Facts {
	pod := func(namespace metric.Namespace, name metric.PodName, phase cluster.Phase, cores float64) *cluster.Pod {
		c := cluster.Container{Name: "app", State: cluster.StateRunning}
		c.Spec.Set(metric.CPURequest, cores*1e9)
		return &cluster.Pod{PodRef: metric.PodRef{Namespace: namespace, Name: name}, Node: "n1", UID: "1", Phase: phase, QoS: "Burstable", Containers: []cluster.Container{c}}
	}
	var f *cluster.Facts
	return f.With(cluster.FactsChange{Synced: true, At: now, Pods: []*cluster.Pod{
		pod("shop", "cart", cluster.Running, 0.5), pod("shop", "web", cluster.Running, 0.04), pod("shop", "job", cluster.Succeeded, 3), pod("bank", "vault", cluster.Running, 1),
	}})
}

// serve starts a weir with these Options; it adds what they lack.
func serve(t *testing.T, o Options) *Client {
	t.Helper()
	mux := http.NewServeMux()
	if o.Usage == nil {
		o.Usage = func() UsageReader { return view{0.02, 64 << 20} }
	}
	if o.Facts == nil {
		o.Facts = facts
	}
	o.Now = func() time.Time { return now }
	for _, path := range Paths() {
		mux.Handle(path, NewHandler(o))
	}
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	w, err := weirdev.NewClient(s.URL, s.Client())
	if err != nil {
		t.Fatal(err)
	}
	return &Client{w}
}

// parameters returns r with parameters, as in a query.
func parameters(t *testing.T, r Request, list ...string) Request {
	t.Helper()
	for _, p := range list {
		name, text, _ := strings.Cut(p, "=")
		if err := r.Set(name, text); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// describeList returns a short text of a list.
func describeList(l *RecommendationList) string {
	var out strings.Builder
	for _, rec := range l.Items {
		out.WriteString(rec.Namespace + "/" + rec.Pod)
		for _, a := range rec.Requests {
			out.WriteString(" " + a.Container + " " + string(a.Resource) + " " + string(a.Reason))
			if a.Proposed != nil {
				out.WriteString(" " + a.Request.String() + "->" + a.Proposed.String())
			}
		}
		out.WriteString("\n")
	}
	return out.String()
}

func TestAnswers(t *testing.T) {
	c := serve(t, Options{})
	f := func(r Request, want string, stay map[resize.AdviceReason]int) {
		t.Helper()
		l, err := c.Recommend(t.Context(), r)
		if err != nil {
			t.Fatalf("%s: %v", r, err)
		}
		if got := describeList(l); got != want {
			t.Errorf("%s: got\n%swant\n%s", r, got, want)
		}
		cmptest.Equal(t, fmt.Sprintf("%s: stay", r), stay, l.Unchanged)
		if from, to := now.Add(-15*time.Minute), now; !l.From.Equal(from) || !l.To.Equal(to) || !l.At.Equal(now) || l.Source != "weir's memory" {
			t.Errorf("%s: got %v to %v at %v from %s, want %v to %v at %v", r, l.From, l.To, l.At, l.Source, from, to, now)
		}
		if len(l.Notes) == 0 || !strings.HasPrefix(l.Notes[0], "The readings cover 15m: ") {
			t.Errorf("%s: the notes do not say how short the history is: %q", r, l.Notes)
		}
	}
	const vault = "bank/vault app cpu Shrink 1->23m app memory NoRequest\n"
	const cart = "shop/cart app cpu Shrink 500m->23m app memory NoRequest\n"
	const web = "shop/web app cpu Shrink 40m->23m app memory NoRequest\n"
	f(NewRequest("", ""), vault+cart+web, map[resize.AdviceReason]int{resize.NoRequest: 3})
	f(NewRequest("shop", ""), cart+web, map[resize.AdviceReason]int{resize.NoRequest: 2})
	f(NewRequest("shop", "web"), web, map[resize.AdviceReason]int{resize.NoRequest: 1})

	f(parameters(t, NewRequest("shop", ""), "resources=cpu", "floor=100m"), "shop/cart app cpu Shrink 500m->100m\n", map[resize.AdviceReason]int{resize.Fits: 1})
	f(parameters(t, NewRequest("shop", ""), "resources=cpu", "floor=100m", "all=true"), "shop/cart app cpu Shrink 500m->100m\nshop/web app cpu Fits\n", map[resize.AdviceReason]int{resize.Fits: 1})
	f(parameters(t, NewRequest("shop", "web"), "resources=cpu", "floor=100m"), "shop/web app cpu Fits\n", map[resize.AdviceReason]int{resize.Fits: 1})
}

// A single pod is read from the API server, which has its resize policies.
func TestOnePodIsRead(t *testing.T) {
	read := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart", UID: "1"},
		Spec: corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{Name: "app",
			Resources:    corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: *resize.Quantity(resize.CPU, 500)}},
			ResizePolicy: []corev1.ContainerResizePolicy{{ResourceName: corev1.ResourceCPU, RestartPolicy: corev1.RestartContainer}}}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, QOSClass: corev1.PodQOSBurstable,
			ContainerStatuses: []corev1.ContainerStatus{{Name: "app", Resources: &corev1.ResourceRequirements{}, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}},
	}
	var err error
	c := serve(t, Options{Pod: func(_ context.Context, namespace, name string) (*corev1.Pod, error) {
		if namespace+"/"+name != "shop/cart" {
			t.Errorf("asked for %s/%s", namespace, name)
		}
		return read, err
	}})
	ask := func() (*RecommendationList, error) {
		return c.Recommend(t.Context(), NewRequest("shop", "cart"))
	}
	l, failed := ask()
	if failed != nil {
		t.Fatal(failed)
	}
	if got, want := describeList(l), "shop/cart app cpu Restarts app memory NoRequest\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}

	// The usage of the whole pod decides on requests of its own.
	read.Spec.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: *resize.Quantity(resize.CPU, 600)}}
	read.Spec.Containers[0].Resources.Requests, read.Status.Resources = nil, &corev1.ResourceRequirements{}
	if l, failed = ask(); failed != nil {
		t.Fatal(failed)
	}
	if got, want := describeList(l), "shop/cart  cpu Shrink 600m->46m app cpu PodLevel app memory NoRequest\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}

	// If the API server does not answer, the pod of the watch is used, and the answer says so.
	err = errors.New("dial tcp 10.0.0.1: refused")
	if l, failed = ask(); failed != nil {
		t.Fatal(failed)
	}
	if got, want := describeList(l), "shop/cart app cpu Shrink 500m->23m app memory NoRequest\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if !strings.Contains(l.Notes[0], "could not be read") || strings.Contains(l.Notes[0], "10.0.0.1") {
		t.Errorf("got note %q, want one that the pod could not be read, and no address", l.Notes[0])
	}

	err = apierrors.NewNotFound(corev1.Resource("pods"), "cart")
	if _, failed = ask(); failed == nil || failed.Error() != "the cluster has no pod shop/cart" {
		t.Errorf("got %v", failed)
	}
}

// A request that cannot be answered gets a problem that says what to do.
func TestProblems(t *testing.T) {
	f := func(o Options, path string, status int, message string) {
		t.Helper()
		if o.Usage == nil {
			o.Usage = func() UsageReader { return view{} }
		}
		if o.Facts == nil {
			o.Facts = facts
		}
		w := httptest.NewRecorder()
		NewHandler(o).ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code != status || !strings.Contains(w.Body.String(), message) || !strings.Contains(w.Body.String(), `"hint":`) {
			t.Errorf("%s: got %d %s, want %d with %q and a hint", path, w.Code, w.Body, status, message)
		}
	}
	f(Options{}, weirdev.Path+"namespaces/shop/recommendations/none", 404, "weir does not know pod shop/none")
	f(Options{}, weirdev.Path+"namespaces/shop/recommendations/a/b", 404, "unknown path")
	f(Options{}, weirdev.Path+"recommendations?percentile=0", 400, "the percentile of cpu is 0")
	f(Options{}, weirdev.Path+"recommendations?headroom=much", 400, `headroom: \"much\" is not a share`)
	f(Options{}, weirdev.Path+"recommendations?resources=gpu", 400, `\"gpu\" cannot be resized in place`)
	f(Options{}, weirdev.Path+"recommendations?up=true&up=false", 400, "parameter up needs one value")
	f(Options{}, weirdev.Path+"recommendations?floor=x", 400, "is not a quantity: write 100m")
	f(Options{}, weirdev.Path+"recommendations?color=red", 400, "unknown parameter")
	f(Options{}, weirdev.Path+"recommendations?workload=deployment/web", 400, "unknown parameter")
	f(Options{}, weirdev.Path+"namespaces/shop/recommendations/web?workloads=true", 400, "unknown parameter")
	f(Options{}, weirdev.Path+"namespaces/shop/recommendations?workload=web", 400, `is not KIND/NAME`)
	f(Options{}, weirdev.Path+"namespaces/shop/recommendations?workload=deployment/none", 404, "there is no pod of Deployment shop/none")
	f(Options{Usage: func() UsageReader { return nil }}, weirdev.Path+"recommendations", 503, "nothing has been measured yet")
	f(Options{Facts: func() *cluster.Facts { return new(cluster.Facts) }}, weirdev.Path+"recommendations", 503, "nothing has been measured yet")
	f(Options{Facts: func() *cluster.Facts { return nil }}, weirdev.Path+"recommendations", 503, "no API server to ask")

	w := httptest.NewRecorder()
	NewHandler(Options{}).ServeHTTP(w, httptest.NewRequest(http.MethodPost, weirdev.Path+"recommendations", nil))
	if w.Code != 405 || w.Header().Get("Allow") != "GET, HEAD" {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}

// The handler and Rights parse what the client sends into the same request.
func TestRequestsComeBack(t *testing.T) {
	f := func(r Request) {
		t.Helper()
		read, err := ParseRequest(httptest.NewRequest(http.MethodGet, weirdev.Path+strings.Join(r.path(), "/")+"?"+r.query.Encode(), nil))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(r, read, cmp.AllowUnexported(Request{})); diff != "" {
			t.Errorf("(-sent +read):\n%s", diff)
		}
	}
	f(NewRequest("", ""))
	f(parameters(t, NewRequest("shop", ""), "all=true"))
	f(parameters(t, NewRequest("shop", "cart"), "estimator=vpa"))
	f(parameters(t, NewRequest("", ""), "workloads=true"))
	f(parameters(t, NewRequest("shop", ""), "workload=statefulset/web"))
	all := parameters(t, NewRequest("shop", "cart"), "estimator=weir", "percentile=99.5", "headroom=7%", "floor=1m", "memory-percentile=90", "memory-headroom=0", "memory-floor=1",
		"resources=memory", "min-history=0s", "up=true", "limits=true", "all=true")
	f(all)
	want := resize.Options{
		CPU: resize.Aim{Percentile: 99.5, Headroom: 0.07, Floor: 1}, Memory: resize.Aim{Percentile: 90, Headroom: 0, Floor: 1},
		Resources: []resize.Resource{resize.Memory}, MinHistory: 0, Up: true, Limits: true,
	}
	if diff := cmp.Diff(want, all.Options); diff != "" || !all.All || len(all.query) != len(Parameters)-2 { // a pod has no workloads
		t.Errorf("options (-want +got):\n%s", diff)
	}
}

// No query leads to an absurd recommendation.
func FuzzParseRequest(f *testing.F) {
	f.Add("recommendations", "percentile=95&headroom=15%25")
	f.Add("namespaces/shop/recommendations/cart", "floor=1e300&min-history=-5s")
	f.Fuzz(func(t *testing.T, path, query string) {
		r := &http.Request{Method: http.MethodGet}
		u := httptest.NewRequest(http.MethodGet, weirdev.Path, nil).URL
		u.Path += path
		u.RawQuery = query
		r.URL = u
		request, err := ParseRequest(r)
		if err != nil {
			if p := (*weirdev.Problem)(nil); !errors.As(err, &p) || p.Hint == "" {
				t.Fatalf("%v is no problem with a hint", err)
			}
			return
		}
		if err := request.Validate(); err != nil {
			t.Fatal(err)
		}
		p := resize.FromFacts(facts().Pod(metric.PodRef{Namespace: "shop", Name: "cart"}))
		rec := usageMemory{view{0.02, 64 << 20}, now}.recommend(p, "n1", &request.Options)
		refusals, err := resize.Check(p, rec.Changes())
		if err != nil || len(refusals) > 0 {
			t.Fatalf("recommended is what is refused: %v %v", refusals, err)
		}
	})
}
