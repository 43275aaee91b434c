package adapters_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/provider"

	"github.com/weir-metrics/weir/api/adapters"
	"github.com/weir-metrics/weir/api/adapters/externalscaler"
	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/test/cmptest"
)

// testScaler is an external scaler. It keeps the last request.
type testScaler struct {
	externalscaler.UnimplementedExternalScalerServer
	specs []string
	// answers has the values of each metric; one that is not there hangs until the caller gives up.
	answers map[string][]*externalscaler.MetricValue
	active  bool
	err     error

	mu   sync.Mutex
	last *externalscaler.GetMetricsRequest
}

func (s *testScaler) GetMetricSpec(context.Context, *externalscaler.ScaledObjectRef) (*externalscaler.GetMetricSpecResponse, error) {
	answer := &externalscaler.GetMetricSpecResponse{}
	for _, name := range s.specs {
		answer.MetricSpecs = append(answer.MetricSpecs, &externalscaler.MetricSpec{MetricName: name, TargetSizeFloat: 5})
	}
	return answer, nil
}

func (s *testScaler) GetMetrics(ctx context.Context, r *externalscaler.GetMetricsRequest) (*externalscaler.GetMetricsResponse, error) {
	s.mu.Lock()
	s.last = r
	s.mu.Unlock()
	if s.err != nil {
		return nil, s.err
	}
	values, ok := s.answers[r.MetricName]
	if !ok {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return &externalscaler.GetMetricsResponse{MetricValues: values}, nil
}

func (s *testScaler) IsActive(context.Context, *externalscaler.ScaledObjectRef) (*externalscaler.IsActiveResponse, error) {
	return &externalscaler.IsActiveResponse{Result: s.active}, nil
}

// number returns a value as a scaler sends it today, and whole as an old one did.
func number(name string, v float64) *externalscaler.MetricValue {
	return &externalscaler.MetricValue{MetricName: name, MetricValueFloat: v}
}

func whole(name string, v int64) *externalscaler.MetricValue {
	return &externalscaler.MetricValue{MetricName: name, MetricValue: v}
}

// serveScaler serves a scaler at an address, and returns the address and what stops it.
func serveScaler(t *testing.T, address string, s externalscaler.ExternalScalerServer, o ...grpc.ServerOption) (string, func()) {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	g := grpc.NewServer(o...)
	externalscaler.RegisterExternalScalerServer(g, s)
	ended := make(chan error, 1)
	go func() { ended <- g.Serve(l) }()
	stop := sync.OnceFunc(func() { g.Stop(); <-ended })
	t.Cleanup(stop)
	return l.Addr().String(), stop
}

// ofScaler returns the entry of a scaler.
func ofScaler(address string) adapters.Adapter {
	return adapters.Adapter{Name: "mail", Scaler: address, ScaledObject: "mailer", Metadata: map[string]string{"queue": "mail"}, Timeout: 10 * time.Second, External: []string{"*"}}
}

// ask asks for an external metric as weir's API does, and returns the values or the error with its status.
func ask(r *adapters.Router, namespace, metric string, selector labels.Selector) string {
	list, err := r.GetExternalMetric(context.Background(), namespace, selector, provider.ExternalMetricInfo{Metric: metric})
	if err != nil {
		code := "-"
		if s, ok := err.(apierrors.APIStatus); ok {
			code = http.StatusText(int(s.Status().Code))
		}
		return code + ": " + err.Error()
	}
	var all []string
	for _, v := range list.Items {
		all = append(all, v.MetricName+"="+v.Value.String())
	}
	return strings.Join(all, " ")
}

// TestScaler asks an external scaler for its metrics, and for values that are right and wrong.
func TestScaler(t *testing.T) {
	s := &testScaler{
		specs: []string{"queue", "lag", "queue", "../secrets", "a/b", ""},
		answers: map[string][]*externalscaler.MetricValue{
			"queue": {number("queue", 12.3456)}, "old": {whole("old", 7)}, "zero": {number("zero", 0)}, "two": {number("two", 1), number("two", -2)},
			"none": {}, "other": {number("password", 1)}, "nan": {number("nan", math.NaN())}, "infinite": {number("infinite", math.Inf(1))}, "large": {number("large", 1e300)},
			"many": make([]*externalscaler.MetricValue, 5001), "huge": {number(strings.Repeat("x", 5<<20), 1)},
		},
	}
	address, _ := serveScaler(t, "127.0.0.1:0", s)
	entry := ofScaler(address)
	entry.SelectorLabel = "scaledobject.keda.sh/name"
	entry.External, entry.Namespaces = []string{"*"}, []string{"shop"}
	r := adapters.New(adapters.Options{Adapters: []adapters.Adapter{entry}, Custom: values{}, External: values{"own": 5000}})
	t.Cleanup(r.Close)
	if !r.ReadLists(t.Context()) {
		t.Errorf("reading the list: got no change, want one; %v", r.InTrouble())
	}
	cmptest.Equal(t, "metrics", []provider.ExternalMetricInfo{{Metric: "own"}, {Metric: "queue"}, {Metric: "lag"}}, r.ListAllExternalMetrics())
	chosen, err := labels.Parse("scaledobject.keda.sh/name=mailer")
	if err != nil {
		t.Fatal(err)
	}
	for metric, want := range map[string]string{
		"queue":    "queue=12346m",
		"old":      "old=7",
		"zero":     "zero=0",
		"two":      "two=1 two=-2",
		"none":     "Not Found: adapter mail: it has no value of none",
		"other":    `Bad Gateway: adapter mail: it was asked for other and answered with a value of "password"`,
		"nan":      "Bad Gateway: adapter mail: it answered with NaN, which is not a number that an autoscaler can use",
		"infinite": "Bad Gateway: adapter mail: it answered with +Inf, which is not a number that an autoscaler can use",
		"large":    "Bad Gateway: adapter mail: it answered with 1e+300, which is not a number that an autoscaler can use",
		"many":     "Bad Gateway: adapter mail: it answered with 5001 values, and at most 5000 are taken",
		"huge":     "Bad Gateway: adapter mail: GetMetrics failed with ResourceExhausted: grpc: received message larger than max",
	} {
		if got := ask(r, "shop", metric, chosen); got != want && !(metric == "huge" && strings.HasPrefix(got, want)) {
			t.Errorf("%s\n got %s\nwant %s", metric, got, want)
		}
	}
	if got, want := ask(r, "shop", "queue", chosen), "queue=12346m"; got != want {
		t.Errorf("after the others: got %s, want %s", got, want)
	}
	s.mu.Lock()
	ref := s.last.GetScaledObjectRef()
	s.mu.Unlock()
	if ref.GetName() != "mailer" || ref.GetNamespace() != "shop" || ref.GetScalerMetadata()["queue"] != "mail" {
		t.Errorf("the scaler is told %v, want the ScaledObject mailer, the namespace shop and the entry's metadata", ref)
	}
	more, err := labels.Parse("scaledobject.keda.sh/name=mailer,queue=mail")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := ask(r, "shop", "queue", more), "Bad Request: the values of adapter mail, an external scaler, have no label queue: leave the selector out"; got != want {
		t.Errorf("with another label\n got %s\nwant %s", got, want)
	}
	if got, want := ask(r, "shop", "own", labels.Everything()), "own=5"; got != want {
		t.Errorf("weir's own metric: got %s, want %s", got, want)
	}
	if got, want := r.ExternalAnsweredBy("shop", "queue", chosen), "adapter mail"; got != want {
		t.Errorf("answered by %s, want %s", got, want)
	}
	s.err = status.Error(codes.Internal, "the queue is \x1b[31maway"+strings.Repeat(".", 10_000))
	if got, want := ask(r, "shop", "queue", chosen), "Bad Gateway: adapter mail: GetMetrics failed with Internal: the queue is "; !strings.HasPrefix(got, want) || len(got) > 700 || strings.Contains(got, "\x1b") {
		t.Errorf("of a scaler that fails\n got %s\nwant %s… of at most 700 printable bytes", got, want)
	}
}

// TestIsActive wakes a target from zero, and lets it sleep, as the scaler says.
func TestIsActive(t *testing.T) {
	for _, test := range []struct {
		counts, active bool
		value          float64
		want           string
		replicas       int32 // from zero, at 5 a replica
	}{
		{true, true, 0, "queue=1m", 1}, {true, true, 12, "queue=12", 3}, {true, true, -1, "queue=1m", 1}, {true, false, 12, "queue=0", 0}, {true, false, 0, "queue=0", 0},
		{false, true, 0, "queue=0", 0}, {false, false, 12, "queue=12", 3},
	} {
		address, _ := serveScaler(t, "127.0.0.1:0", &testScaler{active: test.active, answers: map[string][]*externalscaler.MetricValue{"queue": {number("queue", test.value)}}})
		entry := ofScaler(address)
		entry.IsActive = test.counts
		r := adapters.New(adapters.Options{Adapters: []adapters.Adapter{entry}, Custom: values{}})
		got := ask(r, "shop", "queue", labels.Everything())
		if got != test.want {
			t.Errorf("value %v, active %v, which counts %v: got %s, want %s", test.value, test.active, test.counts, got, test.want)
		}
		if n := fromZero(t, r); n != test.replicas {
			t.Errorf("value %v, active %v, which counts %v: got %d replicas from zero, want %d", test.value, test.active, test.counts, n, test.replicas)
		}
		r.Close()
	}
}

// fromZero returns how many replicas weir's autoscaler gives a target that it had scaled to zero.
func fromZero(t *testing.T, r *adapters.Router) int32 {
	t.Helper()
	none, five, settings := int32(0), resource.MustParse("5"), autoscaler.DefaultSettings()
	spec := &autoscalingv2.HorizontalPodAutoscalerSpec{
		ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "mailer"}, MinReplicas: &none, MaxReplicas: 10,
		Metrics: []autoscalingv2.MetricSpec{{Type: autoscalingv2.ExternalMetricSourceType, External: &autoscalingv2.ExternalMetricSource{
			Metric: autoscalingv2.MetricIdentifier{Name: "queue"}, Target: autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: &five},
		}}},
	}
	decision := autoscaler.Decide(&autoscaler.Input{
		Now: noon.Time, Spec: spec, Scale: autoscaler.Scale{Selector: "app=mailer"}, Settings: &settings,
		Status: &autoscalingv2.HorizontalPodAutoscalerStatus{Conditions: []autoscalingv2.HorizontalPodAutoscalerCondition{{Type: autoscalingv2.ScaledToZero, Status: corev1.ConditionTrue}}},
		ReadMetric: func(int) autoscaler.Reading {
			list, err := r.GetExternalMetric(t.Context(), "shop", nil, provider.ExternalMetricInfo{Metric: "queue"})
			if err != nil {
				return autoscaler.Reading{Err: err}
			}
			return autoscaler.Reading{Values: []int64{list.Items[0].Value.MilliValue()}, At: noon.Time}
		},
	})
	if decision.Err != nil {
		t.Fatal(decision.Err)
	}
	return decision.Desired
}

