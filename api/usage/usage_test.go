package usage

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/test/cmptest"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the golden files")

// fixed is a SampleReader with the samples and verdicts of a test.
type fixed struct {
	samples  []*metric.Sample
	verdicts []metric.Verdict
	since    time.Time
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

// Points yields the CPU of five readings up to noon, of each entity.
func (f *fixed) Points(_ metric.Entity, id metric.ID, from, to time.Time) iter.Seq2[time.Time, float64] {
	return func(yield func(time.Time, float64) bool) {
		for i := range 5 {
			at := noon.Add(time.Duration(i-4) * 15 * time.Second)
			if id != metric.CPUUsageRate || at.Before(from) || at.After(to) {
				continue
			}
			if !yield(at, float64(i)+0.25) {
				return
			}
		}
	}
}

func (f *fixed) Verdicts() iter.Seq2[metric.Verdict, time.Time] {
	return func(yield func(metric.Verdict, time.Time) bool) {
		for _, v := range f.verdicts {
			if !yield(v, f.since) {
				return
			}
		}
	}
}

const second = int64(time.Second)

// noon is 2026-01-02T12:00:00Z.
var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// measured returns a sample with a CPU rate in nanocores and memory in bytes.
func measured(e metric.Entity, nanocores, bytes float64) *metric.Sample {
	s := &metric.Sample{Entity: e}
	s.Values.Set(metric.CPUUsage, 1e12)
	s.Values.Set(metric.CPUUsageRate, nanocores)
	s.Values.Set(metric.MemoryWorkingSet, bytes)
	s.Times[metric.CPU], s.Times[metric.Memory] = noon.UnixNano(), noon.UnixNano()
	s.Rates[metric.CPU] = metric.Window{End: noon.UnixNano(), Length: 15 * time.Second}
	s.Reasons[metric.CPU], s.Reasons[metric.Memory] = metric.Measured, metric.Measured
	return s
}

func node(name string) metric.Entity {
	return metric.Entity{Kind: metric.Node, Node: metric.NodeName(name)}
}

func pod(node, namespace, name string) metric.Entity {
	return metric.Entity{Kind: metric.Pod, Node: metric.NodeName(node), Namespace: metric.Namespace(namespace), Pod: metric.PodName(name)}
}

func container(node, namespace, pod, name string) metric.Entity {
	return metric.Entity{Kind: metric.Container, Node: metric.NodeName(node), Namespace: metric.Namespace(namespace), Pod: metric.PodName(pod), Name: name}
}

// village is a small cluster with one of each problem, in no order.
func village() (*fixed, *cluster.Facts) {
	v := &fixed{since: noon.Add(-30 * time.Second)}
	add := func(s *metric.Sample) *metric.Sample { v.samples = append(v.samples, s); return s }

	n2 := add(measured(node("n2"), 1.5e9, 3<<30))
	n2.Instance.Path = "/"
	n1 := add(measured(node("n1"), 250e6, 1<<30))
	n1.Instance.Path, n1.Instance.Start = "/", noon.Add(-time.Hour).UnixNano()
	n1.Values.Set(metric.CPUNodeCapacity, 4e9)
	n1.Values.Set(metric.NetworkRxRate, 1234.5)
	add(measured(metric.Entity{Kind: metric.Node, Node: "n1", Part: "device:/dev/vda1"}, 1, 1))

	web := add(measured(pod("n1", "shop", "web"), 100e6, 180<<20))
	web.LastKnown = 1 << metric.CPU
	v.verdicts = append(v.verdicts, metric.Verdict{Entity: web.Entity, Group: metric.CPU, Reason: metric.Measured,
		Evidence: metric.Evidence{Cause: metric.NodeTimeout}})
	app := add(measured(container("n1", "shop", "web", "app"), 100e6, 180<<20))
	app.Instance.Path = "/kubepods/pod1/app"
	app.Values.Set(metric.MemoryRSS, 100<<20)

	// This container was read once: it has memory, and no rate.
	young := add(measured(container("n1", "shop", "api", "app"), 0, 1<<20))
	young.Values.Delete(metric.CPUUsageRate)
	young.Reasons[metric.CPU] = metric.FirstSample
	v.verdicts = append(v.verdicts, metric.Verdict{Entity: young.Entity, Group: metric.CPU, Reason: metric.FirstSample,
		Evidence: metric.Evidence{Due: noon.UnixNano() + 15*second}})

	// Two instances have one name; the older was rejected.
	old := add(measured(container("n1", "shop", "web", "app"), 9e9, 9<<30))
	old.Reject(metric.OldContainer)
	v.verdicts = append(v.verdicts, metric.Verdict{Entity: old.Entity, Group: metric.CPU, Reason: metric.OldContainer})

	// Two nodes report this pod; it is not bound to n2.
	stray := add(measured(pod("n2", "shop", "web"), 7e9, 7<<30))
	stray.Reject(metric.OtherNode)
	v.verdicts = append(v.verdicts, metric.Verdict{Entity: stray.Entity, Group: metric.CPU, Reason: metric.OtherNode})

	// Nothing was ever read of these: a node that hangs, and its pod.
	hang := metric.Evidence{Err: errors.New("get /metrics/resource: context deadline exceeded")}
	for _, g := range []metric.Group{metric.CPU, metric.Memory} {
		v.verdicts = append(v.verdicts,
			metric.Verdict{Entity: node("n3"), Group: g, Reason: metric.NodeTimeout, Evidence: hang},
			metric.Verdict{Entity: pod("n3", "bank", "vault"), Group: g, Reason: metric.NodeTimeout, Evidence: hang})
	}

	system := add(measured(metric.Entity{Kind: metric.System, Node: "n1", Name: "/system.slice/<a&b>.service"}, 5e6, 4096))
	system.Instance.Path = "/system.slice/<a&b>.service"
	add(measured(metric.Entity{Kind: metric.System, Node: "n2", Name: "runtime"}, 6e6, 8192))

	var facts *cluster.Facts
	facts = facts.With(cluster.FactsChange{Synced: true, At: noon, Pods: []*cluster.Pod{{
		PodRef: metric.PodRef{Namespace: "shop", Name: "web"}, Node: "n1", Phase: cluster.Running, Labels: map[string]string{"app": "web", "pod-template-hash": "5d9f"},
		Owner: &cluster.Owner{Kind: "ReplicaSet", Name: "web-5d9f"},
		Containers: []cluster.Container{
			{Name: "app", State: cluster.StateRunning, Restarts: 2},
			{Name: "proxy", State: cluster.StateWaiting, Restarts: 1, Previous: &cluster.PreviousRun{StateReason: "CrashLoopBackOff", EndReason: "OOMKilled", ExitCode: 137}},
		},
	}}, Nodes: []*cluster.Node{{Name: "n1", Labels: map[string]string{"zone": "a"}}}})
	return v, facts
}

func serve(t *testing.T, v *fixed, facts *cluster.Facts) *httptest.Server {
	t.Helper()
	srv := httptest.NewServer(NewHandler(Options{
		Snapshot: func() SampleReader {
			if v == nil {
				return nil
			}
			return v
		},
		Facts: func() *cluster.Facts { return facts },
	}))
	t.Cleanup(srv.Close)
	return srv
}

// TestAtRisk lists nodes at risk: of the pods on them only those whose numbers are withdrawn are, too.
func TestAtRisk(t *testing.T) {
	v := &fixed{samples: []*metric.Sample{
		measured(metric.Entity{Kind: metric.Node, Node: "n1"}, 1, 1), measured(metric.Entity{Kind: metric.Node, Node: "n2"}, 1, 1),
		measured(metric.Entity{Kind: metric.Node, Node: "n3"}, 1, 1), measured(pod("n1", "shop", "gone"), 1, 1), measured(pod("n2", "shop", "slow"), 1, 1),
	}}
	h := NewHandler(Options{Snapshot: func() SampleReader { return v }, Facts: func() *cluster.Facts { return nil }, Risks: func() map[metric.NodeName]explain.Risk {
		return map[metric.NodeName]explain.Risk{"n1": {Node: "n1", Message: "no new reading", Until: noon}, "n2": {Node: "n2", Message: "slow"}}
	}})
	for path, want := range map[string]string{"nodes": "n1: no new reading, n2: slow", "pods": "n1: no new reading"} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, weirdev.Path+path, nil))
		var list List
		if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, it := range list.Items {
			if it.AtRisk != "" {
				got = append(got, string(it.Node)+": "+it.AtRisk)
			}
		}
		if got := strings.Join(got, ", "); got != want {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
}

