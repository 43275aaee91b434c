package app

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/weir-metrics/weir/api/explainapi"
	"github.com/weir-metrics/weir/api/replicas/leader"
	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/cluster/informer"
	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/internal/feature"
	"github.com/weir-metrics/weir/manager"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sinks/memory"
	"github.com/weir-metrics/weir/sinks/push"
)

// free returns an address where no server listens.
func free(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}

// reviewing is an API server that reviews rights. The name of a user is also the token.
type reviewing struct {
	apiServer
	rights map[string][]string // by user: "list pods shop", "get nodes/stats n1", "get /metrics"
}

func (a *reviewing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer := func(v any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v) // the client may have gone
	}
	switch r.URL.Path {
	case "/apis/authentication.k8s.io/v1/tokenreviews":
		var review authentication.TokenReview
		_ = json.NewDecoder(r.Body).Decode(&review)
		_, known := a.rights[review.Spec.Token]
		review.Status = authentication.TokenReviewStatus{Authenticated: known, User: authentication.UserInfo{Username: review.Spec.Token}}
		answer(review)
	case "/apis/authorization.k8s.io/v1/subjectaccessreviews":
		var review authorization.SubjectAccessReview
		_ = json.NewDecoder(r.Body).Decode(&review)
		var right string
		if at := review.Spec.ResourceAttributes; at != nil {
			right = strings.TrimSpace(at.Verb + " " + at.Resource + " " + at.Namespace)
			if at.Resource == "nodes" && at.Subresource != "" {
				right = at.Verb + " " + at.Resource + "/" + at.Subresource + " " + at.Name
			}
		} else {
			right = review.Spec.NonResourceAttributes.Verb + " " + review.Spec.NonResourceAttributes.Path
		}
		review.Status.Allowed = slices.Contains(a.rights[review.Spec.User], right)
		answer(review)
	default:
		a.apiServer.ServeHTTP(w, r)
	}
}

// pending is a pod that is not bound to a node.
func pending(namespace, name string) v1.Pod {
	return v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + name)},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "app"}}},
		Status:     v1.PodStatus{Phase: v1.PodPending},
	}
}

