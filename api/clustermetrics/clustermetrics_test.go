package clustermetrics

import (
	"bytes"
	"compress/gzip"
	"flag"
	"io"
	"iter"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/metric/series"
	"github.com/weir-metrics/weir/test/cmptest"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the golden files")

// samples is a MetricsReader with the samples of a test.
type samples []metric.Sample

func (all samples) Each(kind metric.Kind, do func(*metric.Sample) bool) {
	for i := range all {
		if all[i].Entity.Kind == kind && !do(&all[i]) {
			return
		}
	}
}

func (all samples) Verdicts() iter.Seq2[metric.Verdict, time.Time] {
	return func(func(metric.Verdict, time.Time) bool) {}
}

func (all *samples) add(e metric.Entity, values map[metric.ID]float64) *metric.Sample {
	s := metric.Sample{Entity: e}
	for id, v := range values {
		s.Values.Set(id, v)
		g := id.Describe().Group
		s.Times[g], s.Reasons[g] = 1767323045123456789, metric.Measured
		s.Rates[g] = metric.Window{End: 1767323044000000000, Length: 15e9}
	}
	*all = append(*all, s)
	return &(*all)[len(*all)-1]
}

// small is a cluster with one entity of each kind, and with names that need escapes.
func small() *samples {
	all := new(samples)
	node := metric.Entity{Kind: metric.Node, Node: "n1"}
	pod := metric.Entity{Kind: metric.Pod, Node: "n1", Namespace: "shop", Pod: "web-0"}
	app, side := pod, pod
	app.Kind, app.Name = metric.Container, "app"
	side.Kind, side.Name = metric.Container, "side"
	system := metric.Entity{Kind: metric.System, Node: "n1", Name: `/a "quoted"\path` + "\nof two lines \xff"}
	all.add(metric.Entity{Kind: metric.Cluster}, map[metric.ID]float64{metric.CPUUsageRate: 1.5e9})
	all.add(metric.Entity{Kind: metric.Namespaced, Namespace: "shop"}, map[metric.ID]float64{metric.CPUUsageRate: 1e9 / 3.0})
	all.add(node, map[metric.ID]float64{metric.CPUUsage: 123456789012345678, metric.CPUUsageRate: 250000001, metric.NetworkRx: 1000, metric.CPUNodeReservation: 0.25})
	eth0, eth1 := node, node
	eth0.Part, eth1.Part = "interface:eth0", "interface:eth1"
	all.add(eth0, map[metric.ID]float64{metric.NetworkRx: 600})
	all.add(eth1, map[metric.ID]float64{metric.NetworkRx: 400})
	odd := node
	odd.Part = "what-ever"
	all.add(odd, map[metric.ID]float64{metric.FilesystemUsage: 1})
	all.add(system, map[metric.ID]float64{metric.MemoryWorkingSet: 4096, metric.Uptime: 90e9})
	all.add(pod, map[metric.ID]float64{metric.CPUUsage: 1500000000, metric.MemoryWorkingSet: 1 << 40})
	other := metric.Entity{Kind: metric.Pod, Node: "n1", Namespace: "bank", Pod: "db-0"}
	all.add(other, map[metric.ID]float64{metric.MemoryWorkingSet: 0})
	data := pod
	data.Part = "volume:data"
	all.add(data, map[metric.ID]float64{metric.FilesystemUsage: 12345})
	all.add(app, map[metric.ID]float64{metric.CPUUsageRate: 1, metric.CPUPressureSomeRate: 0.001})
	all.add(side, map[metric.ID]float64{metric.CPUPressureSomeRate: 1e-7, metric.Uptime: 0.5})
	return all
}

// handler returns a Handler that shows v, with every metric if o names none.
func handler(v MetricsReader, o Options) *Handler {
	if o.Profile == "" {
		o.Profile = series.All
	}
	return New(func() MetricsReader { return v }, o)
}

func get(t *testing.T, h http.Handler, query string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, "/metrics/cluster"+query, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestExposition(t *testing.T) {
	for name, c := range map[string]struct {
		o      Options
		query  string
		accept string
	}{
		"all":                   {},
		"timestamps":            {o: Options{Timestamps: true}, query: "?level=node,pod"},
		"truncated":             {o: Options{MaxSeries: 5}},
		"openmetrics":           {o: Options{Filter: series.Filter{Levels: []metric.Kind{metric.Pod, metric.Node}}, Timestamps: true}, accept: "application/openmetrics-text;version=1.0.0"},
		"openmetrics_truncated": {o: Options{MaxSeries: 2}, accept: "application/openmetrics-text;version=1.0.0"},
		"narrowed":              {o: Options{Filter: series.Filter{Namespaces: []string{"sh*"}}}, query: "?level=pod&level=container&metric=cpu_*,memory/*&label=container=app"},
	} {
		t.Run(name, func(t *testing.T) {
			w := get(t, handler(small(), c.o), c.query, "Accept", c.accept)
			if w.Code != http.StatusOK {
				t.Fatalf("status: got %d: %s", w.Code, w.Body)
			}
			file := filepath.Join("testdata", name+".txt")
			if *rewrite {
				if err := os.WriteFile(file, w.Body.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), w.Body.String()); diff != "" {
				t.Errorf("%s (-want +got; go test -rewrite if it should change):\n%s", file, diff)
			}
		})
	}
}

// whole has every metric of the catalogue for every kind and part that has it, each with its own
// value.
func whole() *samples {
	all := new(samples)
	for k := range metric.Kind(metric.NumKinds) {
		for _, part := range []string{"", "device:/dev/sda", "interface:eth0", "volume:data", "accelerator:0"} {
			for _, n := range []string{"a", "b"} {
				e := metric.Entity{Kind: k, Part: part}
				switch k {
				case metric.Cluster:
					if part != "" || n == "b" {
						continue
					}
				case metric.Namespaced:
					e.Namespace = metric.Namespace(n)
				case metric.Node:
					e.Node = metric.NodeName(n)
				default:
					e.Node, e.Name = "n", n
					if k != metric.System {
						e.Namespace, e.Pod = "ns", metric.PodName(n)
					}
				}
				values := map[metric.ID]float64{}
				for i := range metric.Catalogue {
					if d := &metric.Catalogue[i]; d.Kinds.Has(k) {
						values[d.ID] = float64(len(*all)+1)*1e9 + float64(i) + 0.5
					}
				}
				all.add(e, values)
			}
		}
	}
	return all
}

// The parser of Prometheus reads the same values, and its linter (promtool check metrics) reports
// nothing.
func TestParsesAndLints(t *testing.T) {
	view := whole()
	w := get(t, handler(view, Options{}), "")
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(w.Body.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for name, f := range families {
		for _, m := range f.Metric {
			key := name
			for _, l := range m.Label {
				key += "," + l.GetName() + "=" + l.GetValue()
			}
			if _, twice := got[key]; twice {
				t.Errorf("%s comes twice", key)
			}
			switch f.GetType() {
			case dto.MetricType_COUNTER:
				got[key] = m.Counter.GetValue()
			case dto.MetricType_GAUGE:
				got[key] = m.Gauge.GetValue()
			default:
				t.Errorf("%s is a %v", name, f.GetType())
			}
		}
	}
	total := 0
	for i := range *view {
		s := &(*view)[i]
		labels, part := series.LabelsOf(&s.Entity)
		for id, v := range s.Values.All() {
			total++
			d := id.Describe()
			key := series.Name(s.Entity.Kind, part, d)
			if f := families[key]; f == nil {
				t.Errorf("no family %s", key)
			} else if counter := f.GetType() == dto.MetricType_COUNTER; counter != (d.Type == metric.Cumulative) {
				t.Errorf("%s is %v, which is %v", key, f.GetType(), d.Type)
			}
			for _, p := range labels.All() {
				key += "," + p.Name + "=" + p.Value
			}
			want := v * d.Unit.Prometheus()
			if g, ok := got[key]; !ok || math.Abs(g-want) > 1e-15*want {
				t.Errorf("%s: got %v %v, want %v", key, g, ok, want)
			}
		}
	}
	for key := range got {
		if strings.HasPrefix(key, verdictsFamily+",") { // has its own tests
			delete(got, key)
		}
	}
	if got, want := len(got), total+2; got != want {
		t.Errorf("got %d series, want %d", got, want)
	}
	problems, err := promlint.New(bytes.NewReader(w.Body.Bytes())).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("lint: %s: %s", p.Metric, p.Text)
	}
}

func TestAnyNameParses(t *testing.T) {
	for _, name := range []string{``, `"`, `\`, "\n", `\n`, `a="b",c`, "é", "\xff\xfe", "}", "# HELP"} {
		all := new(samples)
		all.add(metric.Entity{Kind: metric.System, Node: "n", Name: name}, map[metric.ID]float64{metric.CPUUsage: 1})
		w := get(t, handler(all, Options{}), "")
		parser := expfmt.NewTextParser(model.LegacyValidation)
		families, err := parser.TextToMetricFamilies(w.Body)
		if err != nil {
			t.Errorf("%q: %v", name, err)
			continue
		}
		got := families["weir_system_cpu_usage_seconds_total"].Metric[0].Label[1].GetValue()
		if want := strings.ToValidUTF8(name, "\uFFFD"); got != want && name != "\xff\xfe" {
			t.Errorf("%q: got %q", name, got)
		}
	}
}

// The default profile has what is used most, and never the node's disk for each container. A request
// may name a wider profile, or metrics, unless the sink's options name them.
func TestProfiles(t *testing.T) {
	view := whole()
	usual := New(func() MetricsReader { return view }, Options{})
	for query, want := range map[string]struct{ has, hasNot []string }{
		"": {
			has: []string{"weir_container_cpu_usage_seconds_total", "weir_container_cpu_usage_cores", "weir_container_memory_working_set_bytes",
				"weir_pod_network_receive_bytes_total", "weir_pod_volume_filesystem_available_bytes", "weir_node_filesystem_available_bytes",
				"weir_node_memory_pressure_some_ratio", "weir_cluster_cpu_usage_cores", "weir_verdicts"},
			hasNot: []string{"weir_container_filesystem_available_bytes", "weir_container_filesystem_limit_bytes", "weir_container_device_filesystem_limit_bytes",
				"weir_pod_interface_network_receive_bytes_total", "weir_container_memory_pressure_some_ratio"},
		},
		"?profile=all":                         {has: []string{"weir_container_device_filesystem_limit_bytes", "weir_container_memory_pressure_some_ratio", "weir_cluster_cpu_usage_cores"}},
		"?metric=memory/pressure*":             {has: []string{"weir_container_memory_pressure_some_ratio"}, hasNot: []string{"weir_container_cpu_usage_cores"}},
		"?metric=memory/p*,cpu/u*&profile=all": {has: []string{"weir_container_memory_pressure_some_ratio", "weir_container_cpu_usage_cores"}},
	} {
		body := get(t, usual, query).Body.String()
		for _, name := range want.has {
			if !strings.Contains(body, "\n"+name+"{") && !strings.Contains(body, "\n"+name+" ") {
				t.Errorf("%q lacks %s", query, name)
			}
		}
		for _, name := range want.hasNot {
			if strings.Contains(body, "\n"+name+"{") {
				t.Errorf("%q has %s", query, name)
			}
		}
	}
	for spec, more := range map[string]bool{"": true, "?profile=all": true, "?profile=default": false, "?metric=cpu/usage": false} {
		o, err := parse(t, spec)
		if err != nil {
			t.Fatal(err)
		}
		body := get(t, New(func() MetricsReader { return view }, o), "?profile=all").Body.String()
		if got := strings.Contains(body, "weir_container_memory_pressure_some_ratio{"); got != more {
			t.Errorf("option %q, then ?profile=all: has pressure of containers: %v, want %v", spec, got, more)
		}
	}
}

// A pod with two containers has fewer than 40 series by default, even if its sources have every
// metric; volumes are not counted.
func TestDefaultIsSmall(t *testing.T) {
	view := new(samples)
	for _, e := range []metric.Entity{{Kind: metric.Pod}, {Kind: metric.Container, Name: "app"}, {Kind: metric.Container, Name: "side"}} {
		for _, part := range []string{"", "device:/dev/sda", "device:/dev/sdb", "interface:eth0", "accelerator:0"} {
			e.Node, e.Namespace, e.Pod, e.Part = "n1", "shop", "web-0", part
			values := map[metric.ID]float64{}
			for id := range metric.NumMetrics {
				if id.Describe().Kinds.Has(e.Kind) {
					values[id] = 1
				}
			}
			view.add(e, values)
		}
	}
	h := New(func() MetricsReader { return view }, Options{Facts: known})
	if got := strings.Count(get(t, h, "").Body.String(), `pod="web-0"`); got < 20 || got >= 40 {
		t.Errorf("got %d series, want 20 to 39", got)
	}
}

// The test of kubernetes-mixin in test/local has a Prometheus read OpenMetrics.
func TestAccept(t *testing.T) {
	const inText, inOpenMetrics = "text/plain; version=0.0.4; charset=utf-8", "application/openmetrics-text; version=1.0.0; charset=utf-8"
	for accept, want := range map[string]string{
		"":    inText,
		"*/*": inText,
		"application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1": inOpenMetrics,
		"application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited,text/plain;version=0.0.4;q=0.3":             inText,
		"application/openmetrics-text;version=9": inText,
	} {
		w := get(t, handler(small(), Options{}), "", "Accept", accept)
		if got := w.Header().Get("Content-Type"); got != want {
			t.Errorf("%q: got %s, want %s", accept, got, want)
		}
		if got := strings.HasSuffix(w.Body.String(), "# EOF\n"); got != (want == inOpenMetrics) {
			t.Errorf("%q: ends with EOF: %v", accept, got)
		}
	}
}

func TestGzip(t *testing.T) {
	h := handler(small(), Options{})
	plain := get(t, h, "").Body.String()
	for range 2 { // the second request uses the compressor of the first
		w := get(t, h, "", "Accept-Encoding", "deflate, gzip;q=0.5")
		z, err := gzip.NewReader(w.Body)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(z)
		if err != nil || string(text) != plain {
			t.Errorf("got %q, %v; want what goes uncompressed", text, err)
		}
	}
	if got := get(t, h, "", "Accept-Encoding", "gzip;q=0").Header().Get("Content-Encoding"); got != "" {
		t.Errorf("encoding although refused: got %q", got)
	}
}

func TestMistakes(t *testing.T) {
	h := handler(small(), Options{})
	for query, want := range map[string]string{
		"?colour=red":     `no option is called "colour": there are label, level, limit, metric, names, namespace, profile, timestamps` + "\n",
		"?level=planet":   `option level: no level is called "planet": there are cluster, namespace, node, system, pod, container` + "\n",
		"?limit=0":        "option limit: 0 is not above 0\n",
		"?label=node":     "option label: \"node\" is not of the form label=pattern, such as node=worker-*\n",
		"?names=mine":     "option names: unknown names \"mine\": use weir or kubernetes\n",
		"?profile=big":    "option profile: no profile is called \"big\": there are default, all\n",
		"?timestamps=now": "option timestamps: strconv.ParseBool: parsing \"now\": invalid syntax\n",
	} {
		if w := get(t, h, query); w.Code != http.StatusBadRequest || w.Body.String() != want {
			t.Errorf("%s: got %d %q, want 400 %q", query, w.Code, w.Body, want)
		}
	}
	if w := get(t, New(func() MetricsReader { return nil }, Options{}), ""); w.Code != http.StatusServiceUnavailable {
		t.Errorf("before the first round: got %d, want 503", w.Code)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", nil))
	if w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST: got %d, want 405", w.Code)
	}
}

// A request cannot show more than the sink's options allow.
func TestRequestOnlyNarrows(t *testing.T) {
	h := handler(small(), Options{Filter: series.Filter{Levels: []metric.Kind{metric.Node}}, MaxSeries: 3})
	body := get(t, h, "?level=pod&limit=100").Body.String()
	if strings.Contains(body, "weir_pod") || strings.Contains(body, "weir_node") || !strings.Contains(body, "weir_exposition_truncated 0\n") {
		t.Errorf("got %s", body)
	}
	if body := get(t, h, "?limit=100").Body.String(); !strings.Contains(body, "weir_exposition_series 3\n") || !strings.Contains(body, "weir_exposition_truncated 1\n") {
		t.Errorf("limit: got %s, want 3 series, truncated", body)
	}
}

func TestBusy(t *testing.T) {
	var h *Handler
	inner := 0
	h = New(func() MetricsReader { inner = get(t, h, "").Code; return small() }, Options{MaxRequests: 1})
	if w := get(t, h, ""); w.Code != http.StatusOK || inner != http.StatusServiceUnavailable {
		t.Errorf("got %d, and a second at once %d; want 200 and 503", w.Code, inner)
	}
}

func TestAppendValue(t *testing.T) {
	for _, v := range []float64{0, 1, 5, 1e8, 123456789, 999999999, 1e9, 1000000001, 1<<53 - 1, 1e17, 0.5, 250e6 + 1.0/3, -3e9} {
		got := string(appendValue(nil, v, metric.Nanocores))
		want := v / 1e9
		if f, err := strconv.ParseFloat(got, 64); err != nil || f != want {
			t.Errorf("%v nanocores: got %s, want %v", v, got, want)
		}
	}
}

// parse parses the text after the name and colon of a sink.
func parse(t *testing.T, spec string) (Options, error) {
	t.Helper()
	config, query, _ := strings.Cut(spec, "?")
	values, err := url.ParseQuery(query)
	if err != nil {
		t.Fatal(err)
	}
	return ParseOptions(config, values)
}

func TestParseOptions(t *testing.T) {
	got, err := parse(t, "?timestamps=true&levels=pod,node&metric=cpu_*&namespace=a&label=node%3Dworker-*&limit=7&requests=2")
	if err != nil {
		t.Fatal(err)
	}
	want := Options{
		Timestamps: true, MaxSeries: 7, MaxRequests: 2,
		Filter: series.Filter{
			Levels: []metric.Kind{metric.Pod, metric.Node}, Metrics: []string{"cpu_*"}, Namespaces: []string{"a"},
			Labels: map[string]string{"node": "worker-*"},
		},
	}
	cmptest.Equal(t, "options", want, got)
	for _, spec := range []string{"?x=1", "there?limit=1", "?requests=-1", "?limit=a"} {
		if _, err := parse(t, spec); err == nil {
			t.Errorf("ParseOptions(%q): no error", spec)
		}
	}
}
