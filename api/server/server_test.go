package server_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/kube-openapi/pkg/common"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/apiserver"
	definitions "sigs.k8s.io/custom-metrics-apiserver/pkg/generated/openapi/custommetrics"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/provider/fake"

	"github.com/weir-metrics/weir/api/custommetrics"
	"github.com/weir-metrics/weir/api/rights"
	"github.com/weir-metrics/weir/api/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// run is a server on a free port of this machine. It ends with the test.
type run struct {
	*server.Server
	stop  context.CancelFunc
	ended chan error
	http2 bool // whether do uses HTTP/2
}

// start starts a server. It calls with before it makes the server and install before the server
// runs.
func start(t testing.TB, c *fakeCluster, with func(*server.Options, *server.Config), install func(*server.Server)) *run {
	t.Helper()
	o := server.NewOptions()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o.SecureServing.Listener = ln
	o.ShutdownDelay = 0
	// No decision is cached, so that tests can change rights.
	o.Authorization.AllowCacheTTL, o.Authorization.DenyCacheTTL, o.Authentication.CacheTTL = 0, 0, 0
	config := server.Config{
		Kubeconfig: c.kubeconfig,
		Version:    version.Info{Major: "0", Minor: "3", GitVersion: "v0.3.0"},
	}
	if with != nil {
		with(o, &config)
	}
	s, err := server.New(o, config)
	if err != nil {
		t.Fatal(err)
	}
	if install != nil {
		install(s)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	r := &run{Server: s, stop: cancel, ended: make(chan error, 1)}
	go func() { r.ended <- s.Run(ctx); close(r.ended) }()
	t.Cleanup(func() {
		cancel()
		if err := <-r.ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	// The library finds its own paths, and the certificates it trusts, some time after it listens.
	until(t, "the server answers", func() bool {
		got := r.get(t, "/readyz", nil)
		return got.code != 0 && !strings.Contains(got.body, "[-]authentication") && !strings.Contains(got.body, "[-]poststarthook")
	})
	return r
}

// until waits until holds returns true.
func until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(time.Minute); !holds(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

type answer struct {
	code   int
	header http.Header
	body   string
}

// message returns the message of a Status, or the body.
func (a answer) message() string {
	var status struct{ Message string }
	if json.Unmarshal([]byte(a.body), &status) == nil && status.Message != "" {
		return status.Message
	}
	return a.body
}

type asker func(*http.Request, *tls.Config)

func bearer(token string) asker {
	return func(r *http.Request, _ *tls.Config) { r.Header.Set("Authorization", "Bearer "+token) }
}

// behindProxy asks as the aggregating API server does for a user.
func behindProxy(cert tls.Certificate, user string) asker {
	return func(r *http.Request, c *tls.Config) {
		c.Certificates = []tls.Certificate{cert}
		r.Header.Set("X-Remote-User", user)
	}
}

func (r *run) get(t testing.TB, path string, as asker) answer {
	t.Helper()
	return r.do(t, http.MethodGet, path, nil, as)
}

func (r *run) do(t testing.TB, method, path string, body io.Reader, as asker) answer {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, "https://"+r.Address()+path, body)
	if err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{InsecureSkipVerify: true}
	if as != nil {
		as(request, config)
	}
	transport := &http.Transport{TLSClientConfig: config, DisableKeepAlives: true, ForceAttemptHTTP2: r.http2}
	resp, err := (&http.Client{Transport: transport, Timeout: 30 * time.Second}).Do(request)
	if err != nil {
		return answer{body: err.Error()}
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return answer{body: err.Error()}
	}
	return answer{resp.StatusCode, resp.Header, string(b)}
}

// echo answers with the path of the request.
var echo = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "shown: "+r.URL.Path) })

// model has the shape of Heapster's API.
func model(s *server.Server) {
	s.Handle("/api/v1/model/namespaces/{namespace}/", func(r *http.Request) []rights.Right {
		return []rights.Right{rights.ListPods(r.PathValue("namespace"))}
	}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "shown: "+r.PathValue("namespace"))
	}))
	everything := func(*http.Request) []rights.Right { return []rights.Right{rights.ListPods(""), rights.ListNodes()} }
	s.Handle("/metrics/cluster", everything, echo)
	s.Handle("/weir/v1/", nil, echo)
}