// A user who may read one namespace reads that one by every API, and no other one, whatever path or
// query is used.
func TestWhoMayRead(t *testing.T) {
	list := metav1.ListMeta{ResourceVersion: "1"}
	api := httptest.NewTLSServer(&reviewing{
		apiServer: apiServer{
			nodes: v1.NodeList{TypeMeta: metav1.TypeMeta{Kind: "NodeList", APIVersion: "v1"}, ListMeta: list,
				Items: []v1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}}}, // without an address
			pods: v1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, ListMeta: list, Items: []v1.Pod{
				pending("shop", "web"), pending("other", "vault"),
			}},
		},
		rights: map[string][]string{
			"shop": {
				"list pods shop", "get pods shop", "get horizontalpodautoscalers shop", "get autoscalers shop", "create evaluations shop",
				"list pods half", "get horizontalpodautoscalers rest", "get autoscalers rest", "create evaluations rest",
			},
			"all": {"list pods", "list nodes", "get /metrics", "get /apis", "get /apis/weir.dev/v1alpha1"},
			"eve": {},
		},
	})
	t.Cleanup(api.Close)
	_, port, err := net.SplitHostPort(free(t))
	if err != nil {
		t.Fatal(err)
	}
	w := begin(t, "server", "--kubeconfig="+kubeconfig(t, api, "secret"), "--bind-address=127.0.0.1", "--secure-port="+port,
		"--authentication-skip-lookup", "--shutdown-delay-duration=0s", "--metric-resolution=1s")
	w.client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	ask := func(method, path, token string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, w.url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := w.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(b)
	}
	const resources = "/apis/metrics.k8s.io/v1beta1"
	until(t, 20*time.Second, "pods are served", func() bool {
		status, _ := ask("GET", resources+"/namespaces/shop/pods", "shop")
		return status == http.StatusOK
	})
	for _, c := range []struct {
		method, path         string
		shop, all, eve, none int
	}{
		{"GET", resources + "/namespaces/shop/pods", 200, 403, 403, 401},
		{"GET", resources + "/namespaces/other/pods", 403, 403, 403, 401},
		{"GET", resources + "/pods", 403, 200, 403, 401},
		{"GET", resources + "/pods?fieldSelector=metadata.namespace%3Dshop", 403, 200, 403, 401},
		{"GET", resources + "/namespaces/shop/pods/../../other/pods", 404, 403, 403, 401},
		{"GET", resources + "/namespaces/shop%2F..%2Fother/pods", 403, 403, 403, 401},
		{"GET", resources + "/nodes", 403, 200, 403, 401},
		{"POST", resources + "/namespaces/shop/pods", 403, 403, 403, 401},

		{"GET", weirdev.Path + "namespaces/shop/pods", 200, 403, 403, 401},
		{"HEAD", weirdev.Path + "namespaces/shop/pods", 200, 403, 403, 401},
		{"POST", weirdev.Path + "namespaces/shop/pods", 405, 403, 403, 401},
		{"GET", weirdev.Path + "namespaces/shop/containers?metrics=*&limit=500", 200, 403, 403, 401},
		{"GET", weirdev.Path + "namespaces/other/pods", 403, 403, 403, 401},
		{"GET", weirdev.Path + "namespaces/shop/pods?namespace=other", 403, 400, 403, 401},
		{"GET", weirdev.Path + "namespaces/*/pods", 403, 400, 403, 401},
		{"GET", weirdev.Path + "namespaces/sho%3F/pods", 403, 400, 403, 401},
		{"GET", weirdev.Path + "namespaces/shop%2F..%2Fother/pods", 403, 400, 403, 401},
		{"GET", weirdev.Path + "namespaces/shop/../other/pods", 403, 403, 403, 401},
		{"GET", weirdev.Path + "namespaces/shop/nodes", 403, 403, 403, 401},
		{"GET", weirdev.Path + "namespaces/shop/pods/web", 404, 403, 403, 401},
		{"GET", weirdev.Path + "pods?namespace=shop", 200, 403, 403, 401},
		{"GET", weirdev.Path + "cgroups?namespace=shop", 403, 200, 403, 401},
		{"GET", weirdev.Path + "nodes?namespace=shop", 403, 200, 403, 401},
		{"GET", weirdev.Path + "pods", 403, 200, 403, 401},
		{"GET", weirdev.Path + "pods?namespace=", 403, 200, 403, 401},
		{"GET", weirdev.Path + "pods?namespace=sho*", 403, 200, 403, 401},
		{"GET", weirdev.Path + "pods?namespace=%2A", 403, 200, 403, 401},
		{"GET", weirdev.Path + "pods?namespace=shop&namespace=other", 403, 400, 403, 401},
		{"GET", weirdev.Path + "pods?namespace=shop;namespace=other", 403, 400, 403, 401},
		{"GET", weirdev.Path + "pods?Namespace=shop", 403, 400, 403, 401},
		{"GET", weirdev.Path + "%70ods?namespace=shop", 403, 404, 403, 401},
		{"GET", weirdev.Path + "pods/?namespace=shop", 403, 404, 403, 401},
		{"GET", "/apis/weir.dev//v1alpha1/pods?namespace=shop", 403, 403, 403, 401},

		{"GET", weirdev.Path + "namespaces/shop/pods/web/explanation", 200, 403, 403, 401},
		{"GET", weirdev.Path + "namespaces/shop/pods/web/explanation?container=app", 200, 403, 403, 401},
		{"GET", weirdev.Path + "namespaces/shop/pods/web/explanation?container=nope", 404, 403, 403, 401},
		{"GET", weirdev.Path + "namespaces/shop/pods/nope/explanation", 404, 403, 403, 401},
		{"GET", weirdev.Path + "namespaces/shop/pods/web/explanation?pod=other", 403, 400, 403, 401},
		{"PUT", weirdev.Path + "namespaces/shop/pods/web/explanation", 405, 403, 403, 401},
		{"GET", weirdev.Path + "namespaces/other/pods/vault/explanation", 403, 403, 403, 401},
		{"GET", weirdev.Path + "namespaces/shop/pods/../../other/pods/vault/explanation", 404, 403, 403, 401},
		{"GET", weirdev.Path + "namespaces/shop%2F..%2Fother/pods/vault/explanation", 403, 403, 403, 401},
		{"GET", weirdev.Path + "nodes/n1/explanation", 403, 403, 403, 401}, // the right to list nodes does not include get
		{"GET", weirdev.Path + "namespaces/shop/missing", 200, 403, 403, 401},
		{"GET", weirdev.Path + "namespaces/other/missing", 403, 403, 403, 401},
		{"GET", weirdev.Path + "namespaces/shop/missing?namespace=other", 403, 400, 403, 401},
		{"GET", weirdev.Path + "missing", 403, 200, 403, 401},
		{"GET", weirdev.Path + "missing?namespace=shop", 403, 400, 403, 401},
		{"GET", "/apis/weir.dev/v1alpha1", 403, 200, 403, 401},

		{"GET", weirdev.Path + "namespaces/shop/horizontalpodautoscalers/web/explanation", 404, 403, 403, 401},
		{"GET", weirdev.Path + "namespaces/shop/autoscalers/web/explanation", 404, 403, 403, 401},
		{"POST", weirdev.Path + "namespaces/shop/autoscalers/web/explanation", 405, 403, 403, 401},
		{"POST", weirdev.Path + "namespaces/shop/evaluations", 400, 403, 403, 401}, // an empty manifest
		{"POST", weirdev.Path + "namespaces/shop/evaluations?at=5m&replicas=3", 400, 403, 403, 401},
		{"POST", weirdev.Path + "namespaces/shop/evaluations?namespace=other", 403, 400, 403, 401},
		{"GET", weirdev.Path + "namespaces/shop/evaluations", 405, 403, 403, 401},
		{"GET", weirdev.Path + "namespaces/half/horizontalpodautoscalers/web/explanation", 403, 403, 403, 401}, // the right to pods, but not to the autoscaler
		{"GET", weirdev.Path + "namespaces/half/autoscalers/web/explanation", 403, 403, 403, 401},
		{"POST", weirdev.Path + "namespaces/half/evaluations", 403, 403, 403, 401},
		{"GET", weirdev.Path + "namespaces/rest/horizontalpodautoscalers/web/explanation", 403, 403, 403, 401}, // the right to the autoscaler, but not to pods
		{"GET", weirdev.Path + "namespaces/rest/autoscalers/web/explanation", 403, 403, 403, 401},
		{"POST", weirdev.Path + "namespaces/rest/evaluations", 403, 403, 403, 401},
		{"GET", weirdev.Path + "namespaces/other/horizontalpodautoscalers/web/explanation", 403, 403, 403, 401},
		{"POST", weirdev.Path + "namespaces/other/evaluations", 403, 403, 403, 401},
		{"POST", weirdev.Path + "namespaces/shop/../other/evaluations", 403, 403, 403, 401},
		{"GET", weirdev.Path + "namespaces/shop%2F..%2Fother/autoscalers/web/explanation", 403, 403, 403, 401},

		{"GET", "/api/v1/model/namespaces/shop/pods", 200, 403, 403, 401},
		{"GET", "/api/v1/model/namespaces/other/pods", 403, 403, 403, 401},
		{"GET", "/api/v1/model/namespaces/shop/../other/pods", 403, 403, 403, 401},
		{"GET", "/api/v1/model/namespaces/shop%2f..%2fother/pods", 403, 403, 403, 401},
		{"GET", "/api/v1/model//namespaces/shop/pods", 403, 403, 403, 401},
		{"GET", "/api/v1/model/namespaces", 403, 200, 403, 401},
		{"GET", "/api/v1/model/nodes", 403, 200, 403, 401},
		{"GET", "/api/v1/model/nodes/n1/pods", 403, 200, 403, 401},
		{"GET", "/api/v1/model/debug/allkeys", 403, 200, 403, 401},
		{"GET", "/api/v1/metric-export", 403, 200, 403, 401},
		{"GET", "/apis/metrics/v1alpha1/namespaces/shop/pods", 200, 403, 403, 401},
		{"GET", "/apis/metrics/v1alpha1/pods", 403, 200, 403, 401},

		{"GET", "/ui/", 403, 200, 403, 401},
		{"GET", "/ui", 403, 200, 403, 401},
		{"GET", "/ui/?namespace=shop", 200, 403, 403, 401},
		{"GET", "/ui/?pod=shop/web", 200, 403, 403, 401},
		{"GET", "/ui/?container=shop/web/app", 200, 403, 403, 401},
		{"GET", "/ui/?namespace=other", 403, 403, 403, 401},
		{"GET", "/ui/?pod=other/vault", 403, 403, 403, 401},
		{"GET", "/ui/?pod=shop/web&namespace=other", 403, 403, 403, 401},
		{"GET", "/ui/?pod=shop/../other/vault", 403, 403, 403, 401},
		{"GET", "/ui/?pod=shop/web;pod=other/vault", 403, 403, 403, 401},
		{"GET", "/ui/?Namespace=shop", 403, 403, 403, 401},
		{"GET", "/ui/?namespace=shop&list=cgroups", 200, 403, 403, 401},
		{"GET", "/ui/?q=shop", 403, 200, 403, 401},
		{"GET", "/ui/?node=n1", 403, 200, 403, 401},
		{"GET", "/ui/?eviction=n1", 403, 403, 403, 401}, // it also needs get nodes/eviction
		{"GET", "/ui/?sources", 403, 200, 403, 401},
		{"GET", "/apis/weir.dev/v1alpha1/ui?namespace=shop", 200, 403, 403, 401},
		{"GET", "/apis/weir.dev/v1alpha1/ui/?namespace=shop", 200, 403, 403, 401},
		{"GET", "/apis/weir.dev/v1alpha1/ui/?missing", 403, 200, 403, 401},

		{"GET", "/metrics/cluster", 403, 200, 403, 401},
		{"GET", "/metrics", 403, 200, 403, 401},
		{"GET", "/livez", 200, 200, 200, 200},
		{"GET", "/livez/ping", 403, 403, 403, 401},
		{"GET", "/apis", 403, 200, 403, 401},
	} {
		for token, want := range map[string]int{"shop": c.shop, "all": c.all, "eve": c.eve, "": c.none} {
			if got, body := ask(c.method, c.path, token); got != want {
				t.Errorf("%s %s by %q: got %d %s\nwant %d", c.method, c.path, token, got, body, want)
			}
		}
	}
	// Everyone can see what /readyz waits for, so it contains no address and no name.
	if status, body := ask("GET", "/readyz", ""); status == http.StatusInternalServerError && (!strings.Contains(body, "[-]metric-storage-ready: ") || strings.Contains(body, "n1")) {
		t.Errorf("GET /readyz = %d %s", status, body)
	}
	// The checks have the names of metrics-server's, which probes and scripts know.
	for path, check := range map[string]string{"/livez": "metric-collection-timely", "/healthz": "metric-collection-timely", "/readyz": "metric-storage-ready"} {
		if _, body := ask("GET", path+"?verbose", ""); !strings.Contains(body, "]"+check) {
			t.Errorf("GET %s?verbose has no check %s:\n%s", path, check, body)
		}
	}
}

