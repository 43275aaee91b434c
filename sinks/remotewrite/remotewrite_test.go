package remotewrite

import (
	"cmp"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/exp/api/remote"
	writev2 "github.com/prometheus/client_golang/exp/api/remote/genproto/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/config"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"google.golang.org/protobuf/proto"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/metric/series"
	"github.com/weir-metrics/weir/sinks/push"
	"github.com/weir-metrics/weir/test/background"
	"github.com/weir-metrics/weir/test/cmptest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start is the time of the first test batch, in milliseconds since the Unix epoch.
const start = int64(1_800_000_000_000)

// batch returns a round of a node with one container. Its CPU counter grows by one second each
// second.
func batch(node string, round int) *metric.Batch {
	t := start + int64(round)*15_000
	b := &metric.Batch{Source: "kubelet:resource", Node: metric.NodeName(node), Ended: time.UnixMilli(t + 20)}
	s := b.Add(metric.Entity{Kind: metric.Container, Node: b.Node, Namespace: "shop", Pod: "web", Name: "app"})
	s.Times[metric.CPU], s.Times[metric.Memory] = t*1e6, t*1e6
	s.Reasons[metric.CPU], s.Reasons[metric.Memory] = metric.Measured, metric.Measured
	s.Values.Set(metric.CPUUsage, float64(round)*15e9)
	s.Values.Set(metric.MemoryWorkingSet, float64(1000+round))
	if round > 0 {
		s.Rates[metric.CPU] = metric.Window{End: t * 1e6, Length: 15 * time.Second}
		s.Values.Set(metric.CPUUsageRate, 1e9)
	}
	return b
}

// receiver stores the samples it gets as text: NAME{LABELS} TIME VALUE.
type receiver struct {
	mu    sync.Mutex
	lines []string
	types map[string]string
}

func (r *receiver) Store(req *http.Request, kind remote.WriteMessageType) (*remote.WriteResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	body := make([]byte, req.ContentLength)
	n := 0
	for {
		m, err := req.Body.Read(body[n:])
		if n += m; err != nil {
			break
		}
		if n == len(body) {
			body = append(body, make([]byte, len(body)+1)...)
		}
	}
	response := remote.NewWriteResponse()
	if kind != remote.WriteV2MessageType {
		response.SetStatusCode(http.StatusUnsupportedMediaType)
		return response, fmt.Errorf("got %s", kind)
	}
	var message writev2.Request
	if err := proto.Unmarshal(body[:n], &message); err != nil {
		response.SetStatusCode(http.StatusBadRequest)
		return response, err
	}
	for _, ts := range message.Timeseries {
		l := writev2.DesymbolizeLabels(ts.LabelsRefs, message.Symbols, nil)
		var name string
		var rest []string
		for i := 0; i < len(l); i += 2 {
			if l[i] == "__name__" {
				name = l[i+1]
			} else {
				rest = append(rest, l[i]+"="+l[i+1])
			}
			if i > 0 && l[i-2] >= l[i] {
				r.lines = append(r.lines, "not sorted: "+strings.Join(l, ","))
			}
		}
		if r.types == nil {
			r.types = map[string]string{}
		}
		r.types[name] = ts.Metadata.Type.String() + " " + message.Symbols[ts.Metadata.HelpRef]
		for _, s := range ts.Samples {
			value := fmt.Sprint(s.Value)
			if math.Float64bits(s.Value) == math.Float64bits(stale) {
				value = "stale"
			}
			r.lines = append(r.lines, fmt.Sprintf("%s{%s} %d %s", name, strings.Join(rest, ","), s.Timestamp-start, value))
		}
		response.Add(remote.WriteResponseStats{Samples: len(ts.Samples)})
	}
	return response, nil
}

func (r *receiver) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.lines)
}

func serve(t *testing.T, r *receiver) string {
	t.Helper()
	server := httptest.NewServer(remote.NewWriteHandler(r, remote.MessageTypes{remote.WriteV2MessageType}))
	t.Cleanup(server.Close)
	return server.URL + "/write"
}

// open returns a Sink, and a function that ends it after it has sent everything.
func open(t *testing.T, o Options) (s *Sink, finish func()) {
	t.Helper()
	o.HTTP, o.Grace = config.DefaultHTTPClientConfig, cmp.Or(o.Grace, time.Minute)
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return s, background.Run(t, s.Run)
}

func write(t *testing.T, s *Sink, b *metric.Batch) {
	t.Helper()
	if err := s.Write(t.Context(), b); err != nil {
		t.Fatal(err)
	}
}