func TestAnswers(t *testing.T) {
	v, facts := village()
	srv := serve(t, v, facts)
	for name, path := range map[string]string{
		"nodes":               "nodes",
		"pods":                "pods",
		"containers":          "containers?metrics=memory/*&namespace=shop",
		"cgroups":             "cgroups?metrics=",
		"cgroups_of_kubepods": "cgroups?metrics=&node=n?&name=/kubepods*",
		"history":             "pods?metrics=&history=3",
		"history_of_nodes":    "nodes?metrics=&node=n1&history=2",
		"history_too_long":    "pods?history=61",
		"nothing":             "pods?namespace=nowhere",
		"one_namespace":       "namespaces/shop/containers?metrics=&limit=500",
		"namespace_twice":     "namespaces/shop/pods?namespace=bank",
		"namespace_pattern":   "namespaces/*/pods",
		"unknown_resource":    "pds",
		"unknown_parameter":   "pods?namepsace=shop",
		"unknown_metric":      "pods?metrics=memory/rsss",
		"twice":               "pods?node=a&node=b",
		"selector":            "containers?metrics=&labelSelector=app%3Dweb,tier!%3Dcache",
		"selector_of_nodes":   "nodes?metrics=&labelSelector=zone+in+(a,b)",
		"selector_of_none":    "pods?metrics=&labelSelector=app%3Dother",
		"selector_of_cgroups": "cgroups?labelSelector=app%3Dweb",
		"selector_malformed":  "pods?labelSelector=app%3D%3D%3D",
	} {
		t.Run(name, func(t *testing.T) {
			status, body := get(t, srv.URL+weirdev.Path+path)
			got := "GET " + weirdev.Path + path + "\n" + status + "\n\n" + body
			file := filepath.Join("testdata", name+".txt")
			if *rewrite {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("GET %s (-want +got; -rewrite accepts it):\n%s", path, diff)
			}
		})
	}
}

