package app

import (
	"crypto/tls"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/weir-metrics/weir/api/nodeapi"
	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/cluster/informer"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/kubelet"
)

func nodeFactsOf(nodes ...v1.Node) *cluster.Facts {
	return informer.FactsFromList(&v1.NodeList{Items: nodes}, nil, time.Unix(1, 0))
}

func nodeAt(name string, addresses ...v1.NodeAddress) v1.Node {
	return v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: v1.NodeStatus{Addresses: addresses}}
}

func TestAgentURL(t *testing.T) {
	facts := nodeFactsOf(
		nodeAt("n1", v1.NodeAddress{Type: v1.NodeInternalIP, Address: "192.0.2.1"}, v1.NodeAddress{Type: v1.NodeHostName, Address: "host-1"}),
		nodeAt("n6", v1.NodeAddress{Type: v1.NodeInternalIP, Address: "2001:db8::6"}),
		nodeAt("n0"),
	)
	for _, test := range []struct {
		node  metric.NodeName
		types []string
		want  string
	}{
		{"n1", kubelet.DefaultAddressTypes(), "https://192.0.2.1:10290"}, // the same address as its kubelet
		{"n1", []string{"Hostname", "InternalIP"}, "https://host-1:10290"},
		{"n6", kubelet.DefaultAddressTypes(), "https://[2001:db8::6]:10290"},
	} {
		a := &agentsPlan{Port: 10290, AddressTypes: test.types}
		if got, err := a.url(facts, test.node); got != test.want || err != nil {
			t.Errorf("%s by %v: %q, %v; want %q", test.node, test.types, got, err, test.want)
		}
	}
	a := &agentsPlan{Port: 10290, AddressTypes: []string{"InternalIP"}}
	if _, err := a.url(facts, "n9"); !errors.Is(err, nodeapi.ErrUnknown) {
		t.Errorf("a node nobody knows: %v, want ErrUnknown", err)
	}
	for _, f := range []*cluster.Facts{nil, {}} {
		if _, err := a.url(f, "n1"); err == nil || errors.Is(err, nodeapi.ErrUnknown) {
			t.Errorf("before nodes were listed: %v, want that they are not known yet", err)
		}
	}
	if _, err := a.url(facts, "n0"); err == nil || !strings.Contains(err.Error(), "none of its 0 addresses") {
		t.Errorf("a node without addresses: %v", err)
	}
}

// TestNodeTransportShowsItsTokenToWhomItTrusts calls an agent with the token for the API server.
// The token must reach the agent only if the flags trust its certificate.
func TestNodeTransportShowsItsTokenToWhomItTrusts(t *testing.T) {
	var seen string
	agent := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen = r.Header.Get("Authorization") }))
	agent.Config.ErrorLog = log.New(io.Discard, "", 0) // handshakes fail when the client does not trust the agent
	agent.StartTLS()
	defer agent.Close()
	file := func(name string, certificate []byte) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	agents := file("ca", agent.Certificate().Raw)
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("s3cret"), 0o600); err != nil {
		t.Fatal(err)
	}
	// The API server has another certificate and another name.
	kube := &rest.Config{Host: "https://api.test", BearerTokenFile: token, TLSClientConfig: rest.TLSClientConfig{ServerName: "api.test", CAData: []byte("none")}}
	for _, test := range []struct {
		what     string
		ca       string
		insecure bool
		want     string
	}{
		{"blindly", "", true, "Bearer s3cret"},
		{"by its certificate", agents, false, "Bearer s3cret"},
	} {
		seen = ""
		carrier, err := nodeTransport(kube, test.ca, test.insecure)
		if err != nil {
			t.Fatalf("%s: %v", test.what, err)
		}
		response, err := (&http.Client{Transport: carrier}).Get(agent.URL)
		if err != nil || seen != test.want {
			t.Errorf("%s: %v, shown %q; want %q", test.what, err, seen, test.want)
		}
		if err == nil {
			response.Body.Close()
		}
	}
	// If the API server's certificate is not verified, those of agents still are.
	kube.CAData, kube.Insecure, seen = nil, true, ""
	carrier, err := nodeTransport(kube, "", false)
	if err != nil {
		t.Fatal(err)
	}
	_, err = (&http.Client{Transport: carrier}).Get(agent.URL)
	var distrust *tls.CertificateVerificationError
	if !errors.As(err, &distrust) || seen != "" {
		t.Errorf("an agent nobody vouches for: %v, shown %q; want no trust and no token", err, seen)
	}
	if _, err := nodeTransport(kube, token, false); err == nil || !strings.Contains(err.Error(), "has none in PEM") {
		t.Errorf("certificates that are none: %v", err)
	}
	if kube.ServerName != "api.test" || !kube.Insecure {
		t.Error("the API server's own trust has changed")
	}
}

// TestServerAsksAgents asks a server about a node, and the agent of the node answers.
func TestServerAsksAgents(t *testing.T) {
	shown := ""
	agent := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if shown = r.Header.Get("Authorization"); r.URL.Path != weirdev.Path+"nodes/n1/podcgroups" {
			t.Errorf("asked %s", r.URL.Path)
		}
		_, _ = io.WriteString(w, `{"pods":1}`)
	}))
	defer agent.Close()
	host, port, err := net.SplitHostPort(agent.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, []byte(`{"kind":"Config","clusters":[{"name":"c","cluster":{"server":"https://api.test"}}],
"users":[{"name":"u","user":{"token":"s3cret"}}],"contexts":[{"name":"x","context":{"cluster":"c","user":"u"}}],"current-context":"x"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	facts := nodeFactsOf(nodeAt("n1", v1.NodeAddress{Type: v1.NodeInternalIP, Address: host}))
	ask := func(p *plan, name string) (int, string) {
		t.Helper()
		h, err := newAgents(p, func() *cluster.Facts { return facts })
		if err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, weirdev.Path+"nodes/"+name+"/podcgroups", nil))
		return w.Code, strings.Join(strings.Fields(w.Body.String()), "")
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	p := &plan{Cluster: &informer.Options{Kubeconfig: kubeconfig}, Agents: &agentsPlan{Port: number, Insecure: true, AddressTypes: []string{"InternalIP"}}}
	if status, body := ask(p, "n1"); status != http.StatusOK || body != `{"pods":1}` || shown != "Bearer s3cret" {
		t.Errorf("n1: %d %s, shown %q; want what its agent says, who sees the kubeconfig's token", status, body, shown)
	}
	p.Agents.TokenFile = filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(p.Agents.TokenFile, []byte("for agents"), 0o600); err != nil {
		t.Fatal(err)
	}
	if status, _ := ask(p, "n1"); status != http.StatusOK || shown != "Bearer for agents" {
		t.Errorf("n1: %d, shown %q; want that its agent sees the token for agents and no other", status, shown)
	}
	if status, _ := ask(p, "n2"); status != http.StatusNotFound {
		t.Errorf("a node nobody knows: %d, want 404", status)
	}
	p.Agents.Port = 0
	if status, body := ask(p, "n1"); status != http.StatusServiceUnavailable || !strings.Contains(body, "asksnoagents") {
		t.Errorf("without agents: %d %s, want that none are asked", status, body)
	}
}