// TestScalerThatHangs asks one scaler that never answers and one that does, at the same time.
func TestScalerThatHangs(t *testing.T) {
	hanging, _ := serveScaler(t, "127.0.0.1:0", &testScaler{})
	fine, _ := serveScaler(t, "127.0.0.1:0", &testScaler{answers: map[string][]*externalscaler.MetricValue{"depth": {number("depth", 3)}}})
	slow, other := ofScaler(hanging), ofScaler(fine)
	slow.Timeout, slow.External, other.Name, other.External = 200*time.Millisecond, []string{"lag"}, "other", []string{"depth"}
	r := adapters.New(adapters.Options{Adapters: []adapters.Adapter{slow, other}, Custom: values{}, External: values{"own": 5000}})
	t.Cleanup(r.Close)
	answers := make(chan string, 40)
	for range cap(answers) {
		go func() { answers <- ask(r, "shop", "lag", labels.Everything()) }()
	}
	for metric, want := range map[string]string{"depth": "depth=3", "own": "own=5"} {
		if got := ask(r, "shop", metric, labels.Everything()); got != want {
			t.Errorf("%s beside a scaler that hangs: got %s, want %s", metric, got, want)
		}
	}
	for range cap(answers) {
		got := <-answers
		if !strings.HasPrefix(got, "Gateway Timeout: adapter mail did not answer within 200ms") && !strings.HasPrefix(got, "Service Unavailable: adapter mail is slow: 16 other requests") {
			t.Errorf("lag of a scaler that hangs: got %s, want that it did not answer", got)
		}
	}
}

