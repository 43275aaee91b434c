package adapters_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	genericserver "k8s.io/apiserver/pkg/server"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/metrics/pkg/apis/custom_metrics"
	"k8s.io/metrics/pkg/apis/external_metrics"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/apiserver"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/apiserver/installer"
	customdefinitions "sigs.k8s.io/custom-metrics-apiserver/pkg/generated/openapi/custommetrics"
	externaldefinitions "sigs.k8s.io/custom-metrics-apiserver/pkg/generated/openapi/externalmetrics"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/provider"
	customstorage "sigs.k8s.io/custom-metrics-apiserver/pkg/registry/custom_metrics"
	externalstorage "sigs.k8s.io/custom-metrics-apiserver/pkg/registry/external_metrics"

	"github.com/weir-metrics/weir/api/adapters"
	"github.com/weir-metrics/weir/api/metricsgroup"
	"github.com/weir-metrics/weir/api/replicas/peer"
	"github.com/weir-metrics/weir/test/apitest"
	"github.com/weir-metrics/weir/test/cmptest"
)

func TestMain(m *testing.M) { apitest.Main(m) }

// noon is the time of all values.
var noon = metav1.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// values is a provider with a number for each metric, as an adapter has it.
type values map[string]int64

func (v values) GetMetricByName(_ context.Context, object types.NamespacedName, info provider.CustomMetricInfo, selector labels.Selector) (*custom_metrics.MetricValue, error) {
	n, ok := v[info.Metric]
	if !ok {
		return nil, provider.NewMetricNotFoundForError(info.GroupResource, info.Metric, object.Name)
	}
	value := &custom_metrics.MetricValue{
		DescribedObject: custom_metrics.ObjectReference{Kind: "Service", Namespace: object.Namespace, Name: object.Name, APIVersion: "v1"},
		Metric:          custom_metrics.MetricIdentifier{Name: info.Metric}, Timestamp: noon, Value: *resource.NewMilliQuantity(n, resource.DecimalSI),
	}
	if !selector.Empty() {
		value.Metric.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"chosen": selector.String()}}
	}
	return value, nil
}

func (v values) GetMetricBySelector(ctx context.Context, namespace string, selector labels.Selector, info provider.CustomMetricInfo, metricSelector labels.Selector) (*custom_metrics.MetricValueList, error) {
	list := &custom_metrics.MetricValueList{}
	for _, name := range []string{"a", "b/" + selector.String()} {
		one, err := v.GetMetricByName(ctx, types.NamespacedName{Namespace: namespace, Name: name}, info, metricSelector)
		if err != nil {
			return nil, err
		}
		list.Items = append(list.Items, *one)
	}
	return list, nil
}

func (v values) GetExternalMetric(_ context.Context, namespace string, selector labels.Selector, info provider.ExternalMetricInfo) (*external_metrics.ExternalMetricValueList, error) {
	n, ok := v[info.Metric]
	if !ok {
		return nil, provider.NewMetricNotFoundError(schema.GroupResource{}, info.Metric)
	}
	return &external_metrics.ExternalMetricValueList{Items: []external_metrics.ExternalMetricValue{{
		MetricName: info.Metric, MetricLabels: map[string]string{"in": namespace, "by": selector.String()}, Timestamp: noon,
		Value: *resource.NewMilliQuantity(n, resource.DecimalSI),
	}}}, nil
}

func (v values) ListAllMetrics() (all []provider.CustomMetricInfo) {
	for name := range v {
		all = append(all, provider.CustomMetricInfo{GroupResource: schema.GroupResource{Resource: "services"}, Namespaced: true, Metric: name})
	}
	return all
}

func (v values) ListAllExternalMetrics() (all []provider.ExternalMetricInfo) {
	for name := range v {
		all = append(all, provider.ExternalMetricInfo{Metric: name})
	}
	return all
}

// serve starts an API server with both groups, and returns its URL.
func serve(t *testing.T, p provider.MetricsProvider) string {
	t.Helper()
	definitions := func(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
		all := customdefinitions.GetOpenAPIDefinitions(ref)
		maps.Copy(all, externaldefinitions.GetOpenAPIDefinitions(ref))
		return all
	}
	return apitest.Serve(t, apiserver.Scheme, definitions, func(s *genericserver.GenericAPIServer) error {
		if err := metricsgroup.Install(s, custom_metrics.GroupName, p, installer.MetricsAPIGroupVersion{
			DynamicStorage: customstorage.NewREST(p), ResourceLister: provider.NewCustomMetricResourceLister(p), Handlers: &installer.CMHandlers{},
		}); err != nil {
			return err
		}
		return metricsgroup.Install(s, external_metrics.GroupName, p, installer.MetricsAPIGroupVersion{
			DynamicStorage: externalstorage.NewREST(p), ResourceLister: provider.NewExternalMetricResourceLister(p), Handlers: &installer.EMHandlers{},
		})
	}).Host
}