func TestAccess(t *testing.T) {
	c := newCluster(t)
	nobody := c.user("nobody")
	web := c.user("web", "list pods.metrics.k8s.io web", "get /weir/v1/about")
	pods := c.user("pods", "list pods.metrics.k8s.io")
	all := c.user("all", "list pods.metrics.k8s.io", "list nodes.metrics.k8s.io", "get /metrics")
	r := start(t, c, nil, model)
	const forbidden = `forbidden: User "%s" cannot get path "%s": %s`
	for _, test := range []struct {
		path, token string
		code        int
		says        string
	}{
		{"/api/v1/model/namespaces/web/pods", web, 200, "shown: web"},
		{"/api/v1/model/namespaces/web/pods", all, 403, fmt.Sprintf(forbidden, "all", "/api/v1/model/namespaces/web/pods", "needs: list pods.metrics.k8s.io in namespace web")},
		{"/api/v1/model/namespaces/other/pods", web, 403, fmt.Sprintf(forbidden, "web", "/api/v1/model/namespaces/other/pods", "needs: list pods.metrics.k8s.io in namespace other")},
		{"/api/v1/model/namespaces/web/pods", nobody, 403, fmt.Sprintf(forbidden, "nobody", "/api/v1/model/namespaces/web/pods", "needs: list pods.metrics.k8s.io in namespace web")},
		{"/api/v1/model/namespaces/web/pods", "", 401, "Unauthorized"},
		{"/api/v1/model/namespaces/web/pods", "forged", 401, "Unauthorized"},
		{"/metrics/cluster", all, 200, "shown: /metrics/cluster"},
		{"/metrics/cluster", pods, 403, fmt.Sprintf(forbidden, "pods", "/metrics/cluster", "needs: list nodes.metrics.k8s.io")},
		{"/metrics/cluster", web, 403, fmt.Sprintf(forbidden, "web", "/metrics/cluster", "needs: list pods.metrics.k8s.io in all namespaces, list nodes.metrics.k8s.io")},
		{"/metrics/cluster", "", 401, "Unauthorized"},
		{"/weir/v1/about", web, 200, "shown: /weir/v1/about"},
		{"/weir/v1/about", all, 403, `forbidden: User "all" cannot get path "/weir/v1/about"`},
		{"/metrics", web, 403, `forbidden: User "web" cannot get path "/metrics"`},
		{"/metrics", "", 401, "Unauthorized"},
		{"/apis", "", 401, "Unauthorized"},
		{"/version", "", 401, "Unauthorized"},
		{"/openapi/v2", "", 401, "Unauthorized"},
		{"/readyz/ping", "", 401, "Unauthorized"},
		{"/debug/pprof/", all, 403, `forbidden: User "all" cannot get path "/debug/pprof/"`},
		// These paths could mean another namespace than their rule saw.
		{"/api/v1/model/namespaces/web/%2e%2e/other/pods", web, 403, fmt.Sprintf(`forbidden: User "web" cannot get path %q`, "/api/v1/model/namespaces/web/../other/pods")},
		{"/api/v1/model/namespaces/web%2Fother/pods", web, 403, fmt.Sprintf(forbidden, "web", "/api/v1/model/namespaces/web/other/pods", "needs: list pods.metrics.k8s.io in namespace web/other")},
	} {
		var as asker
		if test.token != "" {
			as = bearer(test.token)
		}
		if got := r.get(t, test.path, as); got.code != test.code || got.message() != test.says {
			t.Errorf("GET %s with %q\n got: %d %s\nwant: %d %s", test.path, test.token, got.code, got.message(), test.code, test.says)
		}
	}
}

