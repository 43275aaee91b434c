package agents

import (
	"errors"
	"io"
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

	"github.com/weir-metrics/weir/api/nodeapi"
	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/cluster/informer"
	"github.com/weir-metrics/weir/internal/feature"
	"github.com/weir-metrics/weir/metric"
)

func nodeFactsOf(nodes ...v1.Node) *cluster.Facts {
	return informer.FactsFromList(&v1.NodeList{Items: nodes}, nil, time.Unix(1, 0))
}

func nodeAt(name string, addresses ...v1.NodeAddress) v1.Node {
	return v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: v1.NodeStatus{Addresses: addresses}}
}

func TestAgentURL(t *testing.T) {
	usualTypes := []string{"InternalIP", "ExternalIP", "Hostname", "InternalDNS", "ExternalDNS"}
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
		{"n1", usualTypes, "https://192.0.2.1:10290"}, // the same address as its kubelet
		{"n1", []string{"Hostname", "InternalIP"}, "https://host-1:10290"},
		{"n6", usualTypes, "https://[2001:db8::6]:10290"},
	} {
		a := &Agents{Port: 10290, AddressTypes: test.types}
		if got, err := a.url(facts, test.node); got != test.want || err != nil {
			t.Errorf("%s by %v: %q, %v; want %q", test.node, test.types, got, err, test.want)
		}
	}
	a := &Agents{Port: 10290, AddressTypes: []string{"InternalIP"}}
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
	ask := func(a *Agents, name string) (int, string) {
		t.Helper()
		h := &feature.Host{Cluster: &feature.Cluster{Options: informer.Options{Kubeconfig: kubeconfig}}, Facts: func() *cluster.Facts { return facts }}
		if err := a.Open(t.Context(), h); err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		a.Proxy().ServeHTTP(w, httptest.NewRequest(http.MethodGet, weirdev.Path+"nodes/"+name+"/podcgroups", nil))
		return w.Code, strings.Join(strings.Fields(w.Body.String()), "")
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	a := &Agents{Port: number, Insecure: true, AddressTypes: []string{"InternalIP"}}
	if status, body := ask(a, "n1"); status != http.StatusOK || body != `{"pods":1}` || shown != "Bearer s3cret" {
		t.Errorf("n1: %d %s, shown %q; want what its agent says, who sees the kubeconfig's token", status, body, shown)
	}
	a.TokenFile = filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(a.TokenFile, []byte("for agents"), 0o600); err != nil {
		t.Fatal(err)
	}
	if status, _ := ask(a, "n1"); status != http.StatusOK || shown != "Bearer for agents" {
		t.Errorf("n1: %d, shown %q; want that its agent sees the token for agents and no other", status, shown)
	}
	if status, _ := ask(a, "n2"); status != http.StatusNotFound {
		t.Errorf("a node nobody knows: %d, want 404", status)
	}
	a.Port = 0
	if status, body := ask(a, "n1"); status != http.StatusServiceUnavailable || !strings.Contains(body, "asksnoagents") {
		t.Errorf("without agents: %d %s, want that none are asked", status, body)
	}
}