// The leader counts the sources that it has read of late, for the comparison with other replicas.
func TestFreshReads(t *testing.T) {
	now := time.Now()
	at := func(ago time.Duration, err error) manager.SourceStatus {
		return manager.SourceStatus{Interval: 15 * time.Second, Succeeded: now.Add(-ago), Err: err}
	}
	all := []manager.SourceStatus{
		at(time.Second, nil), at(30*time.Second, nil), // these count
		at(time.Minute, nil), at(time.Second, errors.New("refused")), {Interval: 15 * time.Second},
	}
	if got := freshReads(all, now); got != 2 {
		t.Errorf("%d sources count as read, want 2", got)
	}
}

// While the API server is away, the last leader still sends, and no replica acts. A replica that has
// seen no leader does not send.
func TestLastLeaderSends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := fake.NewClientset()
		var away atomic.Bool
		api.PrependReactor("*", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
			return away.Load(), nil, errors.New("connection refused")
		})
		ctx, cancel := context.WithCancel(t.Context())
		var electors sync.WaitGroup
		replica := func(name string) (w *weirProcess, sends func() bool) {
			w = newProcess(&plan{features: newFeatures()}, io.Discard, zap.NewNop())
			elector, err := leader.New(leader.Options{
				Client: api.CoordinationV1(), Namespace: "weir", Name: "weir", Identity: name, Address: name, Certificate: []byte("c"),
			})
			if err != nil {
				t.Fatal(err)
			}
			w.Leader = elector
			electors.Go(func() { _ = elector.Run(ctx) })
			var o push.Options
			w.pushOptions(&o)
			return w, o.IsLeader
		}
		a, aSends := replica("a")
		time.Sleep(time.Minute)
		_, bSends := replica("b")
		time.Sleep(time.Minute)
		away.Store(true)
		_, cSends := replica("c")
		time.Sleep(time.Minute)
		if !aSends() || bSends() || cSends() {
			t.Errorf("without API server: a sends %t, b %t, c %t; want a alone", aSends(), bSends(), cSends())
		}
		if a.IsLeader() {
			t.Error("the last leader acts without API server")
		}
		cancel()
		electors.Wait()
	})
}