// TestScalerThatEnds stops a scaler and starts it again.
func TestScalerThatEnds(t *testing.T) {
	s := &testScaler{specs: []string{"queue"}, answers: map[string][]*externalscaler.MetricValue{"queue": {number("queue", 3)}}}
	address, stop := serveScaler(t, "127.0.0.1:0", s)
	r := adapters.New(adapters.Options{Adapters: []adapters.Adapter{ofScaler(address)}, Custom: values{}})
	t.Cleanup(r.Close)
	r.ReadLists(t.Context())
	if got, want := ask(r, "shop", "queue", labels.Everything()), "queue=3"; got != want {
		t.Errorf("at first: got %s, want %s", got, want)
	}
	stop()
	if got, want := ask(r, "shop", "queue", labels.Everything()), "Service Unavailable: adapter mail cannot be reached: "; !strings.HasPrefix(got, want) {
		t.Errorf("after it ended: got %s, want %s", got, want)
	}
	if r.ReadLists(t.Context()); len(r.InTrouble()) != 1 || len(r.ListAllExternalMetrics()) != 1 {
		t.Errorf("after it ended: got trouble %v and the list %v, want one adapter in trouble, with the list that it had", r.InTrouble(), r.ListAllExternalMetrics())
	}
	serveScaler(t, address, s)
	deadline := time.Now().Add(20 * time.Second)
	got := ""
	for got != "queue=3" && time.Now().Before(deadline) {
		if got = ask(r, "shop", "queue", labels.Everything()); got != "queue=3" {
			<-time.After(20 * time.Millisecond)
		}
	}
	if got != "queue=3" {
		t.Errorf("after it started again: got %s, want queue=3 within 20s", got)
	}
	if r.ReadLists(t.Context()); len(r.InTrouble()) != 0 {
		t.Errorf("after it started again: got trouble %v, want none", r.InTrouble())
	}
}