// Each value is sent once with the node's time. Last known values and cached readings are not
// sent. A stale marker ends a series.
func TestWhatIsSent(t *testing.T) {
	var r receiver
	s, finish := open(t, Options{Options: push.Options{URL: serve(t, &r)}, ExternalLabels: map[string]string{"cluster": "prod", "pod": "mine", "A": "a"}})
	write(t, s, batch("n1", 0))
	write(t, s, batch("n1", 1))
	write(t, s, batch("n1", 1)) // a cached reading
	lastKnown := batch("n1", 1)
	lastKnown.Samples[0].LastKnown = 1 << metric.CPU
	lastKnown.Samples[0].Times[metric.Memory] += 15_000e6
	write(t, s, lastKnown)
	unmeasured := batch("n1", 3)
	unmeasured.Samples[0].Reasons[metric.CPU] = metric.CounterReset
	write(t, s, unmeasured)
	write(t, s, batch("n1", 4))
	rejected := batch("n1", 5)
	rejected.Samples[0].Reject(metric.OldPod)
	write(t, s, rejected)
	s.Forget("kubelet:resource", "n1")
	finish()
	const labels = "{A=a,cluster=prod,container=app,namespace=shop,node=n1,pod=web}"
	cpu, rate, memory := "weir_container_cpu_usage_seconds_total"+labels, "weir_container_cpu_usage_cores"+labels, "weir_container_memory_working_set_bytes"+labels
	want := []string{
		cpu + " 0 0", memory + " 0 1000",
		cpu + " 15000 15", rate + " 15000 1", memory + " 15000 1001",
		memory + " 30000 1001",
		memory + " 45000 1003", cpu + " 15001 stale", rate + " 15001 stale",
		cpu + " 60000 60", rate + " 60000 1", memory + " 60000 1004",
		cpu + " 60001 stale", rate + " 60001 stale", memory + " 60001 stale",
	}
	got := r.all()
	slices.Sort(got)
	slices.Sort(want)
	cmptest.Equal(t, "received", want, got)
	if got, want := r.types["weir_container_cpu_usage_seconds_total"], "METRIC_TYPE_COUNTER "+metric.CPUUsage.Describe().Help; got != want {
		t.Errorf("metadata = %q, want %q", got, want)
	}
	if n := s.Remembered(); n != 0 {
		t.Errorf("%d entities are remembered of a source that is gone", n)
	}
}

// Two sources report one container: each value is sent once, and the series ends when both
// sources are gone.
func TestTwoSources(t *testing.T) {
	var r receiver
	s, finish := open(t, Options{Options: push.Options{URL: serve(t, &r), Filter: series.Filter{Metrics: []string{"memory/working_set"}}}})
	other := func(round int) *metric.Batch {
		b := batch("n1", round)
		b.Source = "kubelet:summary"
		return b
	}
	write(t, s, batch("n1", 1))
	write(t, s, other(1))
	write(t, s, other(2))
	write(t, s, batch("n1", 1))
	s.Forget("kubelet:resource", "n1")
	write(t, s, other(3))
	s.Forget("kubelet:summary", "n1")
	finish()
	const memory = "weir_container_memory_working_set_bytes{container=app,namespace=shop,node=n1,pod=web}"
	want := []string{memory + " 15000 1001", memory + " 30000 1002", memory + " 45000 1003", memory + " 45001 stale"}
	cmptest.Equal(t, "received", want, r.all())
}

// A replica that led before does not end series that the leader continues: neither when it forgets a
// node nor when it leads again.
func TestLeaderChanges(t *testing.T) {
	var r receiver
	leads := true
	s, finish := open(t, Options{Options: push.Options{
		URL: serve(t, &r), Filter: series.Filter{Metrics: []string{"memory/working_set"}}, IsLeader: func() bool { return leads },
	}})
	write(t, s, batch("n1", 1))
	write(t, s, batch("n2", 1))
	leads = false
	write(t, s, batch("n1", 2))
	s.Forget("kubelet:resource", "n2")
	leads = true
	empty := batch("n1", 3)
	empty.Samples = nil
	write(t, s, empty)
	write(t, s, batch("n1", 4))
	finish()
	const memory = "weir_container_memory_working_set_bytes{container=app,namespace=shop,node=%s,pod=web} "
	want := []string{fmt.Sprintf(memory, "n1") + "15000 1001", fmt.Sprintf(memory, "n2") + "15000 1001", fmt.Sprintf(memory, "n1") + "60000 1004"}
	cmptest.Equal(t, "received", want, r.all())
}