// A caller with the right to a path with dots sees that it is a bad request.
func TestDottedPathIsBad(t *testing.T) {
	c := newCluster(t)
	token := c.user("u", "get /api/v1/model/namespaces/web/../other/pods")
	got := start(t, c, nil, model).get(t, "/api/v1/model/namespaces/web/%2e%2e/other/pods", bearer(token))
	if want := "a path cannot contain empty parts, . or .."; got.code != 400 || got.message() != want {
		t.Errorf("got: %d %s\nwant: 400 %s", got.code, got.message(), want)
	}
}

func TestCallersGetErrors(t *testing.T) {
	c := newCluster(t)
	c.user("jane", "list pods.metrics.k8s.io web")
	r := start(t, c, nil, model)
	const path = "/api/v1/model/namespaces/web/"
	outsider := newAuthority(t, "stranger")
	certificate := func(cert tls.Certificate) asker {
		return func(_ *http.Request, c *tls.Config) { c.Certificates = []tls.Certificate{cert} }
	}
	jane := certificate(c.clientCA.client(t, "jane"))
	until(t, "the cluster's CA is known", func() bool { return r.get(t, path, jane).code == 200 })
	for name, test := range map[string]struct {
		as   asker
		code int
	}{
		"a token":                              {bearer("token-of-jane"), 200},
		"a certificate of the cluster":         {jane, 200},
		"a certificate of nobody":              {certificate(outsider.client(t, "jane")), 401},
		"the proxy for jane":                   {behindProxy(c.proxyCA.client(t, "front-proxy-client"), "jane"), 200},
		"the proxy for anonymous":              {behindProxy(c.proxyCA.client(t, "front-proxy-client"), "system:anonymous"), 401},
		"the proxy's CA under another name":    {behindProxy(c.proxyCA.client(t, "somebody"), "jane"), 401},
		"headers with the cluster's CA":        {behindProxy(c.clientCA.client(t, "front-proxy-client"), "jane"), 403},
		"headers with nobody's CA":             {behindProxy(outsider.client(t, "front-proxy-client"), "jane"), 401},
		"headers without a certificate at all": {func(r *http.Request, _ *tls.Config) { r.Header.Set("X-Remote-User", "jane") }, 401},
	} {
		if got := r.get(t, path, test.as); got.code != test.code {
			t.Errorf("%s: got %d %s, want %d", name, got.code, got.message(), test.code)
		}
	}
}

func TestReviewsAreThoseOfTheRule(t *testing.T) {
	c := newCluster(t)
	token := c.user("u", "get pods.metrics.k8s.io web/p", "get nodes.metrics.k8s.io /n", "get nodes./stats /n", "get nodes./metrics /n")
	r := start(t, c, nil, func(s *server.Server) {
		s.Handle("/weir/v1/explain", func(*http.Request) []rights.Right {
			return []rights.Right{rights.GetPod("web", "p"), rights.GetNode("n"), rights.GetNodeStats("n"), rights.GetNodeMetrics("n")}
		}, echo)
	})
	if got := r.get(t, "/weir/v1/explain", bearer(token)); got.code != 200 {
		t.Errorf("got %d %s, want 200", got.code, got.body)
	}
	want := []string{"u get pods.metrics.k8s.io web/p", "u get nodes.metrics.k8s.io /n", "u get nodes./stats /n", "u get nodes./metrics /n"}
	if got := c.asked(); !slices.Equal(got, want) {
		t.Errorf("asked %q\nwant  %q", got, want)
	}
}

// A handler asks for rights that only the body of a request shows. They are those of the caller, also of
// one that the API server names.
func TestHandlersAskForFurtherRights(t *testing.T) {
	c := newCluster(t)
	c.user("jane", "get pods.metrics.k8s.io web/p", "list queue.external.metrics.k8s.io web")
	c.user("eve", "get pods.metrics.k8s.io web/p")
	r := start(t, c, nil, func(s *server.Server) {
		s.Handle("/weir/v1/evaluate", func(*http.Request) []rights.Right { return []rights.Right{rights.GetPod("web", "p")} },
			http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				missing, err := rights.Missing(r.Context(), []rights.Right{{Verb: "list", Group: "external.metrics.k8s.io", Resource: "queue", Namespace: "web"}})
				fmt.Fprint(w, missing, err)
			}))
	})
	proxy := c.proxyCA.client(t, "front-proxy-client")
	for user, want := range map[string]string{"jane": "[] <nil>", "eve": "[list queue.external.metrics.k8s.io in namespace web] <nil>"} {
		for how, as := range map[string]asker{"a token": bearer("token-of-" + user), "the API server": behindProxy(proxy, user)} {
			if got := r.get(t, "/weir/v1/evaluate", as); got.code != 200 || got.body != want {
				t.Errorf("%s by %s: got %d %s, want 200 %s", user, how, got.code, got.body, want)
			}
		}
	}
}

