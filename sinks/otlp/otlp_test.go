package otlp

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/gzip"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/config"
	collectorpb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"google.golang.org/protobuf/proto"

	"github.com/weir-metrics/weir/cluster/eventlog"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/metric/series"
	"github.com/weir-metrics/weir/sinks/push"
	"github.com/weir-metrics/weir/test/background"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start is the time of the first test batch, in milliseconds since the Unix epoch.
const start = int64(1_800_000_000_000)

// batch returns a round of a node with one pod of one container.
func batch(round int) *metric.Batch {
	t := start + int64(round)*15_000
	b := &metric.Batch{Source: "kubelet:summary", Node: "n1", Ended: time.UnixMilli(t)}
	add := func(e metric.Entity, values map[metric.ID]float64) *metric.Sample {
		e.Node = "n1"
		s := b.Add(e)
		for id, v := range values {
			g := metric.Catalogue[id].Group
			s.Times[g], s.Reasons[g] = t*1e6, metric.Measured
			s.Values.Set(id, v)
		}
		return s
	}
	c := add(metric.Entity{Kind: metric.Container, Namespace: "shop", Pod: "web", Name: "app"}, map[metric.ID]float64{
		metric.CPUUsage: float64(round) * 15e9, metric.CPUUsageRate: 1.5e9, metric.MemoryWorkingSet: 4096, metric.CPURequest: 5e8,
	})
	c.Instance = metric.Instance{UID: "u1", ID: "c1", Start: (start - 60_000) * 1e6, Origin: metric.StartRuntime}
	p := add(metric.Entity{Kind: metric.Pod, Namespace: "shop", Pod: "web"}, map[metric.ID]float64{metric.NetworkRx: 10, metric.NetworkTx: 20, metric.MemoryCache: 7})
	p.Instance.UID = "u1"
	v := add(metric.Entity{Kind: metric.Pod, Namespace: "shop", Pod: "web", Part: "volume:data"}, map[metric.ID]float64{metric.FilesystemUsage: 5})
	v.Instance.UID = "u1"
	add(metric.Entity{Kind: metric.System, Name: "kubelet"}, map[metric.ID]float64{metric.CPUUsageRate: 1e8})
	return b
}

// receiver stores the points it gets as text.
type receiver struct {
	mu     sync.Mutex
	lines  []string
	zipped int // requests
	// answer is what it answers; nil if it accepts all.
	answer func(w http.ResponseWriter) (answered bool)
}

func text(of []*commonpb.KeyValue) string {
	var all []string
	for _, a := range of {
		all = append(all, a.Key+"="+a.GetValue().GetStringValue())
	}
	slices.Sort(all) // attributes have no order
	return strings.Join(all, ",")
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.answer != nil && r.answer(w) {
		return
	}
	var err error
	content := io.Reader(req.Body)
	if req.Header.Get("Content-Encoding") == "gzip" {
		content, err = gzip.NewReader(req.Body)
		r.zipped++
	}
	var body []byte
	if err == nil {
		body, err = io.ReadAll(content)
	}
	var message collectorpb.ExportMetricsServiceRequest
	if err == nil {
		err = proto.Unmarshal(body, &message)
	}
	if err != nil || req.URL.Path != "/v1/metrics" || req.Header.Get("Content-Type") != "application/x-protobuf" {
		http.Error(w, fmt.Sprint(req.URL.Path, err), http.StatusBadRequest)
		return
	}
	for _, of := range message.ResourceMetrics {
		for _, m := range of.ScopeMetrics[0].Metrics {
			kind, points := "gauge", m.GetGauge().GetDataPoints()
			if sum := m.GetSum(); sum != nil {
				kind, points = "sum", sum.DataPoints
				if sum.IsMonotonic {
					kind = "counter"
				}
			}
			for _, p := range points {
				value := fmt.Sprint(p.GetAsDouble())
				if p.Flags&uint32(metricspb.DataPointFlags_DATA_POINT_FLAGS_NO_RECORDED_VALUE_MASK) != 0 {
					value = "ended"
				}
				since := ""
				if p.StartTimeUnixNano > 0 {
					since = fmt.Sprintf(" since %d", int64(p.StartTimeUnixNano)/1e6-start)
				}
				r.lines = append(r.lines, fmt.Sprintf("%s{%s}[%s] %s %s %d %s%s", m.Name, text(of.Resource.Attributes), text(p.Attributes), kind, m.Unit, int64(p.TimeUnixNano)/1e6-start, value, since))
			}
		}
	}
}