// A receiver that does not answer loses nothing while the queue has room, and then the oldest
// samples.
func TestAway(t *testing.T) {
	var r receiver
	handler := remote.NewWriteHandler(&r, remote.MessageTypes{remote.WriteV2MessageType})
	var mu sync.Mutex
	away := true
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		mu.Lock()
		is := away
		mu.Unlock()
		if is {
			http.Error(w, "not now", http.StatusServiceUnavailable)
			return
		}
		handler.ServeHTTP(w, req)
	}))
	t.Cleanup(server.Close)
	registry := prometheus.NewRegistry()
	s, finish := open(t, Options{Options: push.Options{URL: server.URL + "/write", MaxSamples: 3, MaxBackoff: 200 * time.Millisecond, Registerer: registry}})
	const rounds = 200
	for i := range rounds {
		write(t, s, batch("n1", i+1))
	}
	mu.Lock()
	away = false
	mu.Unlock()
	finish()
	if got := len(r.all()); got != 3*rounds {
		t.Errorf("%d samples arrived, want %d", got, 3*rounds)
	}
	if err := testutil.GatherAndCompare(registry, strings.NewReader(strings.ReplaceAll(`
# HELP weir_remotewrite_samples_total Number of samples by outcome: sent, rejected by the receiver, or dropped because the queue was full or weir ended.
# TYPE weir_remotewrite_samples_total counter
weir_remotewrite_samples_total{receiver="RECEIVER",result="dropped"} 0
weir_remotewrite_samples_total{receiver="RECEIVER",result="rejected"} 0
weir_remotewrite_samples_total{receiver="RECEIVER",result="sent"} 600
`, "RECEIVER", server.URL+"/write")), "weir_remotewrite_samples_total"); err != nil {
		t.Error(err)
	}
}

// Rejected samples are lost and logged, and do not delay the next ones.
func TestRefused(t *testing.T) {
	calls := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		calls++
		http.Error(w, "no such page", http.StatusNotFound)
	}))
	t.Cleanup(server.Close)
	registry := prometheus.NewRegistry()
	core, lines := observer.New(zap.InfoLevel)
	s, finish := open(t, Options{Options: push.Options{URL: server.URL + "/x", MaxSamples: 3, Registerer: registry, Logger: zap.New(core)}})
	write(t, s, batch("n1", 1))
	write(t, s, batch("n1", 2))
	finish()
	if err := testutil.GatherAndCompare(registry, strings.NewReader(strings.ReplaceAll(`
# HELP weir_remotewrite_samples_total Number of samples by outcome: sent, rejected by the receiver, or dropped because the queue was full or weir ended.
# TYPE weir_remotewrite_samples_total counter
weir_remotewrite_samples_total{receiver="RECEIVER",result="dropped"} 0
weir_remotewrite_samples_total{receiver="RECEIVER",result="rejected"} 6
weir_remotewrite_samples_total{receiver="RECEIVER",result="sent"} 0
`, "RECEIVER", server.URL+"/x")), "weir_remotewrite_samples_total"); err != nil || calls != 2 {
		t.Errorf("%d requests, want 2; %v", calls, err)
	}
	if text := logged(t, lines); !strings.Contains(text, "--web.enable-remote-write-receiver") {
		t.Errorf("the log says %s", text)
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
	o, err := parse(t, "https://store/api/v1/write?queue=64Mi&samples=100&level=pod&metric=cpu_*&external-label=cluster=prod&header=X-Scope-OrgID=a&token-file=t&timeout=3s&flush=1s&ca=c&insecure-tls=false")
	if err != nil {
		t.Fatal(err)
	}
	if o.URL != "https://store/api/v1/write" || o.Queue != 64<<20 || o.MaxSamples != 100 || o.ExternalLabels["cluster"] != "prod" ||
		o.HTTP.Authorization.CredentialsFile != "t" || o.HTTP.HTTPHeaders.Headers["X-Scope-OrgID"].Values[0] != "a" ||
		o.HTTP.TLSConfig.CAFile != "c" || o.Timeout != 3*time.Second || o.Flush != time.Second || !slices.Equal(o.Levels, []metric.Kind{metric.Pod}) {
		t.Errorf("options = %+v", o)
	}
	for spec, want := range map[string]string{
		"":                          "write remotewrite:http://HOST:PORT/api/v1/write",
		"http://host:9090":          "write remotewrite:http://host:9090/api/v1/write",
		"http://host/w?queue=1":     "at least 1Mi",
		"http://host/w?x=1":         `no option is called "x"`,
		"http://host/w?username=me": "need each other",
		"http://host/w?username=me&password-file=p&token-file=t": "give either",
		"http://host/w?external-label=__x=1":                     "is not a valid label name",
		"http://host/w?header=Content-Type=x":                    "is set by the protocol",
		"http://host/w?samples=0":                                "is not a number of samples",
	} {
		if _, err := parse(t, spec); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", spec, err, want)
		}
	}
}