// If a part cannot be opened, no port stays open.
func TestOpenUndoesWhatFailed(t *testing.T) {
	api := httptest.NewTLSServer(http.NotFoundHandler())
	defer api.Close()
	plain, secure := free(t), free(t)
	_, port, err := net.SplitHostPort(secure)
	if err != nil {
		t.Fatal(err)
	}
	usual := []string{"--kubeconfig=" + kubeconfig(t, api, "secret"), "--listen=" + plain, "--bind-address=127.0.0.1", "--secure-port=" + port,
		"--authentication-skip-lookup"} // for the lookup the library would start goroutines that it does not end
	for want, args := range map[string][]string{
		"read the rules of metrics: ":                          {"--external-rules=nosuch"},
		"open the secured server: set up audit: ":              {"--audit-policy-file=nosuch"},
		"open the secured server: read serving certificate no": {"--tls-cert-file=nosuch", "--tls-private-key-file=nosuch"},
	} {
		_, err := open(t.Context(), planOf(t, false, append(slices.Clone(usual), args...)...), io.Discard, zap.NewNop())
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: got %v, want %s...", args, err, want)
		}
		for _, address := range []string{plain, secure} {
			if conn, err := net.Dial("tcp", address); err == nil {
				conn.Close()
				t.Errorf("%q: the port of %s is still open", args, address)
			}
		}
	}
}