// open returns a Sink for r, and a function that ends it after it has sent everything.
func open(t *testing.T, r http.Handler, o Options) (s *Sink, finish func()) {
	t.Helper()
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	o.HTTP = config.DefaultHTTPClientConfig
	if o.Grace == 0 {
		o.Grace = time.Minute
	}
	if o.URL == "" {
		o.URL = server.URL + "/"
	}
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return s, func() {
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // Run sends the queue before it ends
		if err := s.Run(ctx); err != nil {
			t.Error(err)
		}
	}
}

func write(t *testing.T, s *Sink, b *metric.Batch) {
	t.Helper()
	if err := s.Write(t.Context(), b); err != nil {
		t.Fatal(err)
	}
}

func TestWhatIsSent(t *testing.T) {
	var r receiver
	s, finish := open(t, &r, Options{Attributes: map[string]string{"k8s.cluster.name": "prod"}})
	write(t, s, batch(1))
	write(t, s, batch(1)) // a cached reading
	restarted := batch(2)
	restarted.Samples[0].Instance.ID = "c2"
	restarted.Samples = restarted.Samples[:1]
	write(t, s, restarted)
	finish()
	const (
		pod       = "k8s.cluster.name=prod,k8s.namespace.name=shop,k8s.node.name=n1,k8s.pod.name=web,k8s.pod.uid=u1"
		container = "k8s.cluster.name=prod,k8s.container.name=app,k8s.namespace.name=shop,k8s.node.name=n1,k8s.pod.name=web,k8s.pod.uid=u1"
		system    = "k8s.cluster.name=prod,k8s.node.name=n1,k8s.node.system_container.name=kubelet"
	)
	want := []string{
		"container.cpu.time{container.id=c1," + container + "}[] counter s 15000 15 since -60000",
		"container.cpu.usage{container.id=c1," + container + "}[] gauge {cpu} 15000 1.5",
		"container.memory.working_set{container.id=c1," + container + "}[] sum By 15000 4096",
		"k8s.container.cpu.request.desired{container.id=c1," + container + "}[] sum {cpu} 15000 0.5",
		"k8s.pod.network.io{" + pod + "}[network.io.direction=receive] counter By 15000 10",
		"k8s.pod.network.io{" + pod + "}[network.io.direction=transmit] counter By 15000 20",
		"weir.pod.memory.cache{" + pod + "}[] gauge By 15000 7",
		"k8s.pod.volume.usage{" + pod + "}[k8s.volume.name=data] sum By 15000 5",
		"k8s.node.system_container.cpu.usage{" + system + "}[] gauge {cpu} 15000 0.1",

		"container.cpu.time{container.id=c1," + container + "}[] counter s 15001 ended since -60000",
		"container.cpu.usage{container.id=c1," + container + "}[] gauge {cpu} 15001 ended",
		"container.memory.working_set{container.id=c1," + container + "}[] sum By 15001 ended",
		"k8s.container.cpu.request.desired{container.id=c1," + container + "}[] sum {cpu} 15001 ended",
		"container.cpu.time{container.id=c2," + container + "}[] counter s 30000 30 since -60000",
		"container.cpu.usage{container.id=c2," + container + "}[] gauge {cpu} 30000 1.5",
		"container.memory.working_set{container.id=c2," + container + "}[] sum By 30000 4096",
		"k8s.container.cpu.request.desired{container.id=c2," + container + "}[] sum {cpu} 30000 0.5",
		"k8s.pod.network.io{" + pod + "}[network.io.direction=receive] counter By 15001 ended",
		"k8s.pod.network.io{" + pod + "}[network.io.direction=transmit] counter By 15001 ended",
		"weir.pod.memory.cache{" + pod + "}[] gauge By 15001 ended",
		"k8s.pod.volume.usage{" + pod + "}[k8s.volume.name=data] sum By 15001 ended",
		"k8s.node.system_container.cpu.usage{" + system + "}[] gauge {cpu} 15001 ended",
	}
	slices.Sort(want)
	slices.Sort(r.lines)
	if diff := cmp.Diff(want, r.lines); diff != "" {
		t.Errorf("received (-want +got):\n%s", diff)
	}
}

// A pod of the same name has other containers, also while no source knows their IDs.
func TestAnotherPodOfTheName(t *testing.T) {
	r := newRequest(&Options{})
	sample := &batch(1).Samples[0]
	l, _ := r.Describe(labels{}, sample)
	sample.Instance.UID, sample.Instance.ID = "u2", ""
	l, renamed := r.Describe(l, sample)
	if got := text(attributesOf(t, r, sample, &l)); !renamed || got != "k8s.container.name=app,k8s.namespace.name=shop,k8s.node.name=n1,k8s.pod.name=web,k8s.pod.uid=u2" {
		t.Errorf("renamed %v: %s", renamed, got)
	}
}