// Without labels a selector has an error and not an empty list, which would say that nothing runs.
func TestSelectorNeedsLabels(t *testing.T) {
	v, _ := village()
	f := func(facts *cluster.Facts, status string) {
		t.Helper()
		if got, body := get(t, serve(t, v, facts).URL+weirdev.Path+"pods?labelSelector=app%3Dweb"); got != status {
			t.Errorf("got %s, want %s: %s", got, status, body)
		}
	}
	f(nil, "400 Bad Request")
	f(&cluster.Facts{}, "503 Service Unavailable")
}

func get(t *testing.T, url string) (status, body string) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.Status, string(b)
}

// The order in which a reader yields must not change the answer.
func TestOrderIsTheItemsOwn(t *testing.T) {
	v, facts := village()
	var want bytes.Buffer
	if err := writeList(&want, Pods, Query{}, v, facts, marks{}); err != nil {
		t.Fatal(err)
	}
	for i := range v.samples {
		rejected := &fixed{since: v.since, verdicts: v.verdicts,
			samples: append(append([]*metric.Sample{}, v.samples[i:]...), v.samples[:i]...)}
		var got bytes.Buffer
		if err := writeList(&got, Pods, Query{}, rejected, facts, marks{}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want.String(), got.String()); diff != "" {
			t.Fatalf("samples turned by %d change the answer (-want +got):\n%s", i, diff)
		}
	}
}

func TestClientReadsWhatTheHandlerWrote(t *testing.T) {
	v, facts := village()
	srv := serve(t, v, facts)
	c := client(t, srv.URL+"/", nil)
	list, err := c.List(context.Background(), Containers, Query{Namespace: "shop", Pod: "web", Metrics: []string{"memory/rss"}})
	if err != nil {
		t.Fatal(err)
	}
	two := int32(2)
	want := &List{APIVersion: "weir.dev/v1alpha1", Kind: "ContainerUsageList", Resource: Containers, Items: []Item{{
		Node: "n1", Namespace: "shop", Pod: "web", Container: "app", Workload: cluster.Owner{Kind: "Deployment", Name: "web"}, Restarts: &two,
		CPU:     &CPUUsage{Nanocores: 100e6, Time: noon, WindowSeconds: 15},
		Memory:  &MemoryUsage{WorkingSetBytes: 180 << 20, Time: noon},
		Metrics: map[string]float64{"memory/rss": 100 << 20},
	}}}
	cmptest.Equal(t, "list", want, list)
}

func TestClientPassesOnWhatIsWrong(t *testing.T) {
	for name, test := range map[string]struct {
		answer http.Handler
		want   string
	}{
		"not ready": {NewHandler(Options{Snapshot: func() SampleReader { return nil }}), "nothing has been measured yet"},
		"kubernetes": {http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNotFound)
			io.WriteString(w, `{"kind":"Status","message":"services \"weir\" not found"}`)
		}), `services "weir" not found`},
		"a page": {http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadGateway)
			io.WriteString(w, "<html>")
		}), "502 Bad Gateway"},
		"someone else": {http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, `{"hello":1}`)
		}), `read the answer about pods: got kind "" of "", want PodUsageList of weir.dev/v1alpha1`},
	} {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(test.answer)
			defer srv.Close()
			c := client(t, srv.URL, srv.Client())
			_, err := c.List(context.Background(), Pods, Query{})
			if err == nil || err.Error() != test.want {
				t.Errorf("got error %v, want %s", err, test.want)
			}
		})
	}
}