// The rules of external metrics are read without the secured server, too: decisions about autoscalers
// use them.
func TestExternalRulesWithoutSecurePort(t *testing.T) {
	api := httptest.NewTLSServer(http.NotFoundHandler())
	defer api.Close()
	_, err := open(t.Context(), planOf(t, false, "--kubeconfig="+kubeconfig(t, api, "secret"), "--listen="+free(t), "--external-rules=nosuch"), io.Discard, zap.NewNop())
	if want := "read the rules of metrics: "; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("without --secure-port: got %v, want %s...", err, want)
	}
}

// An API server that does not answer does not prevent weir from ending.
func TestEndsWhileItStarts(t *testing.T) {
	asked := make(chan struct{})
	api := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/extension-apiserver-authentication") {
			close(asked)
			<-r.Context().Done()
		}
		http.Error(w, "no", http.StatusTeapot)
	}))
	defer api.Close()
	_, port, err := net.SplitHostPort(free(t))
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), os.Args[0])
	command.Env = append(os.Environ(), asWeir+"=server --kubeconfig="+kubeconfig(t, api, "secret")+" --bind-address=127.0.0.1 --secure-port="+port)
	var out notes
	command.Stdout, command.Stderr = &out, &out
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	select {
	case <-asked:
	case err := <-ended:
		t.Fatalf("ended before it was told to: %v\n%s", err, out.String())
	}
	if err := command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("ended with %v: %s", err, out.String())
		}
	case <-time.After(10 * time.Second):
		t.Error("it has not ended 10s after it was told to")
	}
}