// A name that is not UTF-8 does not make the request invalid.
func TestNameIsNotUTF8(t *testing.T) {
	var r receiver
	s, finish := open(t, &r, Options{Options: push.Options{Filter: series.Filter{Levels: []metric.Kind{metric.System}}}})
	b := batch(1)
	b.Samples[3].Entity.Name = "a\xffb"
	write(t, s, b)
	finish()
	if len(r.lines) != 1 || !strings.Contains(r.lines[0], "system_container.name=a\uFFFDb}") {
		t.Errorf("received %q", r.lines)
	}
}

// Neither does a name of the options, or what others report of an Event.
func TestOptionIsNotUTF8(t *testing.T) {
	var r receiver
	s, finish := open(t, &r, Options{Options: push.Options{Filter: series.Filter{Levels: []metric.Kind{metric.System}}}, Attributes: map[string]string{"a\xffb": "c"}})
	write(t, s, batch(1))
	finish()
	if len(r.lines) != 1 || !strings.Contains(r.lines[0], "{a\uFFFDb=c,") {
		t.Errorf("received %q, want one line with the attribute a\uFFFDb", r.lines)
	}
	encode((&EventSink{}).record(&eventlog.Event{Type: "a\xff", Reason: "b\xff", Message: "c\xff"}))
}

// What is sent is the same with gzip and without, and a log may have requests of both kinds.
func TestCompression(t *testing.T) {
	var zipped, plain, both receiver
	folder := t.TempDir()
	for _, r := range []struct {
		receiver *receiver
		zipped   int
		options  []Options
	}{
		{&zipped, 2, []Options{{}, {}}},
		{&plain, 0, []Options{{Uncompressed: true}, {Uncompressed: true}}},
		{&both, 1, []Options{{Options: push.Options{WAL: folder}}, {Options: push.Options{WAL: folder}, Uncompressed: true}}},
	} {
		for round, o := range r.options {
			refuses := o.WAL != "" && round == 0
			r.receiver.answer = func(w http.ResponseWriter) bool {
				if refuses {
					w.WriteHeader(http.StatusServiceUnavailable)
				}
				return refuses
			}
			if refuses {
				o.Flush, o.Grace = time.Millisecond, time.Second
			}
			s, finish := open(t, r.receiver, o)
			write(t, s, batch(round))
			if refuses { // it ends when the log has the request
				finish = background.Run(t, s.Run)
				for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
					if files, _ := filepath.Glob(filepath.Join(folder, "*.otlp")); len(files) > 0 {
						break
					}
					if time.Now().After(deadline) {
						t.Fatal("the log has no request in 20s")
					}
				}
			}
			finish()
		}
		if r.receiver.zipped != r.zipped {
			t.Errorf("%d requests had gzip, want %d", r.receiver.zipped, r.zipped)
		}
	}
	for _, got := range [][]string{plain.lines, both.lines} {
		if diff := cmp.Diff(zipped.lines, got); diff != "" || len(got) == 0 {
			t.Errorf("received (-gzip +mixed):\n%s", diff)
		}
	}
}