func TestReviewSaysWhatIsMissing(t *testing.T) {
	for want, r := range map[string]rights.Right{
		"list pods.metrics.k8s.io in all namespaces":                 rights.ListPods(""),
		"list pods.metrics.k8s.io in namespace web":                  rights.ListPods("web"),
		`get pods.metrics.k8s.io "p" in namespace web`:               rights.GetPod("web", "p"),
		"list nodes.metrics.k8s.io":                                  rights.ListNodes(),
		`get nodes.metrics.k8s.io "n"`:                               rights.GetNode("n"),
		`get nodes/stats "n"`:                                        rights.GetNodeStats("n"),
		`get nodes/metrics "n"`:                                      rights.GetNodeMetrics("n"),
		`get nodes/eviction.weir.dev "n"`:                            {Verb: "get", Group: "weir.dev", Resource: "nodes", Subresource: "eviction", Name: "n"},
		"list pods in namespace web":                                 {Verb: "list", Resource: "pods", Namespace: "web"},
		"list horizontalpodautoscalers.autoscaling in namespace web": {Verb: "list", Group: "autoscaling", Resource: "horizontalpodautoscalers", Namespace: "web"},
	} {
		if got := r.String(); got != want {
			t.Errorf("%#v says %q, want %q", r, got, want)
		}
	}
}

func TestHealth(t *testing.T) {
	c := newCluster(t)
	var waits, ills atomic.Pointer[[]string]
	waits.Store(&[]string{"3 of 20 nodes have no rates yet", "the API server has not answered"})
	ills.Store(&[]string{})
	r := start(t, c, func(_ *server.Options, config *server.Config) {
		config.Ready = []server.HealthCheck{{Name: "nodes", WaitsFor: func() []string { return *waits.Load() }}}
		config.Alive = []server.HealthCheck{{Name: "rounds", WaitsFor: func() []string { return *ills.Load() }}}
	}, nil)
	expect := func(path string, code int, contains ...string) {
		t.Helper()
		got := r.get(t, path, nil)
		if got.code != code {
			t.Errorf("GET %s = %d\n%s\nwant %d", path, got.code, got.body, code)
		}
		for _, want := range contains {
			if !strings.Contains(got.body, want) {
				t.Errorf("GET %s lacks %q:\n%s", path, want, got.body)
			}
		}
	}
	expect("/livez", 200, "ok")
	expect("/healthz", 200, "ok")
	expect("/readyz", 500, "[+]ping ok\n", "[-]nodes: 3 of 20 nodes have no rates yet\n[-]nodes: the API server has not answered\n", "readyz check failed\n")
	waits.Store(&[]string{})
	expect("/readyz?verbose", 200, "[+]nodes ok\n", "[+]shutdown ok\n", "readyz check passed\n")
	ills.Store(&[]string{"no round for 5m"})
	expect("/livez", 500, "[-]rounds: no round for 5m\n")
	expect("/healthz", 500, "[-]rounds: no round for 5m\n")
	expect("/readyz", 200, "ok")
}

// admin is a user who may get all given paths.
func admin(c *fakeCluster, paths ...string) asker {
	var rights []string
	for _, path := range paths {
		rights = append(rights, "get "+path)
	}
	return bearer(c.user("admin", rights...))
}

// describeAPI and installAPI make an API of the Kubernetes form.
func describeAPI(_ *server.Options, config *server.Config) {
	config.OpenAPI = []common.GetOpenAPIDefinitions{definitions.GetOpenAPIDefinitions}
	config.Schemes = []*runtime.Scheme{apiserver.Scheme}
}