// withTLS serves a handler by TLS and returns its URL and a file with its certificate.
func withTLS(t *testing.T, h http.Handler) (address, caFile string) {
	t.Helper()
	s := httptest.NewTLSServer(h)
	t.Cleanup(s.Close)
	caFile = filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(caFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return s.URL, caFile
}

// proxyTo returns a handler that passes requests on to a server.
func proxyTo(t *testing.T, address string) http.Handler {
	t.Helper()
	to, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.Transport = transport
	return proxy
}

// foreign starts an adapter that serves values, and returns its entry.
func foreign(t *testing.T, name string, v values) (entry adapters.Adapter, direct string) {
	t.Helper()
	direct = serve(t, v)
	proxy := proxyTo(t, direct)
	entry = adapters.Adapter{Name: name, Timeout: 10 * time.Second, Custom: []string{"*"}, External: []string{"*"}}
	entry.URL, entry.CAFile = withTLS(t, proxy)
	return entry, direct
}

// route starts a weir that routes to the entries, and returns its URL.
func route(t *testing.T, own values, entries ...adapters.Adapter) (*adapters.Router, string) {
	t.Helper()
	r := adapters.New(adapters.Options{Adapters: entries, Custom: own, External: own, Registerer: prometheus.NewRegistry()})
	t.Cleanup(r.Close)
	return r, serve(t, r)
}

// get returns the status and the body of an answer.
func get(t *testing.T, address string) string {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	response, err := client.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%d %s", response.StatusCode, body)
}

const (
	external = "/apis/external.metrics.k8s.io/v1beta1/namespaces/"
	custom   = "/apis/custom.metrics.k8s.io/v1beta2/"
)

// TestRouting compares the answers through weir with those of the server that should give them, byte
// by byte.
func TestRouting(t *testing.T) {
	keda, direct := foreign(t, "keda", values{"s0-queue": 1500, "shared": 2})
	keda.SelectorLabel = "scaledobject.keda.sh/name"
	queues, ofQueues := foreign(t, "queues", values{"queue_depth": 3, "shared": 4})
	queues.External, queues.Custom, queues.Namespaces = []string{"queue_*", "shared"}, []string{"queue_*"}, []string{"shop"}
	own := values{"own": 5, "queue_depth": 6, "shared": 7}
	_, weir := route(t, own, keda, queues)
	alone := serve(t, own)
	for path, want := range map[string]string{
		external + "shop/s0-queue?labelSelector=scaledobject.keda.sh%2Fname%3Dmailer":               direct,
		external + "bank/shared?labelSelector=scaledobject.keda.sh%2Fname%20in%20(a,b),tier%21%3Dx": direct,
		external + "shop/shared?labelSelector=%21scaledobject.keda.sh%2Fname":                       ofQueues,
		external + "shop/queue_depth":                       ofQueues,
		external + "bank/queue_depth":                       alone,
		external + "shop/own":                               alone,
		external + "shop/nothing":                           alone,
		custom + "namespaces/shop/services/web/queue_depth": ofQueues,
		custom + "namespaces/shop/services/%2A/queue_depth?labelSelector=app%3Dweb&metricLabelSelector=verb%3DGET": ofQueues,
		custom + "namespaces/bank/services/web/queue_depth":                                                        alone,
		custom + "namespaces/shop/services/web/own":                                                                alone,
		custom + "namespaces/shop/ingresses.networking.k8s.io/edge/queue_depth":                                    ofQueues,
		"/apis/custom.metrics.k8s.io/v1beta1/namespaces/shop/services/web/queue_depth":                             ofQueues,
	} {
		if diff := cmp.Diff(get(t, want+path), get(t, weir+path)); diff != "" {
			t.Errorf("%s (-adapter +weir):\n%s", path, diff)
		}
	}
	if got := get(t, weir+external+"shop/queue_none"); !strings.HasPrefix(got, "404 ") || !strings.Contains(got, "adapter queues: ") {
		t.Errorf("an unknown metric: got %s, want 404 with the adapter's name", got)
	}
}

// TestAnsweredBy asks who answers, which an explanation of an HPA shows.
func TestAnsweredBy(t *testing.T) {
	r, _ := route(t, values{"own": 5}, adapters.Adapter{Name: "keda", URL: "https://keda:443", Timeout: time.Second, External: []string{"*"}, SelectorLabel: "scaledobject.keda.sh/name"},
		adapters.Adapter{Name: "queues", URL: "https://queues:443", Timeout: time.Second, Custom: []string{"queue_*"}, Namespaces: []string{"shop"}})
	chosen, err := labels.Parse("scaledobject.keda.sh/name=mailer")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ got, want string }{
		{r.ExternalAnsweredBy("shop", "s0-queue", chosen), "adapter keda"},
		{r.ExternalAnsweredBy("shop", "s0-queue", labels.Everything()), "weir"},
		{r.CustomAnsweredBy("shop", "queue_depth", labels.Everything()), "adapter queues"},
		{r.CustomAnsweredBy("bank", "queue_depth", labels.Everything()), "weir"},
		{r.CustomAnsweredBy("shop", "own", chosen), "weir"},
	} {
		if test.got != test.want {
			t.Errorf("got %s, want %s", test.got, test.want)
		}
	}
}