func TestGzip(t *testing.T) {
	v, facts := village()
	h := NewHandler(Options{Snapshot: func() SampleReader { return v }, Facts: func() *cluster.Facts { return facts }})
	ask := func(accept string) *httptest.ResponseRecorder {
		req := httptest.NewRequest(http.MethodGet, weirdev.Path+"pods", nil)
		req.Header.Set("Accept-Encoding", accept)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, req)
		return w
	}
	plain := ask("").Body.String()
	for accept, want := range map[string]bool{
		"gzip": true, "deflate, GZIP;q=0.5": true, "gzip; q=1": true,
		"": false, "gzip;q=0": false, "deflate": false, "xgzip": false,
	} {
		w := ask(accept)
		if got := w.Header().Get("Content-Encoding") == "gzip"; got != want {
			t.Errorf("Accept-Encoding %q: compressed is %v, want %v", accept, got, want)
			continue
		}
		if !want {
			continue
		}
		zip, err := gzip.NewReader(w.Body)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(zip)
		if err != nil {
			t.Fatal(err)
		}
		if string(b) != plain {
			t.Errorf("Accept-Encoding %q: the answer differs from the plain one", accept)
		}
	}
}

func TestOnlyGet(t *testing.T) {
	w := httptest.NewRecorder()
	NewHandler(Options{Snapshot: func() SampleReader { return nil }}).ServeHTTP(w, httptest.NewRequest(http.MethodPost, weirdev.Path+"pods", nil))
	if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "GET, HEAD" {
		t.Errorf("POST: got %d, Allow %q; want 405, \"GET, HEAD\"", w.Code, w.Header().Get("Allow"))
	}
}

func TestMatch(t *testing.T) {
	for _, test := range []struct {
		pattern, s string
		want       bool
	}{
		{"", "anything", true}, {"*", "", true}, {"web", "web", true}, {"web", "web-1", false},
		{"web*", "web-1", true}, {"*-1", "web-1", true}, {"w?b", "web", true}, {"w?b", "wb", false},
		{"/kube*/app", "/kubepods/pod1/app", true}, {"*a*b", "aab", true}, {"*a*b", "aba", false},
	} {
		if got := fits(test.pattern, test.s); got != test.want {
			t.Errorf("match(%q, %q) = %v, want %v", test.pattern, test.s, got, test.want)
		}
	}
}

func FuzzQuery(f *testing.F) {
	f.Add("web*", "n1", "a/*", true)
	f.Fuzz(func(t *testing.T, namespace, node, metrics string, some bool) {
		q := Query{Namespace: namespace, Node: node}
		if some {
			q.Metrics = []string{metrics}
		}
		parse := func(q Query) (Request, error) {
			return ParseRequest(&http.Request{URL: &url.URL{Path: weirdev.Path + "pods", RawQuery: q.Values().Encode()}})
		}
		got, err := parse(q)
		if err != nil {
			return
		}
		again, err := parse(got.Query)
		if err != nil {
			t.Fatalf("%v parses to %+v, which does not parse again: %v", q.Values(), got, err)
		}
		if diff := cmp.Diff(got, again); diff != "" {
			t.Errorf("%v does not survive a round (-once +twice):\n%s", q.Values(), diff)
		}
	})
}

func FuzzItemIsJSON(f *testing.F) {
	f.Add("a\"\xff", 1.5)
	f.Fuzz(func(t *testing.T, name string, rss float64) {
		s := measured(pod("n", "x", name), 1, 2)
		s.Values.Set(metric.MemoryRSS, rss)
		var out bytes.Buffer
		if err := writeList(&out, Pods, Query{}, &fixed{samples: []*metric.Sample{s}}, nil, marks{}); err != nil {
			t.Fatalf("write %q with rss %v: %v", name, rss, err)
		}
		var list List
		if err := json.Unmarshal(out.Bytes(), &list); err != nil {
			t.Fatalf("answer does not parse: %v\n%s", err, out.String())
		}
		if name != "" && (len(list.Items) != 1 || list.Items[0].CPU == nil || list.Items[0].CPU.Nanocores != 1) {
			t.Errorf("%q came back as %+v", name, list.Items)
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

// TestKillsAreOfTheItem checks that an item has the kills of its own name and node.
func TestKillsAreOfTheItem(t *testing.T) {
	at := metric.Entity{Kind: metric.Pod, Node: "n1", Namespace: "shop", Pod: "web-1"}
	elsewhere := at
	elsewhere.Node = "n2"
	h := NewHandler(Options{
		Snapshot: func() SampleReader { return &fixed{samples: []*metric.Sample{{Entity: at}}} },
		Facts:    func() *cluster.Facts { return nil },
		OOMKills: func() map[metric.Entity]int { return map[metric.Entity]int{at: 3, elsewhere: 5} },
	})
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, weirdev.Path+"pods", nil))
	if got, want := w.Body.String(), `"oomKills":3`; !strings.Contains(got, want) {
		t.Errorf("got %s, want %s", got, want)
	}
}
