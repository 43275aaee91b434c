package kubeletapi_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/weir-metrics/weir/api/kubeletapi"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/processors/aggregate"
)

// read is when everything in these tests was read, and began when every instance started.
var (
	read  = time.Date(2026, 11, 21, 4, 0, 0, 123456789, time.UTC).UnixNano()
	began = time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC).UnixNano()
)

// fixture is a round that a test fills.
type fixture struct{ metric.Batch }

func newFixture() *fixture {
	w := &fixture{metric.Batch{Source: "host", Node: node, Exhaustive: true, Ended: time.Unix(0, read)}}
	w.add(metric.Entity{Kind: metric.Node}, "/", "", "", 100)
	return w
}

// add adds a cgroup that used this many seconds of CPU and MiB of memory.
func (w *fixture) add(e metric.Entity, path metric.CgroupPath, uid metric.PodUID, id metric.ContainerID, used float64) *metric.Sample {
	e.Node = node
	s := w.Add(e)
	s.Instance = metric.Instance{Path: path, Inode: 1, UID: uid, ID: id, Start: began, Origin: metric.StartRuntime}
	for id, v := range map[metric.ID]float64{
		metric.CPUUsage: used * 1e9, metric.CPUUsageRate: 25e7, metric.MemoryWorkingSet: used * (1 << 20), metric.MemoryUsage: used * (1 << 21),
		metric.MemoryPageFaults: 7, metric.MemoryMajorPageFaults: 1, metric.MemorySwap: 4096,
	} {
		s.Values.Set(id, v)
	}
	s.Times[metric.CPU], s.Times[metric.Memory] = read, read
	s.Reasons[metric.CPU], s.Reasons[metric.Memory] = metric.Measured, metric.Measured
	return s
}

const uid = "80cd749e-fe99-4226-bfc9-fe1dcb4e4831"

// pod adds a pod shop/NAME and its container app, named by the runtime.
func (w *fixture) pod(name metric.PodName, used float64) (pod, app *metric.Sample) {
	dir := metric.CgroupPath("/kubepods/burstable/pod" + uid + string(name))
	e := metric.Entity{Kind: metric.Pod, Namespace: "shop", Pod: name}
	w.add(e, dir, metric.PodUID(uid+string(name)), "", used)
	e.Kind, e.Name = metric.Container, "app"
	w.add(e, dir+"/c0ffee", metric.PodUID(uid+string(name)), "c0ffee", used-1)
	return &w.Samples[len(w.Samples)-2], &w.Samples[len(w.Samples)-1]
}