// A receiver that cannot accept now gets the samples later; what it rejects is counted and logged.
func TestAnswers(t *testing.T) {
	f := func(what string, answers []int, partial *collectorpb.ExportMetricsPartialSuccess, sent, rejected, retries float64, log string) {
		t.Helper()
		var r receiver
		calls := 0
		r.answer = func(w http.ResponseWriter) bool {
			if calls++; calls <= len(answers) {
				w.WriteHeader(answers[calls-1])
				fmt.Fprint(w, "no\x1b\nforged")
				return true
			}
			body, err := proto.Marshal(&collectorpb.ExportMetricsServiceResponse{PartialSuccess: partial})
			if err == nil {
				_, _ = w.Write(body)
			}
			return false
		}
		server := httptest.NewServer(&r)
		t.Cleanup(server.Close)
		core, lines := observer.New(zap.InfoLevel)
		registry := prometheus.NewRegistry()
		s, finish := open(t, http.NotFoundHandler(), Options{Options: push.Options{URL: server.URL, Logger: zap.New(core), Registerer: registry}})
		write(t, s, batch(1))
		finish()
		want := fmt.Sprintf(`
# HELP weir_otlp_retries_total Requests that were sent again because the receiver did not answer, or rejected them for the moment.
# TYPE weir_otlp_retries_total counter
weir_otlp_retries_total{receiver=%[1]q} %[2]v
# HELP weir_otlp_samples_total Number of samples by outcome: sent, rejected by the receiver, or dropped because the queue was full or weir ended.
# TYPE weir_otlp_samples_total counter
weir_otlp_samples_total{receiver=%[1]q,result="dropped"} 0
weir_otlp_samples_total{receiver=%[1]q,result="rejected"} %[3]v
weir_otlp_samples_total{receiver=%[1]q,result="sent"} %[4]v
`, server.URL, retries, rejected, sent)
		if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "weir_otlp_retries_total", "weir_otlp_samples_total"); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		var all []string
		for _, l := range lines.All() {
			all = append(all, fmt.Sprint(l.Message, l.ContextMap()))
		}
		if text := strings.Join(all, "|"); !strings.Contains(text, log) || strings.ContainsAny(text, "\x1b\n") {
			t.Errorf("%s: the log has %q, want %q", what, text, log)
		}
	}
	f("all is accepted", nil, nil, 9, 0, 0, "")
	f("it is overloaded", []int{503, 429}, nil, 9, 0, 2, "the receiver accepts samples again")
	f("it redirects", []int{307}, nil, 9, 0, 1, "put that address in --sink")
	f("it rejects all", []int{400}, nil, 0, 9, 0, "the receiver rejects samples; they are lost")
	f("it fails", []int{500}, nil, 0, 9, 0, "500 Internal Server Error")
	f("it is something else", []int{404}, nil, 0, 9, 0, "A collector has it at port 4318")
	f("it rejects some", nil, &collectorpb.ExportMetricsPartialSuccess{RejectedDataPoints: 2, ErrorMessage: "too old"}, 7, 2, 0, "too old")
	f("it rejects some, at length", nil, &collectorpb.ExportMetricsPartialSuccess{RejectedDataPoints: 2, ErrorMessage: strings.Repeat("too old ", 2000)}, 7, 2, 0, "too old")
}

// A request that the end of weir interrupts is no failure of the receiver.
func TestEndInterruptsRequest(t *testing.T) {
	core, lines := observer.New(zap.InfoLevel)
	s, err := New(Options{Options: push.Options{URL: "http://receiver", HTTP: config.DefaultHTTPClientConfig, Logger: zap.New(core), Grace: time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	s.Transport = transport(func(r *http.Request) (*http.Response, error) {
		<-r.Context().Done()
		return nil, r.Context().Err()
	})
	write(t, s, batch(1))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if all := lines.All(); len(all) != 1 || all[0].Message != "samples in the queue are lost" {
		t.Errorf("the log has %v", all)
	}
}

type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// The log never has the password or the query of the receiver's URL.
func TestURLIsLoggedWithoutSecrets(t *testing.T) {
	var r receiver
	calls := 0
	handler := http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if calls++; calls == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		if _, password, _ := req.BasicAuth(); password != "geheim" || req.FormValue("key") != "geheim" || req.URL.Path != "/base/v1/metrics" {
			t.Errorf("%s was sent with password %q and key %q", req.URL.Path, password, req.FormValue("key"))
		}
		req.URL.Path = metricsPath
		r.ServeHTTP(w, req)
	})
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	core, lines := observer.New(zap.InfoLevel)
	s, finish := open(t, handler, Options{Options: push.Options{URL: strings.Replace(server.URL, "http://", "http://weir:geheim@", 1) + "/base?key=geheim", Logger: zap.New(core)}})
	write(t, s, batch(1))
	finish()
	if len(r.lines) == 0 || lines.Len() != 2 {
		t.Errorf("%d points arrived; the log has %d lines, want 2", len(r.lines), lines.Len())
	}
	for _, l := range lines.All() {
		if strings.Contains(fmt.Sprint(l.Message, l.ContextMap()), "geheim") {
			t.Errorf("the log has a secret: %s %v", l.Message, l.ContextMap())
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
	o, err := parse(t, "https://collector:4318?queue=64Mi&attribute=k8s.cluster.name=prod&token-file=t&level=pod")
	if err != nil {
		t.Fatal(err)
	}
	if o.URL != "https://collector:4318" || o.Queue != 64<<20 || o.Attributes["k8s.cluster.name"] != "prod" || o.HTTP.Authorization.CredentialsFile != "t" ||
		!slices.Equal(o.Levels, []metric.Kind{metric.Pod}) || o.Profile != series.Default {
		t.Errorf("options = %+v", o)
	}
	for spec, want := range map[string]string{
		"":                            "write otlp:http://HOST:4318",
		"collector:4317":              "write otlp:http://HOST:4318",
		"http://host:4318/v1/metrics": "weir appends /v1/metrics itself: write otlp:http://host:4318",
		"http://host?x=1":             `no option is called "x": there are attribute, ca,`,
		"http://host?attribute=x":     "option attribute: it is not of the form NAME=VALUE",
	} {
		if _, err := parse(t, spec); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", spec, err, want)
		}
	}
}
