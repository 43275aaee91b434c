package app

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-metrics/weir/api/usage"
	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/metric"
)

// apiServer serves the nodes and pods of a cluster in which nothing changes.
type apiServer struct {
	nodes v1.NodeList
	pods  v1.PodList
}

func (a *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var list any
	switch r.URL.Path {
	case "/api/v1/nodes":
		list = &a.nodes
	case "/api/v1/pods":
		list = &a.pods
	default:
		http.NotFound(w, r)
		return
	}
	query := r.URL.Query()
	w.Header().Set("Content-Type", "application/json")
	switch {
	case query.Get("sendInitialEvents") != "": // API servers before 1.27 can only list
		w.WriteHeader(http.StatusUnprocessableEntity)
		list = &metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Reason: metav1.StatusReasonInvalid, Code: http.StatusUnprocessableEntity}
	case query.Get("watch") != "":
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		return
	}
	// A write fails only when the client has gone.
	_ = json.NewEncoder(w).Encode(list)
}

// kubeconfig writes a kubeconfig for a server with a token.
func kubeconfig(t *testing.T, server *httptest.Server, token string) string {
	t.Helper()
	dir := t.TempDir()
	ca := filepath.Join(dir, "ca.crt")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "kubeconfig")
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: %q, certificate-authority: ca.crt}}]
users: [{name: u, user: {token: %s}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`, server.URL, token)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// addressOf returns the host and the port of a server.
func addressOf(t *testing.T, s *httptest.Server) (host string, port int32) {
	t.Helper()
	at, ok := s.Listener.Addr().(*net.TCPAddr)
	if !ok {
		t.Fatalf("the server listens on %s", s.Listener.Addr())
	}
	return at.IP.String(), int32(at.Port)
}

// Kubelets see tokens of the account of --kubelet-account, and nothing that the API server is shown.
func TestKubeletsSeeTheirAccount(t *testing.T) {
	var mu sync.Mutex
	shown := map[string]bool{}
	kubelet := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		shown[r.Header.Get("Authorization")] = true
		mu.Unlock()
		fmt.Fprintf(w, "node_memory_working_set_bytes 1000 %d\n", time.Now().UnixMilli())
	}))
	t.Cleanup(kubelet.Close)
	host, port := addressOf(t, kubelet)
	list := metav1.ListMeta{ResourceVersion: "1"}
	objects := &apiServer{
		nodes: v1.NodeList{TypeMeta: metav1.TypeMeta{Kind: "NodeList", APIVersion: "v1"}, ListMeta: list, Items: []v1.Node{{
			ObjectMeta: metav1.ObjectMeta{Name: "n1"},
			Status: v1.NodeStatus{
				Addresses:       []v1.NodeAddress{{Type: "InternalIP", Address: host}},
				DaemonEndpoints: v1.NodeDaemonEndpoints{KubeletEndpoint: v1.DaemonEndpoint{Port: port}},
			},
		}}},
		pods: v1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, ListMeta: list},
	}
	api := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.URL.Path != "/api/v1/namespaces/weir-system/serviceaccounts/reader/token" {
			objects.ServeHTTP(w, r)
			return
		}
		if got := r.Header.Get("Authorization"); got != "Bearer secret" {
			t.Errorf("a token was requested by %q", got)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		io.WriteString(w, `{"kind":"TokenRequest","apiVersion":"authentication.k8s.io/v1","spec":{"expirationSeconds":3600},"status":{"token":"of-the-reader"}}`)
	}))
	t.Cleanup(api.Close)
	w := begin(t, "server", "--listen=127.0.0.1:0", "--kubeconfig="+kubeconfig(t, api, "secret"), "--metric-resolution=1s",
		"--kubelet-account=weir-system/reader", "--source=kubelet:", "--source=kubelet:?endpoint=cadvisor", "--secure-port=0")
	nodes := map[metric.NodeName]usage.Item{}
	until(t, 20*time.Second, "memory of n1", func() bool {
		w.readNodes(t, nodes)
		return nodes["n1"].Memory != nil
	})
	mu.Lock()
	defer mu.Unlock()
	if len(shown) != 1 || !shown["Bearer of-the-reader"] {
		t.Errorf("the kubelet was shown %v, want only the token of the account", shown)
	}
}

// metrics-server's flags are enough to read a cluster: its nodes by address, port, path and
// credentials. A node that the selector excludes has its reason, and so do the pods on it.
func TestServerOfCluster(t *testing.T) {
	var mu sync.Mutex
	asked := map[string]bool{}
	kubelet := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked[r.URL.RequestURI()+" "+r.Header.Get("Authorization")] = true
		mu.Unlock()
		now := time.Now()
		fmt.Fprintf(w, "node_cpu_usage_seconds_total %f %d\nnode_memory_working_set_bytes 1000 %[2]d\n",
			float64(now.UnixMilli()%1e6)/2000, now.UnixMilli())
	}))
	t.Cleanup(kubelet.Close)
	host, port := addressOf(t, kubelet)
	node := func(name, system string, annotations map[string]string) v1.Node {
		return v1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"kubernetes.io/os": system}, Annotations: annotations},
			Status: v1.NodeStatus{
				Addresses:       []v1.NodeAddress{{Type: "InternalIP", Address: "192.0.2.1"}, {Type: "Hostname", Address: host}},
				DaemonEndpoints: v1.NodeDaemonEndpoints{KubeletEndpoint: v1.DaemonEndpoint{Port: port}},
				Conditions:      []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}},
			},
		}
	}
	web := v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", UID: "u1"},
		Spec:       v1.PodSpec{NodeName: "gate", Containers: []v1.Container{{Name: "app"}}},
		Status: v1.PodStatus{Phase: v1.PodRunning, ContainerStatuses: []v1.ContainerStatus{
			{Name: "app", State: v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: metav1.Now()}}},
		}},
	}
	list := metav1.ListMeta{ResourceVersion: "1"}
	api := httptest.NewTLSServer(&apiServer{
		nodes: v1.NodeList{TypeMeta: metav1.TypeMeta{Kind: "NodeList", APIVersion: "v1"}, ListMeta: list, Items: []v1.Node{
			node("plain", "linux", nil),
			node("virtual", "linux", map[string]string{"metrics.k8s.io/resource-metrics-path": "/metrics/virtual"}),
			node("odd", "linux", map[string]string{"metrics.k8s.io/resource-metrics-path": "what?"}),
			node("gate", "windows", nil),
		}},
		pods: v1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, ListMeta: list, Items: []v1.Pod{web}},
	})
	t.Cleanup(api.Close)

	w := begin(t, "server", "--listen=127.0.0.1:0", "--kubeconfig="+kubeconfig(t, api, "secret"), "--metric-resolution=1s",
		"--kubelet-preferred-address-types=Hostname,InternalIP", "--kubelet-use-node-status-port", "--kubelet-request-timeout=5s",
		"--node-selector=kubernetes.io/os=linux", "--logging-format=json", "--secure-port=0")

	nodes := map[metric.NodeName]usage.Item{}
	until(t, 20*time.Second, "memory of three nodes and a reason for the fourth", func() bool {
		w.readNodes(t, nodes)
		return nodes["plain"].Memory != nil && nodes["virtual"].Memory != nil && nodes["odd"].Memory != nil && len(nodes["gate"].Reasons) > 0
	})
	const reason = `its labels do not match the node selector "kubernetes.io/os=linux"`
	if r := nodes["gate"].Reasons[0]; r.Reason != "NodeExcluded" || !strings.Contains(r.Message, reason) {
		t.Errorf("gate, which the selector leaves out, has reason %s (%s), want NodeExcluded because %s", r.Reason, r.Message, reason)
	}
	_, body := w.get(t, weirdev.Path+"pods")
	var pods usage.List
	if err := json.Unmarshal([]byte(body), &pods); err != nil || len(pods.Items) != 1 || len(pods.Items[0].Reasons) == 0 {
		t.Fatalf("pods: got %s, %v; want shop/web and why it has no number", body, err)
	}
	if r := pods.Items[0].Reasons[0]; r.Reason != "NodeExcluded" {
		t.Errorf("shop/web, whose node is left out, has reason %s (%s), want NodeExcluded", r.Reason, r.Message)
	}
	// An explanation is made from the view, the facts and the states of the sources.
	if got := w.explain(t, "pod", "shop/web"); len(got.Findings) == 0 || got.Findings[0].Reason != "NodeExcluded" {
		t.Errorf("weir explain pod shop/web: %+v, want NodeExcluded", got)
	}
	if got := w.explain(t, "node", "plain"); len(got.Reads) != 1 || got.Reads[0].Source != "kubelet:resource" || got.Reads[0].Due.IsZero() {
		t.Errorf("weir explain node plain: %+v, want how its kubelet is read", got.Reads)
	}
	// Readiness does not wait for excluded nodes.
	until(t, 20*time.Second, "readiness", func() bool {
		status, _ := w.get(t, "/readyz")
		return status == http.StatusOK
	})
	if _, body := w.get(t, "/metrics"); !strings.Contains(body, `weir_sources{kind="kubelet:resource"} 3`) || strings.Contains(body, `weir_sources_failing{kind="excluded"} 1`) {
		t.Error("the node that is left out counts as a source, or as failing")
	}

	mu.Lock()
	defer mu.Unlock()
	for _, want := range []string{"/metrics/resource Bearer secret", "/metrics/virtual Bearer secret"} {
		if !asked[want] {
			t.Errorf("no kubelet was asked for %q; they were asked for %v", want, asked)
		}
		delete(asked, want)
	}
	if len(asked) > 0 {
		t.Errorf("kubelets were asked for %v besides", asked)
	}
	log := w.stderr.String()
	if n := strings.Count(log, `"node":"odd"`); n != 1 || !strings.Contains(log, "it is not a path") {
		t.Errorf("%d lines about node odd, whose annotation is no path, want one:\n%s", n, log)
	}
	if strings.Contains(log, `"node":"gate"`) {
		t.Errorf("the log speaks of node gate, which is left out on purpose:\n%s", log)
	}
}