// TestLists reads the lists of metrics: an adapter's come beside weir's own, as far as its entry takes
// them, and stay while it is away.
func TestLists(t *testing.T) {
	away := false
	proxy := proxyTo(t, serve(t, values{"queue_depth": 1, "other": 2}))
	entry := adapters.Adapter{Name: "queues", Timeout: 10 * time.Second, Custom: []string{"queue_*"}, External: []string{"queue_*", "own"}}
	entry.URL, entry.CAFile = withTLS(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if away {
			http.Error(w, "gone", http.StatusServiceUnavailable)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	r, _ := route(t, values{"own": 5}, entry)
	names := func() (all []string) {
		for _, info := range r.ListAllMetrics() {
			all = append(all, info.String())
		}
		for _, info := range r.ListAllExternalMetrics() {
			all = append(all, info.Metric)
		}
		return all
	}
	cmptest.Equal(t, "before the first read", []string{"services/own(namespaced)", "own"}, names())
	want := []string{"services/own(namespaced)", "services/queue_depth(namespaced)", "own", "queue_depth"}
	for round, wantChange := range []bool{true, false} {
		if got := r.ReadLists(t.Context()); got != wantChange {
			t.Errorf("round %d: changed is %v, want %v", round, got, wantChange)
		}
		cmptest.Equal(t, fmt.Sprintf("round %d", round), want, names())
		if got := r.InTrouble(); len(got) != round || round > 0 && (got[0].Name != "queues" || !strings.HasPrefix(got[0].Message, "adapter queues: gone") || got[0].Since.IsZero()) {
			t.Errorf("round %d: in trouble are %+v, want the adapter in round 1 only", round, got)
		}
		away = true
	}
}

// TestBadAdapters asks an adapter that misbehaves, and weir's own metrics beside it.
func TestBadAdapters(t *testing.T) {
	list := func(items string) string {
		return `{"kind":"ExternalMetricValueList","apiVersion":"external.metrics.k8s.io/v1beta1","metadata":{},"items":[` + items + `]}`
	}
	for name, test := range map[string]struct {
		path   string
		answer http.HandlerFunc
		want   string
	}{
		"hangs":      {external + "shop/x", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "504 adapter bad did not answer within 200ms"},
		"huge":       {external + "shop/x", say(200, strings.Repeat(" ", 5<<20)), "502 adapter bad: its answer has more than 4194304 bytes"},
		"no JSON":    {external + "shop/x", say(200, "<html>"), "502 adapter bad: its answer cannot be read: "},
		"wrong kind": {external + "shop/x", say(200, `{"kind":"MetricValueList","apiVersion":"custom.metrics.k8s.io/v1beta2","items":[]}`), "502 adapter bad: its answer cannot be read: "},
		"too many": {external + "shop/x", say(200, list(strings.Repeat(`{"metricName":"x","value":"1"},`, 5000)+`{"metricName":"x","value":"1"}`)),
			"502 adapter bad: it answered with 5001 values, and at most 5000 are taken"},
		"redirects": {external + "shop/x", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://elsewhere.test/x", http.StatusFound)
		}, "502 adapter bad: it redirects to https://elsewhere.test/x: put that address in url"},
		"refuses":    {external + "shop/x", say(403, `{"kind":"Status","message":"no"}`), "502 adapter bad: it answered 403 to the account whose token bearerTokenFile has: no"},
		"fails":      {external + "shop/x", say(500, `{"kind":"Status","reason":"InternalError","message":"queue\nis gone"}`), "500 adapter bad: queue is gone"},
		"says empty": {external + "shop/x", say(204, ""), "502 adapter bad: it answered 204"},
		"two values": {custom + "namespaces/shop/services/web/x", say(200, customList("shop", "shop")), "502 adapter bad: it answered with 2 values of one object"},
		"other namespace": {custom + "namespaces/shop/services/%2A/x", say(200, customList("shop", "bank")),
			`502 adapter bad: it answered with web of namespace "bank"`},
	} {
		t.Run(name, func(t *testing.T) {
			entry := adapters.Adapter{Name: "bad", Timeout: 10 * time.Second, Custom: []string{"x"}, External: []string{"x"}}
			if name == "hangs" {
				entry.Timeout = 200 * time.Millisecond
			}
			entry.URL, entry.CAFile = withTLS(t, test.answer)
			_, weir := route(t, values{"own": 5}, entry)
			got := get(t, weir+test.path)
			var status metav1.Status
			code, body, _ := strings.Cut(got, " ")
			if err := json.Unmarshal([]byte(body), &status); err != nil {
				t.Fatalf("got %s: %v", got, err)
			}
			if got := code + " " + status.Message; !strings.HasPrefix(got, test.want) {
				t.Errorf("got %s, want %s", got, test.want)
			}
			if got := get(t, weir+external+"shop/own"); !strings.HasPrefix(got, "200 ") {
				t.Errorf("weir's own metric: got %s, want 200", got)
			}
		})
	}
}

// TestMissingCA starts with an entry whose caFile comes later, beside weir's own metrics.
func TestMissingCA(t *testing.T) {
	entry, _ := foreign(t, "keda", values{"s0-queue": 1})
	entry.External = []string{"s0-*"}
	pem, err := os.ReadFile(entry.CAFile)
	if err != nil {
		t.Fatal(err)
	}
	entry.CAFile = filepath.Join(t.TempDir(), "keda-ca.crt")
	_, weir := route(t, values{"own": 5}, entry)
	if got := get(t, weir+external+"shop/s0-queue"); !strings.HasPrefix(got, "503 ") || !strings.Contains(got, "adapter keda cannot be asked: ") || !strings.Contains(got, "keda-ca.crt") {
		t.Errorf("without caFile: got %s, want 503 with the file", got)
	}
	if got := get(t, weir+external+"shop/own"); !strings.HasPrefix(got, "200 ") {
		t.Errorf("weir's own metric: got %s, want 200", got)
	}
	if err := os.WriteFile(entry.CAFile, pem, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := get(t, weir+external+"shop/s0-queue"); !strings.HasPrefix(got, "200 ") {
		t.Errorf("with caFile: got %s, want 200", got)
	}
}

// TestPathSegments asks for names that would lead to another path of the adapter, such as that of
// another namespace.
func TestPathSegments(t *testing.T) {
	entry, _ := foreign(t, "queues", values{"queue_depth": 1})
	r, _ := route(t, nil, entry)
	services := schema.GroupResource{Resource: "services"}
	for _, object := range []types.NamespacedName{{Namespace: "..", Name: "web"}, {Namespace: "shop", Name: ".."}, {Namespace: "shop", Name: "."}, {Namespace: "shop"}} {
		_, err := r.GetMetricByName(t.Context(), object, provider.CustomMetricInfo{GroupResource: services, Metric: "queue_depth"}, labels.Everything())
		if !apierrors.IsBadRequest(err) {
			t.Errorf("object %q: got %v, want a bad request", object, err)
		}
	}
	if _, err := r.GetExternalMetric(t.Context(), "shop", labels.Everything(), provider.ExternalMetricInfo{Metric: ".."}); !apierrors.IsBadRequest(err) {
		t.Errorf("external metric ..: got %v, want a bad request", err)
	}
}

// customList is an answer with one value of a namespace each.
func customList(namespaces ...string) string {
	var items []string
	for _, namespace := range namespaces {
		items = append(items, fmt.Sprintf(`{"describedObject":{"kind":"Service","namespace":%q,"name":"web"},"metric":{"name":"x"},"timestamp":null,"value":"1"}`, namespace))
	}
	return `{"kind":"MetricValueList","apiVersion":"custom.metrics.k8s.io/v1beta2","metadata":{},"items":[` + strings.Join(items, ",") + `]}`
}

// say answers each request with a status and a body.
func say(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

// TestTokens shows an adapter the token of its entry, which is read again, only if its certificate is
// trusted.
func TestTokens(t *testing.T) {
	seen := ""
	address, caFile := withTLS(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = r.Header.Get("Authorization") + r.Header.Get("X-Remote-User") + r.Header.Get("Impersonate-User")
		http.Error(w, "{}", http.StatusNotFound)
	}))
	another, err := peer.NewCertificate()
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(other, another.PEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	token := filepath.Join(t.TempDir(), "token")
	for _, test := range []struct{ ca, token, want string }{{caFile, "first", "Bearer first"}, {caFile, "second", "Bearer second"}, {other, "third", ""}} {
		if err := os.WriteFile(token, []byte(test.token), 0o600); err != nil {
			t.Fatal(err)
		}
		seen = ""
		_, weir := route(t, nil, adapters.Adapter{Name: "queues", URL: address, CAFile: test.ca, BearerTokenFile: token, Timeout: 10 * time.Second, External: []string{"*"}})
		answer := get(t, weir+external+"shop/x")
		if seen != test.want {
			t.Errorf("the adapter was shown %q, want %q (answer %s)", seen, test.want, answer)
		}
	}
}

func TestFile(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "adapters.yaml")
	for _, test := range []struct{ content, want string }{
		{"adapters:\n- name: keda\n  url: https://keda:443\n  caFile: ca.crt\n  timeout: 3s\n  external: ['*']\n  selectorLabel: scaledobject.keda.sh/name\n", ""},
		{"", "it names no adapter: begin each one with a dash below adapters:, as in - name: keda"},
		{"adapters:\n- name: keda\n  adress: x\n", "line 3: field adress not found"},
		{"adapters:\n- name: Keda\n", `adapter "Keda": the name must be lower-case letters, digits and dashes, as in name: keda`},
		{"adapters:\n- {name: keda, url: 'http://keda', external: [x]}\n", `adapter keda: url "http://keda" is not the address of an adapter: write https://HOST:PORT`},
		{"adapters:\n- {name: keda, url: 'https://keda'}\n", `adapter keda: it answers nothing: name metrics in custom or external, as in external: ["queue_*"]`},
		{"adapters:\n- {name: keda, url: 'https://keda', external: ['[']}\n", `adapter keda: "[" is not a pattern of names: use letters, * and ?`},
		{"adapters:\n- {name: keda, url: 'https://keda', external: [x], timeout: 1h}\n", "adapter keda: timeout 1h0m0s is out of range: it must be more than 0 and at most 30s"},
		{"adapters:\n- &a {name: keda, url: 'https://keda', external: [x]}\n- *a\n", "adapter keda is there twice: rename one"},
		{"adapters:\n- {name: keda, url: 'https://keda', external: [x], bearerTokenFile: /run/token}\n", "adapter keda: it names /run/token, which is outside the folder " + folder + ": move it there, or give --adapters-file=/run/token too"},
		{"adapters:\n- {name: keda, url: 'https://keda', external: [x], caFile: ../ca}\n", "adapter keda: it names ../ca, which is outside the folder " + folder},
	} {
		if err := os.WriteFile(file, []byte(test.content), 0o600); err != nil {
			t.Fatal(err)
		}
		all, err := adapters.ReadFile(file, nil)
		if test.want == "" {
			want := []adapters.Adapter{{
				Name: "keda", URL: "https://keda:443", CAFile: filepath.Join(folder, "ca.crt"), Timeout: 3 * time.Second, External: []string{"*"}, SelectorLabel: "scaledobject.keda.sh/name",
			}}
			if diff := cmp.Diff(want, all); err != nil || diff != "" {
				t.Errorf("got %v (-want +got):\n%s", err, diff)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %s", test.content, err, test.want)
		}
	}
}

// TestRelativeFile names a file by its absolute path, beside a file of adapters with a relative path.
func TestRelativeFile(t *testing.T) {
	folder := t.TempDir()
	t.Chdir(folder)
	content := fmt.Sprintf("adapters:\n- {name: keda, url: 'https://keda', external: [x], caFile: %s}\n", filepath.Join(folder, "ca.crt"))
	if err := os.WriteFile("adapters.yaml", []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := adapters.ReadFile("adapters.yaml", nil); err != nil {
		t.Errorf("got %v, want no error", err)
	}
}

// FuzzFile reads any bytes as a file of adapters.
func FuzzFile(f *testing.F) {
	f.Add([]byte("adapters:\n- {name: keda, url: 'https://keda', external: [x], timeout: 3s}\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		file := filepath.Join(t.TempDir(), "adapters.yaml")
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if all, err := adapters.ReadFile(file, nil); err == nil && len(all) == 0 {
			t.Error("got no adapter and no error")
		}
	})
}