// TestScalerWithTLS asks a scaler that wants a client certificate. One who speaks another protocol is named.
func TestScalerWithTLS(t *testing.T) {
	web := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(web.Close)
	r := adapters.New(adapters.Options{Adapters: []adapters.Adapter{ofScaler(strings.TrimPrefix(web.URL, "http://"))}, Custom: values{}})
	t.Cleanup(r.Close)
	if got := ask(r, "shop", "queue", labels.Everything()); !strings.HasPrefix(got, "Service Unavailable: adapter mail cannot be reached: ") {
		t.Errorf("of a web server: got %s, want that it cannot be reached", got)
	}

	certificate, certFile, keyFile := newCertificate(t)
	caFile := certFile
	trusted := x509.NewCertPool()
	trusted.AddCert(certificate.Leaf)
	address, _ := serveScaler(t, "127.0.0.1:0", &testScaler{answers: map[string][]*externalscaler.MetricValue{"queue": {number("queue", 3)}}},
		grpc.Creds(credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: trusted})))
	for _, test := range []struct {
		ca, cert, key, want string
	}{
		{caFile, certFile, keyFile, "queue=3"},
		{caFile, "", "", "Service Unavailable: adapter mail cannot be reached: "},
		{"", "", "", "Service Unavailable: adapter mail cannot be reached: "},
		{filepath.Join(t.TempDir(), "ca.crt"), "", "", "Service Unavailable: adapter mail cannot be asked: "},
	} {
		entry := ofScaler(address)
		entry.CAFile, entry.CertFile, entry.KeyFile = test.ca, test.cert, test.key
		r := adapters.New(adapters.Options{Adapters: []adapters.Adapter{entry}, Custom: values{}})
		if got := ask(r, "shop", "queue", labels.Everything()); got != test.want && (test.want == "queue=3" || !strings.HasPrefix(got, test.want)) {
			t.Errorf("caFile %q, certFile %q\n got %s\nwant %s", test.ca, test.cert, got, test.want)
		}
		r.Close()
	}
}

// newCertificate returns a certificate for both sides of a connection on this machine, signed by itself, with
// its files.
func newCertificate(t *testing.T) (c tls.Certificate, certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "scaler"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile = filepath.Join(t.TempDir(), "tls.crt"), filepath.Join(t.TempDir(), "tls.key")
	for file, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "PRIVATE KEY", Bytes: keyDER}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if c, err = tls.LoadX509KeyPair(certFile, keyFile); err != nil {
		t.Fatal(err)
	}
	return c, certFile, keyFile
}