func installAPI(t *testing.T, s *server.Server) {
	t.Helper()
	if err := custommetrics.Install(s.Generic(), fake.NewProvider()); err != nil {
		t.Fatal(err)
	}
}

func TestDescribesItself(t *testing.T) {
	c := newCluster(t)
	paths := []string{"/", "/apis", "/version", "/openapi/v2", "/openapi/v3", "/openapi/v3/apis/custom.metrics.k8s.io/v1beta2",
		"/apis/custom.metrics.k8s.io/v1beta2"}
	as := admin(c, paths...)
	r := start(t, c, describeAPI, func(s *server.Server) {
		model(s)
		installAPI(t, s)
	})
	for path, want := range map[string]string{
		"/":           `"/metrics/cluster"`,
		"/apis":       `"name":"custom.metrics.k8s.io"`,
		"/version":    `"gitVersion": "v0.3.0"`,
		"/openapi/v2": `"version":"v0.3.0"`,
		"/openapi/v3": `"apis/custom.metrics.k8s.io/v1beta2"`,
		"/openapi/v3/apis/custom.metrics.k8s.io/v1beta2": `"kind":"MetricValueList"`,
		"/apis/custom.metrics.k8s.io/v1beta2":            `"kind":"APIResourceList"`,
	} {
		if got := r.get(t, path, as); got.code != 200 || !strings.Contains(got.body, want) {
			t.Errorf("GET %s = %d, want 200 with %s:\n%.600s", path, got.code, want, got.body)
		}
	}
	aggregated := r.get(t, "/apis", func(q *http.Request, c *tls.Config) {
		as(q, c)
		q.Header.Set("Accept", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
	})
	if aggregated.code != 200 || !strings.Contains(aggregated.body, `"kind":"APIGroupDiscoveryList"`) {
		t.Errorf("aggregated discovery = %d %.300s", aggregated.code, aggregated.body)
	}
}

func TestResourcesAreReviewedAsKubernetesDoes(t *testing.T) {
	c := newCluster(t)
	token := c.user("u", "get services.custom.metrics.k8s.io/queue web/*")
	r := start(t, c, describeAPI, func(s *server.Server) { installAPI(t, s) })
	const path = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/%s/pods/*/queue"
	got := r.get(t, fmt.Sprintf(path, "web"), bearer(token))
	if want := `pods.custom.metrics.k8s.io "*" is forbidden: User "u" cannot get resource "pods/queue" in API group "custom.metrics.k8s.io" in the namespace "web"`; got.code != 403 || got.message() != want {
		t.Errorf("got: %d %s\nwant: 403 %s", got.code, got.message(), want)
	}
	c.user("u", "get pods.custom.metrics.k8s.io/queue web/*")
	if got := r.get(t, fmt.Sprintf(path, "web"), bearer(token)); got.code != 200 || !strings.Contains(got.body, `"kind":"MetricValueList"`) {
		t.Errorf("got %d %s, want 200 and a list", got.code, got.body)
	}
}

func TestMetricsOfAllKinds(t *testing.T) {
	c := newCluster(t)
	own := prometheus.NewRegistry()
	own.MustRegister(collectors.NewGoCollector()) // the library has one too
	rounds := prometheus.NewCounter(prometheus.CounterOpts{Name: "weir_rounds_total", Help: "Rounds."})
	own.MustRegister(rounds)
	rounds.Add(42)
	r := start(t, c, func(_ *server.Options, config *server.Config) { config.Metrics = own }, nil)
	as := admin(c, "/metrics")
	r.get(t, "/apis/nothing/v1/things", as) // counted
	got := r.get(t, "/metrics", as)
	for _, want := range []string{"\nweir_rounds_total 42\n", "\napiserver_request_total{", "\nrest_client_requests_total{", "\ngo_goroutines "} {
		if !strings.Contains(got.body, want) {
			t.Errorf("/metrics = %d lacks %q", got.code, want)
		}
	}
	if n := strings.Count(got.body, "\ngo_goroutines "); n != 1 {
		t.Errorf("go_goroutines is there %d times, want once", n)
	}
}