// lines returns the lines of a family that h serves.
func lines(t *testing.T, h http.Handler, path, family string) (found []string) {
	t.Helper()
	for line := range strings.Lines(string(serve(t, h, path))) {
		if strings.HasPrefix(line, family+"{") || strings.HasPrefix(line, family+" ") {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return found
}

func want(t *testing.T, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A counter is served before its rate is known. A counter of another instance, one that was not
// read, and a last known value are not served.
func TestSummaryOfPods(t *testing.T) {
	for _, c := range []struct {
		name     string
		set      func(*metric.Sample)
		reported bool
	}{
		{"measured", func(*metric.Sample) {}, true},
		{"no rate yet", func(s *metric.Sample) { s.Reasons[metric.CPU] = metric.FirstSample }, true},
		{"a counter that fell", func(s *metric.Sample) { s.Reasons[metric.CPU] = metric.CounterReset }, true},
		{"one of two that nothing tells apart", func(s *metric.Sample) { s.Reasons[metric.CPU] = metric.Ambiguous }, true},
		{"an old pod's", func(s *metric.Sample) { s.Reject(metric.OldPod) }, false},
		{"the other of two", func(s *metric.Sample) { s.Reject(metric.Ambiguous) }, false},
		{"zeros that were not read", func(s *metric.Sample) { s.Reasons[metric.CPU] = metric.NoData }, false},
		{"an earlier reading", func(s *metric.Sample) { s.LastKnown |= 1 << metric.CPU }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newFixture()
			_, app := w.pod("web", 10)
			c.set(app)
			h := handler(t, &w.Batch, kubeletapi.Options{})
			var reported []string
			if c.reported {
				reported = []string{`container_cpu_usage_seconds_total{container="app",namespace="shop",pod="web"} 9 1795233600123`}
			}
			want(t, lines(t, h, kubeletapi.ResourcePath, "container_cpu_usage_seconds_total"), reported...)
			pods := ofSummary.parse(t, serve(t, h, kubeletapi.SummaryPath))
			if got := slices.ContainsFunc(pods.Samples, func(s metric.Sample) bool {
				return s.Entity.Kind == metric.Container && s.Values.Has(metric.CPUUsage)
			}); got != c.reported {
				t.Errorf("the summary has CPU time: %t, want %t", got, c.reported)
			}
			want(t, lines(t, h, kubeletapi.ResourcePath, "resource_scrape_error"), "resource_scrape_error 0")
		})
	}
}

// A pod's memory is that of its cgroup on every path, as in kubelets, and not the sum of its
// containers.
func TestPodMemory(t *testing.T) {
	w := newFixture()
	w.pod("web", 10) // its container uses 9 MiB
	aggregate.New().Process(nil, &w.Batch, w.Ended)
	h := handler(t, &w.Batch, kubeletapi.Options{})
	want(t, lines(t, h, kubeletapi.ResourcePath, "pod_memory_working_set_bytes"), `pod_memory_working_set_bytes{namespace="shop",pod="web"} 1.048576e+07 1795233600123`)
	for _, line := range lines(t, h, kubeletapi.CAdvisorPath, "container_memory_working_set_bytes") {
		if strings.Contains(line, `container=""`) && strings.Contains(line, `pod="web"`) && !strings.Contains(line, " 1.048576e+07 ") {
			t.Errorf("the pod's row of /metrics/cadvisor is %s", line)
		}
	}
	var summary stats.Summary
	if err := json.Unmarshal(serve(t, h, kubeletapi.SummaryPath), &summary); err != nil {
		t.Fatal(err)
	}
	if got := *summary.Pods[0].Memory.WorkingSetBytes; got != 10<<20 {
		t.Errorf("the summary has %d bytes", got)
	}
}

// Without names from the runtime, pods get their names from the facts. A pod that is not in the
// facts is served only with its path.
func TestNamesByFacts(t *testing.T) {
	w := newFixture()
	for _, p := range []struct{ uid, id string }{{uid, "c0ffee"}, {"00000000-0000-0000-0000-000000000000", "decade"}} {
		dir := metric.CgroupPath("/kubepods/pod" + p.uid)
		w.add(metric.Entity{Kind: metric.Pod, Pod: metric.PodName(p.uid)}, dir, metric.PodUID(p.uid), "", 10)
		w.add(metric.Entity{Kind: metric.Container, Pod: metric.PodName(p.uid), Name: p.id}, dir+metric.CgroupPath("/"+p.id), metric.PodUID(p.uid), metric.ContainerID(p.id), 8)
		// The sandbox of the pod, which has no name.
		w.add(metric.Entity{Kind: metric.Container, Pod: metric.PodName(p.uid), Name: "5a4db0"}, dir+"/5a4db0", metric.PodUID(p.uid), "5a4db0", 1)
	}
	facts := (*cluster.Facts)(nil).With(cluster.FactsChange{Synced: true, Pods: []*cluster.Pod{{
		PodRef: metric.PodRef{Namespace: "shop", Name: "web"}, UID: uid, Node: node,
		Containers: []cluster.Container{{Name: "app", ID: "c0ffee"}},
	}}})
	h := handler(t, &w.Batch, kubeletapi.Options{
		Facts: func() *cluster.Facts { return facts },
		Image: func(pod metric.PodRef, container string) string { return pod.String() + ":" + container },
	})
	want(t, lines(t, h, kubeletapi.ResourcePath, "pod_cpu_usage_seconds_total"),
		`pod_cpu_usage_seconds_total{namespace="shop",pod="web"} 10 1795233600123`)
	want(t, lines(t, h, kubeletapi.ResourcePath, "container_cpu_usage_seconds_total"),
		`container_cpu_usage_seconds_total{container="app",namespace="shop",pod="web"} 8 1795233600123`)
	const unknown = "/kubepods/pod00000000-0000-0000-0000-000000000000"
	want(t, lines(t, h, kubeletapi.CAdvisorPath, "container_cpu_usage_seconds_total"),
		`container_cpu_usage_seconds_total{container="",cpu="total",id="/",image="",name="",namespace="",pod=""} 100 1795233600123`,
		`container_cpu_usage_seconds_total{container="",cpu="total",id="`+unknown+`",image="",name="",namespace="",pod=""} 10 1795233600123`,
		`container_cpu_usage_seconds_total{container="",cpu="total",id="`+unknown+`/5a4db0",image="",name="5a4db0",namespace="",pod=""} 1 1795233600123`,
		`container_cpu_usage_seconds_total{container="",cpu="total",id="`+unknown+`/decade",image="",name="decade",namespace="",pod=""} 8 1795233600123`,
		`container_cpu_usage_seconds_total{container="",cpu="total",id="/kubepods/pod`+uid+`",image="",name="",namespace="shop",pod="web"} 10 1795233600123`,
		`container_cpu_usage_seconds_total{container="",cpu="total",id="/kubepods/pod`+uid+`/5a4db0",image="",name="5a4db0",namespace="shop",pod="web"} 1 1795233600123`,
		`container_cpu_usage_seconds_total{container="app",cpu="total",id="/kubepods/pod`+uid+`/c0ffee",image="shop/web:app",name="c0ffee",namespace="shop",pod="web"} 8 1795233600123`)
}

// Whatever name a cgroup has, the answer is valid and has that name.
func TestOddNames(t *testing.T) {
	odd := []string{`quo"te`, `back\slash`, "line\nfeed", "ünï", "comma,equals={}", `bad` + "\xff"}
	w := newFixture()
	for _, name := range odd {
		w.add(metric.Entity{Kind: metric.System, Name: "/" + name}, metric.CgroupPath("/"+name), "", "", 1)
		w.add(metric.Entity{Kind: metric.Container, Namespace: "shop", Pod: "web", Name: name}, metric.CgroupPath("/c/"+name), "", "", 1)
	}
	h := handler(t, &w.Batch, kubeletapi.Options{})
	parser := expfmt.NewTextParser(model.UTF8Validation)
	all, err := parser.TextToMetricFamilies(bytes.NewReader(serve(t, h, kubeletapi.CAdvisorPath)))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range all["container_cpu_usage_seconds_total"].Metric {
		for _, l := range m.Label {
			if l.GetName() == "id" && l.GetValue() != "/" && !strings.HasPrefix(l.GetValue(), "/c/") {
				got = append(got, l.GetValue()[1:])
			}
		}
	}
	slices.Sort(got)
	// Invalid UTF-8 is written as an escape.
	spelt := slices.Clone(odd)
	spelt[5] = `bad\xff`
	slices.Sort(spelt)
	want(t, got, spelt...)
	for _, e := range []endpoint{ofCAdvisor, ofResource, ofSummary} {
		names := map[string]bool{}
		for _, s := range e.parse(t, serve(t, h, e.path)).Samples {
			if s.Entity.Kind == metric.Container {
				names[s.Entity.Name] = true
			}
		}
		for _, name := range odd[:5] {
			if !names[name] {
				t.Errorf("%s: no container %q in %q", e.path, name, slices.Sorted(maps.Keys(names)))
			}
		}
	}
}

// Two names that are the same as labels cost only one of their containers.
func TestNamesThatBecomeOne(t *testing.T) {
	w := newFixture()
	for i, name := range []string{"app", `bad` + "\xff", `bad\xff`} {
		w.add(metric.Entity{Kind: metric.Container, Namespace: "shop", Pod: "web", Name: name}, metric.CgroupPath("/c/"+strconv.Itoa(i)), "", "", 1)
	}
	h := handler(t, &w.Batch, kubeletapi.Options{})
	var names []string
	for _, s := range ofResource.parse(t, serve(t, h, ofResource.path)).Samples {
		if s.Entity.Kind == metric.Container {
			names = append(names, s.Entity.Name)
		}
	}
	want(t, names, "app", `bad\xff`)
}

func TestNothingReadYet(t *testing.T) {
	h := kubeletapi.NewHandler(kubeletapi.Options{Newest: kubeletapi.NewNewest("host")})
	failed := handler(t, &metric.Batch{Source: "host", Node: node, Err: errors.New("the disk is on fire")}, kubeletapi.Options{})
	for _, h := range []http.Handler{h, failed} {
		want(t, lines(t, h, kubeletapi.ResourcePath, "resource_scrape_error"), "resource_scrape_error 1")
		want(t, lines(t, h, kubeletapi.CAdvisorPath, "container_scrape_error"), "container_scrape_error 1")
	}
	if w := get(t, h, kubeletapi.SummaryPath); w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "not been read yet") {
		t.Errorf("summary: %d %s", w.Code, w.Body)
	}
	if w := get(t, failed, kubeletapi.SummaryPath); w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "on fire") {
		t.Errorf("summary after a failed read: %d %s", w.Code, w.Body)
	}
}