// TestFileWithScaler reads entries of external scalers, right and wrong.
func TestFileWithScaler(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "adapters.yaml")
	for _, test := range []struct{ entry, want string }{
		{"scaler: 'mail-scaler.shop:6000', metadata: {queue: mail}, caFile: ca.crt, certFile: tls.crt, keyFile: tls.key", ""},
		{"scaler: '[::1]:6000'", ""},
		{"scaler: mail-scaler.shop", `adapter mail: scaler "mail-scaler.shop" is not the address of an external scaler: write HOST:PORT`},
		{"scaler: 'https://mail-scaler:6000'", `is not the address of an external scaler: write HOST:PORT`},
		{"scaler: 'unix:/run/secret'", `is not the address of an external scaler: write HOST:PORT`},
		{"scaler: 'a:1', url: 'https://a:1'", "adapter mail: it has url and scaler: leave one of them out"},
		{"scaler: 'a:1', custom: [x]", "adapter mail: external scalers have external metrics only: leave custom out"},
		{"scaler: 'a:1', bearerTokenFile: token", "adapter mail: external scalers take no token: name a client certificate in certFile and keyFile instead of bearerTokenFile"},
		{"scaler: 'a:1', caFile: ca.crt, certFile: tls.crt", "adapter mail: it has one of certFile and keyFile: a client certificate needs both"},
		{"scaler: 'a:1', certFile: tls.crt, keyFile: tls.key", "adapter mail: certFile is for TLS, which caFile turns on: name the certificates to trust there"},
		{"scaler: 'a:1', caFile: ca.crt, certFile: /run/tls.crt, keyFile: tls.key", "adapter mail: it names /run/tls.crt, which is outside the folder"},
		{"url: 'https://a:1', metadata: {queue: mail}", "adapter mail: scaledObject, metadata and isActive are for external scalers: write scaler: HOST:PORT, or leave them out"},
	} {
		if err := os.WriteFile(file, []byte("adapters:\n- {name: mail, external: ['*'], "+test.entry+"}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		all, err := adapters.ReadFile(file, nil)
		switch {
		case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%s\n got %v\nwant %s", test.entry, err, test.want)
		case test.want == "" && (err != nil || all[0].ScaledObject != "mail"):
			t.Errorf("%s: got %+v, %v; want an entry that the scaler knows as mail", test.entry, all, err)
		}
	}
}

// changingRules is a provider whose lists of both kinds change, as those of rules do.
type changingRules struct {
	values
	changed *[]func()
}

func (c changingRules) OnListChange(do func()) {
	*c.changed = append(*c.changed, do)
	do()
}

// TestOneAnnouncement changes weir's own rules, which custom and external metrics have: a list is announced
// once.
func TestOneAnnouncement(t *testing.T) {
	rules := changingRules{values{}, new([]func())}
	r := adapters.New(adapters.Options{Custom: rules, External: rules})
	announced := 0
	r.OnListChange(func() { announced++ })
	if announced != 1 {
		t.Errorf("announced %d times at first, want once", announced)
	}
	for _, do := range *rules.changed {
		do()
	}
	if announced != 2 {
		t.Errorf("announced %d times after a change, want twice in all", announced)
	}
}

// TestTheRequestEnded checks that an adapter is not blamed, nor counted as asked, for a caller that had no
// time left or less than the adapter's timeout.
func TestTheRequestEnded(t *testing.T) {
	hanging, _ := serveScaler(t, "127.0.0.1:0", &testScaler{})
	registry := prometheus.NewRegistry()
	r := adapters.New(adapters.Options{Adapters: []adapters.Adapter{ofScaler(hanging)}, Registerer: registry})
	t.Cleanup(r.Close)
	for _, test := range []struct {
		left  time.Duration
		want  string
		asked int
	}{
		{0, "the request ended before adapter mail was asked", 0},
		{100 * time.Millisecond, "the request ended before adapter mail answered", 1},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), test.left)
		defer cancel()
		_, err := r.GetExternalMetric(ctx, "shop", nil, provider.ExternalMetricInfo{Metric: "lag"})
		if err == nil || err.Error() != test.want {
			t.Errorf("a request with %v left: got %v, want %s", test.left, err, test.want)
		}
		if got, err := testutil.GatherAndCount(registry, "weir_adapter_requests_total"); err != nil || got != test.asked {
			t.Errorf("%d requests are counted, %v, want %d", got, err, test.asked)
		}
	}
}