// A weir that serves nothing also ends when its context ends.
func TestEndsWithoutAFront(t *testing.T) {
	begin(t, "server", "--source=kubelet:?targets=127.0.0.1:1", "--listen=")
}

// An API server that has not answered yet is different from no API server.
func TestFactsBeforeTheFirstAnswer(t *testing.T) {
	if facts := newProcess(&plan{features: newFeatures()}, io.Discard, zap.NewNop()).Facts(); facts != nil {
		t.Errorf("without a cluster: got %v, want nil", facts)
	}
	api := httptest.NewTLSServer(http.NotFoundHandler())
	defer api.Close()
	c, err := informer.New(informer.Options{Kubeconfig: kubeconfig(t, api, "secret")})
	if err != nil {
		t.Fatal(err)
	}
	w := newProcess(&plan{features: newFeatures()}, io.Discard, zap.NewNop())
	w.Cluster = &feature.Cluster{Cluster: c}
	if facts := w.Facts(); facts == nil || facts.Synced {
		t.Errorf("of a cluster that said nothing: got %v, want facts that are not synced", facts)
	}
}

// The error of a node's read contains addresses. It is part of the answer about the node, not of
// those about its pods, which other users may read.
func TestPodsSayNothingOfAddresses(t *testing.T) {
	sink := memory.New(memory.Options{})
	now := time.Now()
	const address = "192.0.2.1:10250"
	readErr := &metric.ReadError{Reason: metric.NodeUnreachable, Err: errors.New("dial tcp " + address + ": refused")}
	b := &metric.Batch{Source: "kubelet:resource", Node: "n1", Interval: time.Second, Began: now, Ended: now, Err: readErr}
	for _, e := range []metric.Entity{
		{Kind: metric.Node, Node: "n1"},
		{Kind: metric.Pod, Node: "n1", Namespace: "shop", Pod: "web"},
		{Kind: metric.Container, Node: "n1", Namespace: "shop", Pod: "web", Name: "app"},
	} {
		b.Verdicts = append(b.Verdicts, metric.Verdict{Entity: e, Group: metric.CPU, Reason: readErr.Reason, Evidence: metric.Evidence{Err: readErr}})
	}
	if err := sink.Write(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	v := apiView{Snapshot: sink.Snapshot()}
	for name, verdicts := range map[string]iter.Seq2[metric.Verdict, time.Time]{"all": v.Verdicts(), "of the node": v.VerdictsOn("n1")} {
		said := map[metric.Kind]bool{}
		for v := range verdicts {
			said[v.Entity.Kind] = v.Evidence.Err != nil
		}
		if len(said) != 3 || !said[metric.Node] || said[metric.Pod] || said[metric.Container] {
			t.Errorf("of the verdicts, %s, the error is said of %v, want it of the node alone", name, said)
		}
	}

	var facts *cluster.Facts
	facts = facts.With(cluster.FactsChange{Synced: true, At: now, Nodes: []*cluster.Node{{Name: "n1"}}, Pods: []*cluster.Pod{{
		PodRef: metric.PodRef{Namespace: "shop", Name: "web"}, Node: "n1", Phase: cluster.Running,
		Containers: []cluster.Container{{Name: "app", State: cluster.StateRunning}},
	}}})
	explainer := func() *explain.Explainer {
		return &explain.Explainer{Now: time.Now(), Facts: facts, View: v, Sources: sourceStates([]manager.SourceStatus{
			{Name: "kubelet:resource/n1", Kind: "kubelet:resource", Node: "n1", Began: now, Err: readErr},
		})}
	}
	h := explainapi.NewHandler(explainer)
	for path, want := range map[string]bool{
		"nodes/n1/explanation":                               true,
		"namespaces/shop/pods/web/explanation":               false,
		"namespaces/shop/pods/web/explanation?container=app": false,
		"namespaces/shop/missing":                            false,
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, weirdev.Path+path, nil))
		body := w.Body.String()
		if w.Code != http.StatusOK || !strings.Contains(body, "NodeUnreachable") || strings.Contains(body, address) != want {
			t.Errorf("%s: got %d %s\nwant NodeUnreachable, and whether it names the address: %v", path, w.Code, body, want)
		}
	}
}