// A batch of another source is ignored. A source that was removed leaves no round.
func TestNewest(t *testing.T) {
	w := newFixture()
	n := kubeletapi.NewNewest("host")
	h := kubeletapi.NewHandler(kubeletapi.Options{Newest: n})
	other := newFixture()
	other.Source = "kubelet:resource"
	for _, b := range []*metric.Batch{&w.Batch, &other.Batch} {
		if err := n.Write(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		w.Samples[0].Values.Set(metric.CPUUsage, 1) // a later change of the batch does not change the round
		want(t, lines(t, h, kubeletapi.ResourcePath, "node_cpu_usage_seconds_total"), "node_cpu_usage_seconds_total 100 1795233600123")
	}
	n.Forget("host", node)
	want(t, lines(t, h, kubeletapi.ResourcePath, "node_cpu_usage_seconds_total"))
}

// Names are those of Kubernetes and cAdvisor. The findings of a linter against them are known.
func TestLint(t *testing.T) {
	known := map[string][]string{
		kubeletapi.ResourcePath: nil,
		kubeletapi.CAdvisorPath: {
			"cadvisor_version_info: label names should be written in 'snake_case' not 'camelCase'",
			`container_fs_inodes_total: non-counter metrics should not have "_total" suffix`,
			`container_memory_failcnt: counter metrics should have "_total" suffix`,
		},
	}
	for _, e := range []endpoint{ofResource, ofCAdvisor} {
		for _, body := range captures(t, "01-steady/00/"+e.capture) {
			served := serve(t, handler(t, e.parse(t, body), kubeletapi.Options{}), e.path)
			problems, err := promlint.New(bytes.NewReader(served)).Lint()
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, p := range problems {
				got = append(got, p.Metric+": "+p.Text)
			}
			want(t, slices.Compact(got), known[e.path]...)
		}
	}
}

func TestMethodsAndPaths(t *testing.T) {
	h := handler(t, &newFixture().Batch, kubeletapi.Options{})
	for _, path := range kubeletapi.Paths() {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, nil))
		if w.Code != http.StatusMethodNotAllowed {
			t.Errorf("POST %s: %d, want 405", path, w.Code)
		}
		w = httptest.NewRecorder()
		if h.ServeHTTP(w, httptest.NewRequest(http.MethodHead, path, nil)); w.Code != http.StatusOK || path == kubeletapi.SummaryPath && w.Body.Len() > 0 {
			t.Errorf("HEAD %s: %d, %d bytes", path, w.Code, w.Body.Len())
		}
	}
	if w := get(t, h, "/stats/container"); w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), kubeletapi.SummaryPath) {
		t.Errorf("GET /stats/container: %d %s", w.Code, w.Body)
	}
}
